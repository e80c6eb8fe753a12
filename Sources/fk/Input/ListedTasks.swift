import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The tasks of a list, as they are read. Entries that cannot be fetched are left out and named.
struct ListedTasks {
    /// The settings for the tasks of a list.
    struct Settings {
        /// The options that all tasks share.
        var options = TaskOptions()
        /// The absolute path of the folder for the files.
        var folder: String
        /// True if the folder was given on the command line: then it replaces the folders of a JSON list.
        var isFolderGiven = false
        var attributes: [String: String] = [:]
        /// The members that the barrel has, by URL, for lists that are imported again.
        var members = KnownMembers()
    }

    /// The tasks in order.
    let spool: TaskSpool
    /// The number of entries that were left out.
    private(set) var refused = 0
    /// The list without its entries; nil before it was read.
    private(set) var manifest: Manifest?

    private var settings: Settings
    /// The name of the list for messages.
    private let source: String
    /// The signer of the list.
    private let signer: String?
    private let skipsBad: Bool?
    private let context: CommandContext
    private var folders = EntryFolders()
    private var isBag = false
    /// The number of faults that were shown.
    private var shown = 0
    /// The faults of a document's entries so far. If a later part of it is malformed, that fault alone is shown.
    private var held: [String] = []

    /// Reads a list.
    ///
    /// - Throws: `ListInput.Fault` for a list that cannot be used at all, `CommandFailure` if every entry is bad.
    init(_ list: ListInput, _ settings: Settings, _ context: CommandContext) throws {
        try self.init(from: list.source, signer: list.signer, skipsBad: list.reading.skipsBadEntries, settings, context)
        if let bag = list.bagFolder(in: context.workingDirectory) {
            isBag = true
            if !settings.isFolderGiven { self.settings.folder = bag }
        }
        var present = 0
        let manifest = try list.read(in: context.workingDirectory) { entries, form in
            for entry in entries {
                if isBag, entry.sources.isEmpty, isPresent(entry) {
                    present += 1
                } else {
                    try add(entry, form)
                }
            }
        }
        try finish(
            manifest,
            ifEmpty: present > 0
                ? "nothing is to be fetched: every file of the bag is there" : "the list is empty: it names no URL")
    }

    /// Takes a list that was read already.
    ///
    /// - Throws: same as the other initializer.
    init(_ manifest: Manifest, from source: String, _ settings: Settings, _ context: CommandContext) throws {
        try self.init(from: source, signer: nil, skipsBad: nil, settings, context)
        for entry in manifest.entries { try add(entry, manifest.form) }
        var manifest = manifest
        manifest.entries = []
        try finish(manifest, ifEmpty: "the list is empty: it names no file")
    }

    /// The tasks, which stay in the spool.
    var tasks: [TaskDescription] { (try? spool.all()) ?? [] }

    private init(
        from source: String, signer: String?, skipsBad: Bool?, _ settings: Settings, _ context: CommandContext
    ) throws {
        self.signer = signer
        spool = TaskSpool(folder: try ScratchFolder.base(context), shared: settings.options)
        self.source = source
        self.skipsBad = skipsBad
        self.settings = settings
        self.context = context
    }

    /// - Throws: `CommandFailure` if every entry is bad, `ListInput.Fault` if there is none.
    private mutating func finish(_ manifest: Manifest, ifEmpty reason: String) throws {
        self.manifest = manifest
        for text in held { say(text) }
        held = []
        for fault in manifest.faults { show(ListInput.Fault(source, fault).description) }
        refused += manifest.faultCount
        if refused > shown { say("and \(Formatting.count(refused - shown, "more fault"))") }
        warn(manifest)
        guard spool.isEmpty else { return }
        if refused > 0 {
            throw CommandFailure("\(source): no entry of the list can be used.", status: ExitStatus.taskFailed)
        }
        throw ListInput.Fault(source: source, line: 0, reason: reason)
    }

    /// The folder for files without a folder of their own: a bag's own unless another one was given.
    var folder: String { settings.folder }

    private func isPresent(_ entry: Manifest.Entry) -> Bool {
        entry.name.map { access("\(settings.folder)/\($0)", F_OK) == 0 } ?? false
    }

