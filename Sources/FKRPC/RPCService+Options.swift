import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// aria2's methods about options.
extension RPCService {
    // MARK: Of a task

    func option(_ params: Parameters) async throws(RPCError) -> JSON {
        let row = try row(params.string(0))
        guard let record = try? reader.record(row.id) else {
            throw RPCError("Cannot get option for GID#\(GID.text(row.gid))")
        }
        let task = record.task
        var shown = globals.shown(dir: row.dir ?? "")
        for name in GlobalOptions.ofProgram { shown[name] = nil }
        let options = task.options
        if let name = task.given.out { shown["out"] = name }
        if let checksum = options.checksum { shown["checksum"] = checksum.description }
        if let rate = options.rateLimit { shown["max-download-limit"] = String(rate) }
        if let most = options.maxAttempts { shown["max-tries"] = String(most > 1_000 ? 0 : most) }
        if let seconds = options.timeoutSeconds { shown["timeout"] = String(Int(min(seconds, 1e9))) }
        if case .fixed(let count) = options.connections {
            shown["split"] = String(count)
            shown["max-connection-per-server"] = String(min(count, 16))
        }
        // A proxy may contain a password.
        if let proxy = options.proxy { shown["all-proxy"] = proxy.masked }
        shown["allow-overwrite"] = options.existing == .overwrite ? "true" : "false"
        shown["auto-file-renaming"] = options.existing == .refuse ? "false" : "true"
        if row.state == .suspend { shown["pause"] = "true" }
        var lines: [String] = []
        for field in options.headers ?? [] {
            switch field.name.lowercased() {
            case "user-agent": shown["user-agent"] = field.value
            case "referer": shown["referer"] = field.value.masked
            case let name where GlobalOptions.hides(header: name): break
            default: lines.append("\(field.name): \(field.value)")
            }
        }
        if !lines.isEmpty { shown["header"] = lines.joined(separator: "\n") }
        return JSON.texts(shown)
    }

    func changeOption(_ params: Parameters) async throws(RPCError) -> JSON {
        let row = try queued(params.string(0), "Cannot change option for")
        let given = CallOptions(try params.object(1))
        try given.check()
        guard let record = try? reader.record(row.id) else {
            throw RPCError("Cannot change option for GID#\(GID.text(row.gid))")
        }
        var task = record.task
        try apply(given, to: &task, url: row.url)
        if let place = try place(given, of: task) {
            task.directory = place.directory
            task.fileName = place.fileName
            task.attributes[TaskDescription.givenFolder] = place.attributes[TaskDescription.givenFolder]
        }
        if id(of: task) == row.id {
            if task.options != record.task.options {
                var change = TaskChange(row.id)
                change.options = task.options
                try await self.change([change])
            }
        } else {
            try await replace(row, record, by: task)
        }
        return "OK"
    }

    private func apply(_ given: CallOptions, to task: inout TaskDescription, url: String) throws(RPCError) {
        var options = task.options
        Aria2Options.apply(given.ofTask, url: url, to: &options)
        if let fault = Aria2Options.fault(in: given.ofTask, over: options) { throw RPCError("\(fault).") }
        var fields = options.headers ?? []
        if given.values["header"] != nil {
            fields.removeAll { !["user-agent", "referer"].contains($0.name.lowercased()) }
            for line in given.headers { fields.append(try CallOptions.header(line)) }
        }
        for field in Aria2Options.headers(given.ofTask, url: url) {
            fields.removeAll { $0.name.lowercased() == field.name.lowercased() }
            fields.append(field)
        }
        if fields != options.headers ?? [] {
            options.headers = fields.isEmpty ? nil : fields
            options.secretHeaders = fields.isEmpty ? nil : HeaderField.secretNames(of: fields)
            // aria2 sends them to all addresses.
            options.listHeaders = fields.isEmpty ? nil : Set(fields.map { $0.name.lowercased() }).sorted()
        }
        if let text = given["checksum"], !text.isEmpty { options.checksum = try CallOptions.digest(text) }
        task.options = options
    }

    /// The new folder and name of a file; nil if the call names none.
    private func place(_ given: CallOptions, of task: TaskDescription) throws(RPCError) -> TaskDescription? {
        guard given["dir"] != nil || given["out"] != nil else { return nil }
        let (dir, out) = task.given
        let entry = Manifest.Entry(name: try given.out() ?? out, sources: [.init(task.url)])
        let folder = try given["dir"].map { dir throws(RPCError) in try gate.folder(dir) } ?? dir
        do throws(EntryFault) {
            var folders = EntryFolders()
            return try entry.given(in: folder, &folders)
        } catch { throw RPCError("The file cannot be put there: \(error.reason).") }
    }

    /// Makes the task anew under another folder or name, which are part of its identity. Its gid stays.
    private func replace(
        _ row: TaskRow, _ record: TaskRecord, by task: TaskDescription
    ) async throws(RPCError) {
        guard row.received == 0, (try? reader.record(row.id))?.received == 0 else {
            throw RPCError("Folder and name of GID#\(GID.text(row.gid)) cannot change: bytes have arrived already.")
        }
        var task = distinct(task)
        task.attributes[GID.attribute] = GID.text(row.gid)
        // It waits until the former task is gone, which has its gid.
        task.startsSuspended = true
        let new = try await add([task], barrel: record.barrels.first, at: nil)[0].get()
        _ = try await perform(.forget, .id(row.id))
        table.remove(new.id)
        await reread([new.id])
        if record.state != .suspend { _ = try await perform(.resume, .id(new.id)) }
    }

    // MARK: Of all tasks

