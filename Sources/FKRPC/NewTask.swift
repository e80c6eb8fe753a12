import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The options of a call as names and values. Clients send texts; numbers and truth values count as their texts.
struct CallOptions: Sendable {
    /// Every option with its values, `header` with all lines. Options that aria2 does not have are left out.
    private(set) var values: [String: [String]] = [:]

    init(_ members: [JSON.Member]) {
        for member in members { values[member.name] = Self.texts(member.value) }
    }

    init(_ values: [String: String]) { self.values = values.mapValues { [$0] } }

    private static func texts(_ value: JSON) -> [String]? {
        switch value {
        case .string(let text): [text]
        case .bool(let value): [value ? "true" : "false"]
        case .integer(let value): [String(value)]
        case .array(let values): values.compactMap(\.string)
        default: nil
        }
    }

    subscript(_ name: String) -> String? { values[name]?.last }

    mutating func set(_ name: String, _ value: String) { values[name] = [value] }

    /// Adds values of options that are not there.
    mutating func merge(_ defaults: [String: [String]]) { values.merge(defaults) { own, _ in own } }

    /// The header lines: a text with several lines, or a list.
    var headers: [String] {
        (values["header"] ?? []).flatMap { $0.split(whereSeparator: \.isNewline).map(String.init) }
    }

    /// Those of aria2's options that have an effect on a task.
    var ofTask: [Manifest.Option] {
        values.sorted { $0.key < $1.key }.compactMap { name, texts in
            // Clients name files below the folders that they may use alone.
            guard Aria2Options.used.contains(name), name != "adopt", let text = texts.last, !text.isEmpty else {
                return nil
            }
            return Manifest.Option(name, text)
        }
    }

    /// - Throws: aria2's error for the first impossible one.
    func check() throws(RPCError) {
        for option in ofTask where Aria2Options.fault(in: option.name, option.value) != nil {
            throw Self.problem(option.name)
        }
        for line in headers { _ = try Self.header(line) }
        if let text = self["checksum"], !text.isEmpty { _ = try Self.digest(text) }
    }

    /// The file's name; nil without one.
    func out() throws(RPCError) -> String? {
        guard let out = self["out"], !out.isEmpty else { return nil }
        guard let reason = out.listedPathFault else { return out }
        throw RPCError("The file's name \(out.visible) cannot be used: \(reason).")
    }

    static func problem(_ name: String) -> RPCError {
        RPCError("We encountered a problem while processing the option '--\(name)'.")
    }

    static func header(_ line: String) throws(RPCError) -> HeaderField {
        do throws(HeaderField.Invalid) { return try HeaderField.parse(line) } catch { throw problem("header") }
    }

    /// `sha-256=HEX`.
    static func digest(_ text: String) throws(RPCError) -> Checksum {
        let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, let algorithm = Checksum.Algorithm(listed: parts[0]),
            let digest = Checksum(listed: algorithm, hex: parts[1])
        else { throw problem("checksum") }
        return digest
    }
}

extension Manifest.Entry {
    /// The task of the entry, which keeps the folder of the call if the file's name leads into a subfolder.
    func given(in folder: String?, _ folders: inout EntryFolders) throws(EntryFault) -> TaskDescription {
        var task = try self.task(in: folder, TaskOptions(), &folders)
        if task.directory != folder { task.attributes[TaskDescription.givenFolder] = folder }
        return task
    }
}

extension TaskDescription {
    /// The attribute with the folder of a call, if the file is in a subfolder of it.
    static let givenFolder = "rpc-dir"

    /// The folder and the name of the file as a client gives them: the name may begin with a subfolder.
    var given: (dir: String?, out: String?) {
        guard let dir = attributes[Self.givenFolder], let directory, let fileName else { return (directory, fileName) }
        let root = EntryFolders.resolved(dir)
        let base = root == "/" ? root : root + "/"
        guard directory.utf8.starts(with: base.utf8) else { return (directory, fileName) }
        return (dir, String(decoding: directory.utf8.dropFirst(base.utf8.count), as: UTF8.self).path(of: fileName))
    }
}

