import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The tasks of a list, as they are read. Entries that cannot be fetched are left out and named.
struct ListedTasks {
    struct Settings {
        /// The options that all tasks share.
        var options = TaskOptions()
        /// The absolute path of the folder for the files.
        var folder: String
        /// True if the folder was given on the command line: then it replaces the folder that all folders of a JSON list are in.
        var isFolderGiven = false
        var attributes: [String: String] = [:]
        /// The partial files that the tasks continue (`--adopt DIR`); nil for none.
        var partialFiles: PartialFiles?
        /// The members that the barrel has, by URL, for lists that are imported again.
        var members = KnownMembers()
        /// True if the list takes the place of the one that a barrel has: its digests replace those of earlier lists.
        var isNewVersion = false
        /// True takes names that begin with a dot from a server's list as well (`--hidden`).
        var takesHidden = false
        /// False takes sizes as information: a file of another length is accepted.
        var bindsSizes = true
        /// True keeps the version that a source says of each file (`SourceVersion`).
        var keepsVersions = false
        /// True notes the size that a source says in the description, for a comparison (`SourceVersion.sizeAttribute`).
        var notesSizes = false
        /// False writes no files of a layout: the list is only compared.
        var writesLayout = true
        /// True if the command itself names the only file of the list (`-o`).
        var namesFile = false
        /// True if the list is one object that the command names: its present version is the one to fetch.
        var namesObject = false
    }

    /// The tasks in order.
    let spool: TaskSpool
    /// The number of entries that were left out.
    private(set) var refused = 0
    /// True if a part of a server's list could not be read, so that files may be missing.
    private(set) var isIncomplete = false
    /// True if an entry could not be used. Names with a dot in front, which are left out on purpose, are no faults.
    var hasFaults: Bool { refused > hiddenCount }
    /// The list without its entries; nil before it was read.
    private(set) var manifest: Manifest?
    /// The answers of the source's servers, to be stored once the barrel is there; nil for none.
    var memory: ListedPlace.Memory?

    private var settings: Settings
    /// The name of the list for messages, without secrets.
    private let source: String
    /// The name of the list as it was given.
    private let name: String
    private let signer: String?
    private let origin: ListOrigin
    private let skipsBad: Bool?
    private let context: CommandContext
    private var folders = EntryFolders()
    private var isBag = false
    /// The folder that all folders of a JSON list are in, which the folder of the command line replaces; nil if there is none.
    private var exportedFolder: String?
    /// The author of the list. Only an owner's list replaces files and takes every name.
    private let speaker: Speaker
    private let hidden: HiddenNames
    /// The first names that were left out because they begin with a dot, and their number.
    private var hiddenNames: [String] = []
    private var hiddenCount = 0
    /// True if `--overwrite` does not apply, because a server has chosen the names.
    private let keepsExisting: Bool
    /// The names that URLs alone give, by folder, and what is said of those that several have.
    private var urlNames = Manifest.NameBook()
    private var twins: (first: String, count: Int)?
    /// The sizes and digests of files without a name, by URL and folder.
    private var urlFacts = Manifest.NameBook()
    /// The number of faults that were shown.
    private var shown = 0
    /// The faults of a document's entries so far. If a later part of it is malformed, that fault alone is shown.
    private var held: [String] = []

    /// - Throws: `ListInput.Fault` for a list that cannot be used at all, `CommandFailure` if every entry is bad.
    init(_ list: ListInput, _ settings: Settings, _ context: CommandContext) throws {
        var settings = settings
        // The owner has named the list, and not the hosts in it.
        if !list.speaker.mayOrder { settings.options.secretOrigin = list.path }
        try self.init(
            from: list.source, by: list.speaker, signer: list.signer, skipsBad: list.reading.skipsBadEntries,
            hidden: list.speaker.mayOrder ? .taken : .notAtHome, settings, context)
        if let bag = list.bagFolder(in: context.workingDirectory) {
            isBag = true
            if !settings.isFolderGiven { self.settings.folder = bag }
        }
        if settings.isFolderGiven { exportedFolder = try list.folderOfExport(in: context.workingDirectory) }
        var present = 0
        let (manifest, leftOutKeys) = try list.read(in: context.workingDirectory) { entries, form in
            for entry in entries {
                if isBag, entry.sources.isEmpty, isPresent(entry) {
                    present += 1
                } else {
                    try add(entry, form)
                }
            }
        }
        try finish(
            manifest, leftOutKeys,
            ifEmpty: present > 0
                ? "nothing is to be fetched: every file of the bag is there" : "the list is empty: it names no URL")
    }