    private mutating func add(_ entry: Manifest.Entry, _ form: Manifest.Form?) throws {
        let made: TaskDescription
        do throws(EntryFault) {
            if entry.sources.isEmpty, form == .checksums {
                throw EntryFault("a checksum list has no addresses: give the folder of its files with --base URL")
            }
            var entry = entry
            let isJSON = form == .json
            var folder = settings.folder
            if let own = entry.directory, !(isJSON && settings.isFolderGiven) { folder = try absolute(own) }
            // The lines of a list repeat few texts.
            entry.directory = nil
            var task = try entry.task(in: folder, settings.options, &folders, bindsSize: !isJSON)
            task.attributes.merge(settings.attributes) { $1 }
            settings.members.match(&task)
            if signer != nil || task.option({ $0.checksum }) != nil || task.option({ $0.pieces }) != nil {
                task.options.list = ListOrigin(source, signer: signer)
            }
            made = task
        } catch {
            if entry.sources.isEmpty, form == .checksums { throw fault(entry, error) }
            guard skipsBad ?? form?.leavesOutBadEntries ?? false else { throw fault(entry, error) }
            refused += 1
            return show(fault(entry, error).description, isHeld: form?.isDocument ?? false)
        }
        try spool.append(made)
    }

    private func fault(_ entry: Manifest.Entry, _ error: EntryFault) -> ListInput.Fault {
        ListInput.Fault(source: source, line: entry.line, reason: Escaping.visible(error.reason))
    }

    private func absolute(_ path: String) throws(EntryFault) -> String {
        do { return try Paths.absolute(path, from: context.workingDirectory) } catch {
            throw EntryFault((error as? UsageError)?.message ?? "its folder cannot be used")
        }
    }

    // MARK: Messages

    private mutating func show(_ text: String, isHeld: Bool = false) {
        guard shown < ListInput.maxShown else { return }
        shown += 1
        if isHeld { held.append(text) } else { say(text) }
    }

    private func say(_ text: String) { context.errors.writeLine("fk: \(Escaping.visible(text))") }

    private func warn(_ manifest: Manifest) {
        if !manifest.ignoredOptions.isEmpty {
            let names = manifest.ignoredOptions.joined(separator: ", ")
            context.warn("\(source): aria2's options without a meaning here are ignored: \(names).")
        }
        guard !manifest.passedOver.isEmpty else { return }
        let kinds = manifest.passedOver.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        context.warn("\(source): not supported and left out: \(kinds.joined(separator: ", ")).")
    }
}

/// The members of a barrel by URL. A list that was exported from a barrel may name a file whose task got its name from
/// the server, or give only the URL of a task with a name: importing the list again must find that task and not make a
/// second one.
///
/// It holds 16 bytes for each member, and its id, which the engine of the import has too (`TaskIDTable`).
struct KnownMembers {
    /// The hashes of the members' URLs, in ascending order, with the places of their ids.
    private var hashes: [(hash: UInt32, place: Int32)] = []
    private var ids = TaskIDTable()
    private var reader: StoreReader?

    init() {}

    /// Reads the members of a barrel.
    ///
    /// - Throws: the errors of `StoreReader.barrel`.
    init(_ reader: StoreReader, barrel name: String) throws {
        self.reader = reader
        var hashes: [(hash: UInt32, place: Int32)] = []
        var ids = TaskIDTable()
        _ = try reader.forEachMember(of: name) { id, url in hashes.append((Self.hash(url), ids.insert(id))) }
        hashes.sort { $0.hash < $1.hash }
        self.hashes = hashes
        self.ids = ids
    }

    private static func hash(_ url: UnsafeBufferPointer<UInt8>) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(url))
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }

    /// The members that may have this URL.
    private func find(_ url: String) -> [TaskID] {
        var url = url
        let hash = url.withUTF8 { Self.hash($0) }
        var range = 0..<hashes.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = hashes[middle].hash < hash ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return hashes[range.lowerBound...].prefix { $0.hash == hash }.map { ids.id(of: $0.place) }
    }

    /// Copies the folder and the name of the member with the same URL and the same file into a description.
    func match(_ task: inout TaskDescription) {
        guard let reader, let folder = task.directory else { return }
        let found = find(task.url)
        guard !found.isEmpty, !found.contains(reader.workPath.places.id(of: task)) else { return }
        for record in reader.records(found) where record.task.url.isExactly(task.url) {
            guard let other = record.task.directory else { continue }
            if let name = task.fileName {
                let known =
                    record.path.map { Paths.split($0).name } ?? FileNameRules.name(url: record.task.url, head: nil)
                guard record.task.fileName == nil, known.isExactly(name), other.isExactly(folder) else { continue }
            } else if !Paths.isBelow(other, folder) {
                continue
            }
            task.directory = other
            task.fileName = record.task.fileName
            return
        }
    }
}