extension RPCService {
    /// - Parameter given: the options of the call; those that clients have set for all new tasks complete them.
    func describe(_ uris: [String], _ given: CallOptions) throws(RPCError) -> TaskDescription {
        guard !uris.isEmpty else { throw RPCError("URI is not provided.") }
        let options = globals.completing(given)
        try options.check()
        var urls: [String] = []
        var fault: DownloadError?
        for uri in uris {
            do throws(DownloadError) { urls.append(try uri.normalizedURL()) } catch { fault = fault ?? error }
        }
        guard !urls.isEmpty else {
            throw RPCError("No URI to download." + (fault.map { " \($0.message)" } ?? ""))
        }
        var entry = Manifest.Entry(name: nil, sources: urls.map { Manifest.Source($0) })
        entry.options = options.ofTask
        entry.headers = try headers(options, url: urls[0])
        if let text = options["checksum"], !text.isEmpty { entry.digests = [try CallOptions.digest(text)] }
        let folder = try gate.folder(options["dir"])
        entry.name = try options.out() ?? entry.name
        let file = try given["adopt"].flatMap { $0.isEmpty ? nil : $0 }.map { (path) throws(RPCError) in
            try gate.partial(path, in: folder)
        }
        do throws(EntryFault) {
            var folders = EntryFolders()
            var task = try entry.given(in: folder, &folders)
            // By default, aria2 numbers a name that is taken.
            if task.options.existing == nil { task.options.existing = .rename }
            if let file { task.options.adopts = URL(fileURLWithPath: file) }
            return task
        } catch {
            throw RPCError("The task cannot be made: \(error.reason).")
        }
    }

    private func headers(_ options: CallOptions, url: String) throws(RPCError) -> [HeaderField] {
        var fields = Aria2Options.headers(options.ofTask, url: url)
        for line in options.headers { fields.append(try CallOptions.header(line)) }
        if let user = options["http-user"], !user.isEmpty,
            !fields.contains(where: { $0.name.lowercased() == "authorization" })
        {
            fields.append(.login(user, options["http-passwd"] ?? ""))
        }
        return fields
    }

    var gate: FolderGate { FolderGate(folders: settings.folders) }

    /// A description for a URL that may be known, as aria2 takes it; nil refuses the download (`refuse`).
    ///
    /// | known task | `allow-overwrite` | without `auto-file-renaming` | otherwise |
    /// | --- | --- | --- | --- |
    /// | failed, removed, complete without its file | fetched anew | fetched again | the next free name |
    /// | complete | fetched anew | refused | the next free name |
    /// | waiting, running | the next free name | refused | the next free name |
    ///
    /// - Parameter taken: other new tasks of the same call; the default is none.
    func again(_ task: TaskDescription, _ taken: Set<TaskID> = []) async throws(RPCError) -> TaskDescription? {
        guard let row = table.rows[id(of: task)] else { return distinct(task, taken) }
        switch task.options.existing {
        case .overwrite where row.state.isEnded:
            _ = try await perform(.forget, .id(row.id))
            return task
        case .refuse:
            let isFree = row.state.isEnded && row.path.map { access($0, F_OK) != 0 } ?? true
            return isFree ? task : nil
        default: return distinct(task, taken)
        }
    }

    /// Adds an ended download for a file that is there already, with aria2's error 13. The engine has no task for it.
    func refuse(_ task: TaskDescription) -> TaskRow {
        let row = TaskRow(refused: task, name: table.rows[id(of: task)]?.name)
        refused.append(row.id)
        if refused.count > Self.maxRefused { table.remove(refused.removeFirst()) }
        announce(table.add(refused: row))
        return table.rows[row.id] ?? row
    }