    func globalOption() async -> JSON {
        var shown = globals.shown(dir: (try? gate.folder(globals["dir"])) ?? "")
        let configure = await downloader.configure
        let rate = (try? await downloader.control.rateLimit()) ?? configure.rateLimit
        shown["max-overall-download-limit"] = String(rate ?? 0)
        shown["max-concurrent-downloads"] = String(configure.maxAction)
        return JSON.texts(shown)
    }

    func changeGlobalOption(_ params: Parameters) async throws(RPCError) -> JSON {
        var given = CallOptions(try params.object(0))
        try given.check()
        var limit: Int64??
        var jobs: Int?
        if let text = given["max-overall-download-limit"] {
            guard let rate = Aria2Options.rate(text) else { throw CallOptions.problem("max-overall-download-limit") }
            limit = .some(rate == 0 ? nil : rate)
        }
        if let text = given["max-concurrent-downloads"] {
            guard let count = Int(text), count > 0 else { throw CallOptions.problem("max-concurrent-downloads") }
            jobs = min(count, 256)
        }
        if let dir = given["dir"] { given.set("dir", try gate.folder(dir)) }
        if let path = given["save-session"], !path.isEmpty { given.set("save-session", try sessionPath(path)) }
        do throws(DownloadError) {
            if let limit { try await downloader.control.setRateLimit(limit) }
            if let jobs {
                var configure = await downloader.configure
                configure.maxAction = jobs
                try await downloader.update(configure)
            }
        } catch { throw RPCError(error) }
        for (name, texts) in given.values { globals.set(name, texts) }
        return "OK"
    }

    // MARK: The session

    /// The path of the file for `saveSession`: below an allowed folder.
    private func sessionPath(_ path: String) throws(RPCError) -> String {
        let whole = FolderGate.normalized(path.hasPrefix("/") ? path : "\(settings.folders.first ?? "")/\(path)")
        let folder = try gate.folder(whole.folderPart)
        let name = whole.lastPathPart
        guard !name.isEmpty else { throw CallOptions.problem("save-session") }
        let place = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
        if let fault = SessionList.fault(inPlaceOf: place) {
            throw RPCError("The session cannot be stored as \(place.visible): \(fault).")
        }
        return place
    }

    func saveSession() throws(RPCError) -> JSON {
        guard let path = globals["save-session"], !path.isEmpty else { return "OK" }
        let place = try sessionPath(path)
        var text: [UInt8] = []
        let ids =
            (table.active.places + table.waiting.places).map(\.id)
            + table.stopped.places.map(\.id).filter { table.rows[$0]?.state == .error }
        for id in ids {
            guard let row = table.rows[id], let record = try? reader.record(id) else { continue }
            do throws(EntryFault) {
                text += try SessionList.entry(row, record.task)
            } catch {
                settings.log("the session leaves out \(row.url.masked): \(error.reason)")
            }
        }
        do {
            let aside = place.folderPart.path(of: ".fk-session-\(UUID().uuidString)")
            try text.withUnsafeBytes { try FileIO.replace(place, aside: aside, $0) }
        } catch {
            throw RPCError("Failed to serialize session to '\(place)': \(error)")
        }
        return "OK"
    }
}

/// aria2's input list of tasks that are not complete.
enum SessionList {
    /// The bytes of a file that are looked at before it is replaced.
    private static let most = 1 << 20

    /// Why a session must not replace what is at a path, as a clause; nil if nothing is there, or a session of this program or
    /// of aria2: an empty file, or a list in which each download has its gid.
    static func fault(inPlaceOf path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let other = "a file is there that is no session list; choose another name"
        guard status.st_mode & S_IFMT == S_IFREG, let file = try? FileIO.open(path, O_RDONLY, isOwn: false) else {
            return other
        }
        defer { FileIO.close(file) }
        var bytes = [UInt8](repeating: 0, count: most)
        guard
            let count = try? bytes.withUnsafeMutableBytes({ try FileIO.read(into: $0, from: file, at: 0, path: path) })
        else { return other }
        return isSession(bytes[..<count], isWhole: count < most) ? nil : other
    }

    /// - Parameter isWhole: false if more text follows these bytes.
    static func isSession(_ bytes: ArraySlice<UInt8>, isWhole: Bool) -> Bool {
        guard !bytes.contains(0) else { return false }
        var lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
        if !isWhole { lines = lines.dropLast() }
        var downloads = 0
        var hasGID = true
        for line in lines {
            let text = line.drop { $0 == 0x20 || $0 == 0x09 }
            guard let first = text.first, first != 0x0d, first != UInt8(ascii: "#") else { continue }
            if text.startIndex == line.startIndex {
                guard hasGID else { return false }
                downloads += 1
                hasGID = false
            } else if text.starts(with: "gid=".utf8) {
                let gid = String(decoding: text.dropFirst(4), as: UTF8.self).trimmingCharacters(in: .whitespaces)
                hasGID = downloads > 0 && GID.isWhole(gid)
            } else if downloads == 0 {
                return false
            }
        }
        return bytes.isEmpty || downloads > 0 && (hasGID || !isWhole)
    }

    static func entry(_ row: TaskRow, _ task: TaskDescription) throws(EntryFault) -> [UInt8] {
        var lines: [Manifest.Option] = []
        func add(_ name: String, _ value: String?) { if let value { lines.append(Manifest.Option(name, value)) } }
        add("gid", GID.text(row.gid))
        let (dir, out) = task.given
        add("dir", dir)
        add("out", out)
        if row.state == .suspend { add("pause", "true") }
        let options = task.options
        add("checksum", options.checksum?.description)
        for field in options.headers ?? [] { add("header", "\(field.name): \(field.value)") }
        let (written, rest) = Aria2Options.written(options)
        lines += written
        // A session is its owner's file, and has the secrets of header fields as well.
        add("all-proxy", rest.proxy)
        return try Aria2Options.lines([row.url] + row.mirrors, lines)
    }
}