    /// Begins a list that a server sends: `add` takes its files, and `finish` ends it. It has no orders.
    ///
    /// - Parameters:
    ///   - source: the name of the list for messages.
    ///   - hidden: the rule for names that begin with a dot. The default is `.notAtHome`.
    init(
        ofServer source: String, hidden: HiddenNames.Rule = .notAtHome, _ settings: Settings,
        _ context: CommandContext
    ) throws {
        try self.init(
            from: source, by: .list(source), signer: nil, skipsBad: nil, hidden: hidden, settings, context)
    }

    /// True if the list would leave the name out because it begins with a dot.
    func leavesOut(_ name: String, in folder: String?) -> Bool {
        hidden.leavesOut(name, in: name.utf8.contains(UInt8(ascii: "/")) ? folder : nil)
    }

    /// Takes over how a source's files are asked for. An own `--aws-sigv4` or login of the command stays.
    mutating func obey(_ orders: SourcePage.Orders) {
        settings.options.secretOrigin = orders.address
        settings.attributes.merge(orders.attributes) { $1 }
        if !settings.options.hasLogin {
            settings.options.awsSignature = settings.options.awsSignature ?? orders.signature
        }
        for field in orders.headers
        where !(settings.options.headers ?? []).contains(where: { $0.name.caseInsensitiveEquals(field.name) }) {
            settings.options.headers = (settings.options.headers ?? []) + [field]
        }
    }

    var existing: ExistingFilePolicy? {
        get { settings.options.existing }
        set { settings.options.existing = newValue }
    }

    mutating func add(_ files: [Manifest.FileFacts], _ form: Manifest.Form) throws {
        for file in files { try add(Manifest.Entry(file), form) }
    }

    /// Ends a server's list.
    ///
    /// - Parameter mayBeEmpty: true if a list without files is no error. The default is false.
    /// - Throws: same as the first initializer.
    mutating func finish(_ list: ServerList, mayBeEmpty: Bool = false) throws {
        isIncomplete = list.isIncomplete
        if let unpacker = list.unpacker {
            say("\(source): the list is compressed, and was unpacked with \(unpacker.rawValue)")
        }
        try finish(
            list.manifest, list.leftOutKeys, ifEmpty: mayBeEmpty ? nil : "the list is empty: it names no file")
    }

    /// The unfinished members of the barrel with another address in the list, and that address.
    var moved: [(id: TaskID, url: String)] { settings.members.moved }

    /// The tasks, which stay in the spool.
    var tasks: [TaskDescription] { (try? spool.all()) ?? [] }

    private init(
        from source: String, by speaker: Speaker, signer: String?, skipsBad: Bool?, hidden: HiddenNames.Rule,
        _ settings: Settings, _ context: CommandContext
    ) throws {
        var settings = settings
        keepsExisting =
            !speaker.mayOrder && !settings.namesFile && !settings.namesObject && settings.options.existing == .overwrite
        // The barrel's options would complete a missing policy.
        if keepsExisting { settings.options.existing = .refuse }
        self.speaker = speaker
        self.hidden = HiddenNames(
            settings.takesHidden || settings.namesFile ? .taken : hidden, in: settings.folder,
            homes: HiddenNames.homes(in: context.environment))
        self.signer = signer
        origin = ListOrigin(source, signer: signer)
        spool = TaskSpool(folder: try ScratchFolder.base(context), shared: settings.options, list: origin)
        self.source = source.masked
        name = source
        self.skipsBad = skipsBad
        self.settings = settings
        self.context = context
    }

    /// - Parameter leftOutKeys: the keys of a server's list that would steer the program.
    /// - Throws: `CommandFailure` if every entry is bad, `ListInput.Fault` if there is none.
    private mutating func finish(
        _ manifest: Manifest, _ leftOutKeys: [String], ifEmpty reason: String?
    ) throws {
        self.manifest = manifest
        for text in held { say(text) }
        held = []
        for fault in manifest.faults { show(ListInput.Fault(source, fault).description) }
        let faults = refused - hiddenCount + manifest.faultCount
        refused += manifest.faultCount
        if faults > shown { say("and \((faults - shown).plural("more fault"))") }
        warn(manifest)
        warn(leftOutKeys)
        if let twins {
            context.warn(
                "\(source): \(twins.count.plural("URL")) would give a file the name of another one, such as \(twins.first). "
                    + "Give names in the list, or use fk get with --rename, unless the server names the files.")
        }
        guard spool.isEmpty else { return }
        if refused > 0 {
            throw CommandFailure("\(source): no entry of the list can be used.", status: ExitStatus.taskFailed)
        }
        if let reason { throw ListInput.Fault(source: source, line: 0, reason: reason) }
    }