    /// Removes the refused downloads that a verb concerns, because the engine does not know them.
    ///
    /// - Returns: true if nothing else is concerned.
    func acceptRefused(_ verb: Verb, _ selector: TaskSelector) -> Bool {
        let found: [TaskID]
        switch selector.kind {
        case .all, .state(.error): found = refused
        case .id(let id): found = refused.filter { $0 == id }
        default: found = []
        }
        if verb == .forget || verb == .trash {
            for id in found { announce(table.remove(id)) }
            refused.removeAll { found.contains($0) }
        }
        if case .id = selector.kind { return !found.isEmpty }
        return false
    }

    /// Gives a description that is the same as a known task the next free name, because aria2 downloads the same URL twice.
    func distinct(_ task: TaskDescription, _ taken: Set<TaskID> = []) -> TaskDescription {
        var task = task
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: nil)
        guard isKnown(task, taken) else { return task }
        if task.fileName == nil {
            // A failed or removed task has left the name free.
            task.fileName = name
            if !isKnown(task, taken), !isTaken(name, in: task.directory) { return task }
        }
        var number = 1
        repeat {
            task.fileName = FileNameRules.numbered(name, number)
            number += 1
        } while isKnown(task, taken) || isTaken(task.fileName ?? "", in: task.directory)
        return task
    }

    private func isKnown(_ task: TaskDescription, _ taken: Set<TaskID>) -> Bool {
        table.rows[id(of: task)] != nil || taken.contains(id(of: task))
    }

    /// True if the folder has the file, or a task will write it.
    private func isTaken(_ name: String, in directory: String?) -> Bool {
        guard let directory else { return false }
        if access("\(directory)/\(name)", F_OK) == 0 { return true }
        return table.isTaken(name, in: directory)
    }

    /// - Parameter position: their place in the queue; nil appends them.
    func add(_ tasks: [TaskDescription], barrel: String? = nil, at position: Int?) async throws(RPCError) -> [Result<
        TaskRow, RPCError
    >] {
        var tasks = tasks
        for index in tasks.indices where tasks[index].attributes[GID.attribute] == nil {
            let id = id(of: tasks[index])
            let gid = table.freeGID(from: id)
            // Kept with the task, so that it is the same after a restart.
            if gid != id.leadingWord { tasks[index].attributes[GID.attribute] = GID.text(gid) }
        }
        let results: [Result<TaskID, DownloadError>]
        do throws(DownloadError) {
            results = try await downloader.prepare(
                tasks.map { Builder(description: $0) }, barrel: barrel, queued: true)
        } catch { throw RPCError(error) }
        await reread(results.compactMap { try? $0.get() })
        if let position {
            for (index, result) in results.enumerated() {
                if case .success(let id) = result, table.queuePlace(of: id) != nil {
                    // A position behind the end is the end, as for aria2.
                    _ = try await move(id, to: min(position, table.count) + index)
                }
            }
        }
        return results.map { result in
            switch result {
            case .success(let id):
                table.rows[id].map { .success($0) } ?? .failure(RPCError("The task has gone at once."))
            case .failure(let error): .failure(RPCError(error))
            }
        }
    }

    /// Moves a waiting task, and returns its new place.
    func move(_ id: TaskID, to place: Int) async throws(RPCError) -> Int {
        guard let from = table.queuePlace(of: id) else {
            throw RPCError("GID#\(table.rows[id].map { GID.text($0.gid) } ?? "") not found in the waiting queue.")
        }
        let queue = table.queue
        let to = min(max(place, 0), queue.count - 1)
        let changes = QueueMove.priorities(queue, from: from, to: to).map { id, priority in
            var change = TaskChange(id)
            change.priority = priority
            return change
        }
        guard !changes.isEmpty else { return to }
        try await change(changes)
        return to
    }

    /// Changes settings of tasks, and reads them again.
    func change(_ changes: [TaskChange]) async throws(RPCError) {
        do throws(DownloadError) { try await downloader.control.change(changes) } catch { throw RPCError(error) }
        await reread(changes.map(\.id))
    }
}