    /// Names the members of the barrel that the list does not have any more.
    func warnOfGone() {
        let (gone, others, names) = settings.members.missing(from: name)
        if gone > 0 {
            let more = gone > names.count ? " and \(gone - names.count) more" : ""
            context.warn(
                "\(source): \(gone.plural("member")) of the barrel \(gone == 1 ? "is" : "are") not in the list any more, and "
                    + "\(gone == 1 ? "stays" : "stay"): \(names.joined(separator: ", "))\(more)")
        }
        if others > 0 {
            context.warn(
                "\(source): \(others.plural("member")) of the barrel \(others == 1 ? "is" : "are") of other lists, and not in this one"
            )
        }
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
            if let own = entry.directory {
                if !isJSON || !settings.isFolderGiven {
                    folder = try absolute(own)
                } else if let root = exportedFolder, Paths.isBelow(own, root), !own.isExactly(root) {
                    folder = folder.path(of: String(own.utf8.dropFirst(root.utf8.count + (root == "/" ? 0 : 1))) ?? "")
                }
            }
            // The lines of a list repeat few texts.
            entry.directory = nil
            var task = try entry.task(
                in: folder, settings.options, &folders, bindsSize: entry.facts.bindsSize && settings.bindsSizes)
            task.attributes.merge(settings.attributes) { $1 }
            if settings.keepsVersions { SourceVersion.store(entry.facts, in: &task.attributes) }
            if settings.notesSizes, let size = entry.size {
                task.attributes[SourceVersion.sizeAttribute] = String(size)
            }
            settings.partialFiles?.offer(to: &task)
            settings.members.match(&task)
            if settings.isNewVersion { task.words.insert(.isNewVersion) }
            if let name = entry.name, leavesOut(name, in: task.directory) {
                refused += 1
                hiddenCount += 1
                if hiddenNames.count < ListInput.maxShown { hiddenNames.append(name) }
                return
            }
            if settings.options.checksum != nil {
                // The digest is the command's.
            } else if signer != nil || settings.namesObject || task.optionsBox?.value.checksum != nil
                || task.optionsBox?.value.pieces != nil
            {
                task.options.list = origin
            }
            if entry.name == nil, settings.options.existing != .rename { try recordFacts(entry, task) }
            made = task
        } catch {
            if entry.sources.isEmpty, form == .checksums { throw fault(entry, error) }
            guard skipsBad ?? form?.leavesOutBadEntries ?? false else { throw fault(entry, error) }
            refused += 1
            return show(fault(entry, error).description, isHeld: form?.isDocument ?? false)
        }
        if made.fileName == nil, settings.options.existing != .rename { recordName(of: made, at: entry.line) }
        try spool.append(made)
    }

    /// Records the name that the URL of a file gives. Two files must not have one name, unless they are one file.
    private mutating func recordName(of task: TaskDescription, at line: Int) {
        var url = task.url
        let name = url.withUTF8 { bytes in
            let path = bytes.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
            let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? path.startIndex
            return String(decoding: path[start...], as: UTF8.self)
        }
        guard !name.isEmpty else { return }
        var hasher = Hasher()
        url.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        let content = UInt32(truncatingIfNeeded: hasher.finalize()) | 1
        let isUsual = task.directory?.isExactly(settings.folder) ?? true
        let place = isUsual ? name : "\u{0}\(task.directory ?? "")/\(name)"
        guard case .conflict(let other) = urlNames.add(place, line: line, content: content),
            other.kind == .hasName
        else { return }
        twins = (twins?.first ?? "'\(name)' on lines \(other.line) and \(line)", (twins?.count ?? 0) + 1)
    }

    /// Records the size and the digests of a file without a name.
    ///
    /// - Throws: `EntryFault` if another line says something else about its URL.
    private mutating func recordFacts(_ entry: Manifest.Entry, _ task: TaskDescription) throws(EntryFault) {
        var facts = entry.digests.map { (kind: $0.algorithm.rawValue, value: $0.hex) }
        if entry.facts.bindsSize, let size = entry.size { facts.append(("size", String(size))) }
        guard !facts.isEmpty else { return }
        var hasher = Hasher()
        hasher.combine(task.url)
        hasher.combine(task.directory)
        let file = hasher.finalize()
        for (kind, value) in facts {
            let content = UInt32(truncatingIfNeeded: value.hashValue) | 1
            guard case .conflict(let other) = urlFacts.add("\(kind) \(file)", line: entry.line, content: content) else {
                continue
            }
            throw EntryFault("line \(other.line) has the same URL with another \(kind)")
        }
    }

    private func fault(_ entry: Manifest.Entry, _ error: EntryFault) -> ListInput.Fault {
        // A bag's addresses are those of its fetch.txt.
        let isFetched = isBag && !entry.sources.isEmpty
        let line = isBag && !isFetched ? 0 : entry.line
        return ListInput.Fault(
            source, ManifestError(form: nil, file: isFetched ? "fetch.txt" : nil, line: line, error.reason))
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

    private func say(_ text: String) { context.errors.writeLine("fk: \(text.visible)") }

    /// Names what is left out of a server's list because it would steer the program.
    private func warn(_ leftOutKeys: [String]) {
        if !leftOutKeys.isEmpty {
            context.warn(
                "\(source): a list from a server only names files. Left out: \(leftOutKeys.joined(separator: ", ")). "
                    + "To obey the list, download it and name its file.")
        }
        if hiddenCount > 0 {
            let more = hiddenCount > hiddenNames.count ? " and \(hiddenCount - hiddenNames.count) more" : ""
            context.warn(
                "\(source): names that begin with a dot are left out\(hidden.isAtHome ? " in a home folder" : ""): "
                    + "\(hiddenNames.joined(separator: ", "))\(more). --hidden takes them.")
        }
        if keepsExisting {
            context.warn(
                "\(source): --overwrite is for files that the command names. Files of this list replace no others: move those away."
            )
        }
    }

    /// The options of curl that `fk` has itself, for all files of a command.
    private static let ownOptions: [String: String] = [
        "proxy": "--proxy", "x": "--proxy", "user": "--user", "u": "--user", "cookie": "-H 'Cookie: …'",
        "b": "-H 'Cookie: …'", "max-time": "--max-time", "m": "--max-time", "cacert": "--cacert", "cert": "--cert",
        "E": "--cert", "key": "--key", "limit-rate": "--limit-rate", "insecure": "--insecure", "k": "--insecure",
        "netrc": "--netrc", "n": "--netrc", "retry": "--retry", "connect-timeout": "--timeout",
        "interface": "--interface", "resolve": "--resolve", "max-filesize": "--max-size", "parallel-max": "--jobs",
    ]

    private func warn(_ manifest: Manifest) {
        let own = manifest.form == .curl ? Self.ownOptions : [:]
        let others = manifest.ignoredOptions.filter { own[$0] == nil }
        if !others.isEmpty {
            context.warn(
                "\(source): options without a meaning here are ignored: \(others.joined(separator: ", ")).")
        }
        let known = manifest.ignoredOptions.compactMap { name in own[name].map { "\(name) (\($0))" } }
        if !known.isEmpty {
            context.warn(
                "\(source): options that fk takes on its command line are ignored in the list: \(known.joined(separator: ", "))."
            )
        }
        guard !manifest.passedOver.isEmpty else { return }
        let kinds = manifest.passedOver.sorted { $0.key < $1.key }.map { kind, count in
            let line = manifest.passedOverLines[kind].map { " (\(count > 1 ? "first on line" : "line") \($0))" } ?? ""
            return "\(count) \(kind)\(line)"
        }
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
    private var findsPlaces = false
    /// The members by the paths of their files; nil until a URL is not known.
    private var places: ExactText.Map<TaskID>?
    /// The unfinished members with another address in the list, and that address.
    private(set) var moved: [(id: TaskID, url: String)] = []
    /// For each place, whether the list has the member.
    private var seen: [Bool] = []

    init() {}

    /// - Parameters:
    ///   - readsLinks: true also finds members by the address that `fk relink` has given them. The default is false.
    ///   - findsPlaces: true also finds members by their place. The default is false.
    /// - Throws: the errors of `StoreReader.barrel`.
    init(
        _ reader: StoreReader, barrel name: String, readsLinks: Bool = false, findsPlaces: Bool = false
    ) throws {
        self.findsPlaces = findsPlaces
        self.reader = reader
        var hashes: [(hash: UInt32, place: Int32)] = []
        var ids = TaskIDTable()
        var members: [TaskID] = []
        _ = try reader.forEachMember(of: name) { id, url in
            members.append(id)
            hashes.append((Self.hash(url), ids.insert(id)))
        }
        for record in readsLinks ? reader.relinked(members) : [] {
            var url = record.address(0)
            hashes.append((url.withUTF8 { Self.hash($0) }, ids.insert(record.id)))
        }
        hashes.sort { $0.hash < $1.hash }
        self.hashes = hashes
        self.ids = ids
        seen = Array(repeating: false, count: hashes.count)
    }

    /// The members that the list has not named.
    ///
    /// - Returns: the number of those that came from a list of this name, or from one without digests; the number of those of other
    ///   lists; and the first names of the former.
    func missing(from list: String) -> (gone: Int, others: Int, names: [String]) {
        guard let reader, seen.contains(false) else { return (0, 0, []) }
        let origin = ListOrigin(list, signer: nil).name
        var (gone, others, names) = (0, 0, [String]())
        // A member with another address is there twice.
        var told = seen
        let missing = hashes.compactMap { member -> TaskID? in
            guard told.indices.contains(Int(member.place)), !told[Int(member.place)] else { return nil }
            told[Int(member.place)] = true
            return ids.id(of: member.place)
        }
        for start in stride(from: 0, to: missing.count, by: 1_000) {
            for record in reader.records(Array(missing[start..<min(start + 1_000, missing.count)])) {
                if let other = record.task.optionsBox?.value.list?.name, !other.isExactly(origin) {
                    others += 1
                    continue
                }
                gone += 1
                let name =
                    record.task.fileName ?? record.path?.lastPathPart
                    ?? FileNameRules.name(url: record.task.url, head: nil)
                if names.count < 10 { names.append(name.visible) }
            }
        }
        return (gone, others, names)
    }

    private static func hash(_ url: UnsafeBufferPointer<UInt8>) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(url))
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }

    /// The members that may have this URL.
    private func find(_ url: String) -> [(id: TaskID, place: Int)] {
        var url = url
        let hash = url.withUTF8 { Self.hash($0) }
        var range = 0..<hashes.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = hashes[middle].hash < hash ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return hashes[range.lowerBound...].prefix { $0.hash == hash }.map { (ids.id(of: $0.place), Int($0.place)) }
    }

    /// A file of a source whose address has changed is the member at its place.
    private mutating func matchPlace(_ task: inout TaskDescription, _ reader: StoreReader) {
        guard findsPlaces, let folder = task.directory, let name = task.fileName else { return }
        if places == nil { places = Self.places(ids, reader) }
        guard let id = places?[folder.path(of: name)], let record = reader.records([id]).first else { return }
        if record.state != .complete, !record.address(0).isExactly(task.url) { moved.append((id, task.url)) }
        task.url = record.task.url
        if let place = ids.number(of: id) { see(Int(place)) }
    }

    private static func places(_ ids: TaskIDTable, _ reader: StoreReader) -> ExactText.Map<TaskID> {
        var places = ExactText.Map<TaskID>()
        for start in stride(from: 0, to: Int32(ids.count), by: 1_000) {
            let some = (start..<min(start + 1_000, Int32(ids.count))).map { ids.id(of: $0) }
            for record in reader.records(some) where SourceVersion.isThere(record.task.attributes) {
                guard let folder = record.task.directory, let name = record.task.fileName else { continue }
                places[folder.path(of: name)] = record.id
            }
        }
        return places
    }

    private mutating func see(_ place: Int) { if seen.indices.contains(place) { seen[place] = true } }

    /// Does what `match` does for a URL that was given without a name: a member that has the name that the URL gives, in the same folder.
    mutating func matchPlain(_ task: inout TaskDescription) {
        var known = task
        match(&known)
        guard let name = known.fileName, name.isExactly(FileNameRules.name(url: task.url, head: nil)),
            let folder = task.directory, known.directory?.isExactly(folder) == true
        else { return }
        task = known
    }

    /// Copies the folder and the name of the member with the same URL and the same file into a description.
    mutating func match(_ task: inout TaskDescription) {
        guard let reader, let folder = task.directory else { return }
        let found = find(task.url)
        guard !found.isEmpty else { return matchPlace(&task, reader) }
        let id = reader.workPath.places.id(of: task)
        if let own = found.first(where: { $0.id == id }) { return see(own.place) }
        for record in reader.records(found.map(\.id))
        where record.address(0).isExactly(task.url) || record.task.url.isExactly(task.url) {
            guard let other = record.task.directory else { continue }
            if let name = task.fileName {
                let known =
                    record.path.map { Paths.split($0).name } ?? FileNameRules.name(url: record.task.url, head: nil)
                guard record.task.fileName == nil || record.link != nil, known.isExactly(name), other.isExactly(folder)
                else { continue }
            } else if !Paths.isBelow(other, folder) {
                continue
            }
            task.directory = other
            task.fileName = record.task.fileName
            // The first address is the identity.
            task.url = record.task.url
            if let member = found.first(where: { $0.id == record.id }) { see(member.place) }
            return
        }
    }
}
