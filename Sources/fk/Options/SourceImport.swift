import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// A place whose server tells the files: `hf:…`, `doi:…`, `zenodo:…`, a URL, or the place of a registered source.
struct SourceImport: Sendable {
    let source: ListedPlace
    /// Tells whether a URL that ends with a slash was a folder.
    private let either: FolderOrRecord?
    /// What the owner says about it.
    private var words = SourceWords()
    private let layout: SourceLayout
    /// True if the place has the files of a folder, so that an empty one is no error.
    private let isFolder: Bool
    /// How the owner wants a list at a URL to be read.
    private var reading = Manifest.Reading()

    static let specs: [OptionSpec] = [
        .repeated(
            "include", nil, "GLOB",
            "only files of a source whose path below the folder matches, such as '*.bin'; * takes slashes too"),
        .repeated("exclude", nil, "GLOB", "leave out files of a source that match, such as 'data/*'"),
        .value(
            "depth", nil, "N",
            "list N levels of folders; 1 is the folder alone (1 to 1000; default: 20, and deeper ones are an error)"),
        .value(
            "layout", nil, "LAYOUT", hint: .choices(SourceLayout.allCases.map(\.rawValue)),
            "plain (default); hub for hf:, the cache of the hub's own client, which finds the files offline; oci for an image layout, or "
                + "ollama for Ollama's folder of models"),
        .value("platform", nil, "OS/ARCH", "the platform of an image of oci: (default: this machine's)"),
        .flag("anonymous", nil, "sign no request to a bucket, although there are credentials"),
    ]

    /// The sources that a command knows: those of the library, and the programs of the work path.
    static func registry(_ context: CommandContext) throws -> SourceRegistry {
        let registry = SourceRegistry()
        if context.global.place.exists { try registry.registerPrograms(in: context.global.place) }
        return registry
    }

    /// The error for `SCHEME:REST` of a scheme that nobody has; nil for another text, such as a host with its port.
    static func unknownScheme(_ text: String, _ context: CommandContext) -> String? {
        guard !text.contains("://"), let reference = SourceReference(text), reference.rest.first?.isNumber == false,
            !["magnet", "torrent"].contains(reference.scheme), let registry = try? registry(context),
            registry[reference.scheme] == nil
        else { return nil }
        return "There is no source for '\(reference.scheme.visible):'. The schemes are "
            + "\(registry.schemes.joined(separator: ", "))."
    }

    /// Reads a name; nil for a path.
    ///
    /// - Parameters:
    ///   - isRecursive: true for `-r`: a URL is a folder.
    ///   - isSingle: true if the name stands for one file.
    init?(
        _ text: String, _ arguments: ParsedArguments, _ context: CommandContext, isRecursive: Bool = false,
        isSingle: Bool = false
    ) throws {
        if let fault = text.urlFault, text.hasPrefix("magnet:") || text.hasPrefix("torrent:") {
            throw arguments.error("\(fault).")
        }
        words.include = arguments.given("include")
        words.exclude = arguments.given("exclude")
        words.depth = try arguments.integer("depth", "--depth", in: 1...1_000)
        words.isRecursive = isRecursive ? true : nil
        words.takesHidden = arguments.has("hidden") ? true : nil
        words.takesDigests = arguments["checksum"] == DigestList.auto ? true : nil
        layout = try arguments.choice("layout", "--layout", of: SourceLayout.self) ?? .plain
        words.layout = layout == .plain ? nil : layout.rawValue
        words.platform = arguments["platform"]
        words.isAnonymous = arguments.has("anonymous") ? true : nil
        let list = NearbyFile.isURL(text) ? try ListInput(text, arguments) : nil
        let records = list.map { Self.records($0) } ?? Records()
        if let list { reading = list.reading }
        do throws(DownloadError) {
            guard let found = try Self.find(text, words, isSingle: isSingle, records, context) else { return nil }
            (source, isFolder, either) = found
        } catch {
            throw arguments.error(error.message)
        }
        let scheme = source.place.reference.scheme
        if layout == .hub, scheme != "hf" {
            throw arguments.error("--layout hub is about a repository of a hub: hf:OWNER/REPO.")
        }
        if layout == .oci || layout == .ollama, scheme != "oci", scheme != "ollama" {
            throw arguments.error("--layout \(layout) is about an artifact: oci:REGISTRY/REPO:TAG or ollama:NAME.")
        }
        if layout == .ollama, scheme != "ollama" {
            throw arguments.error("--layout ollama is about a model: ollama:NAME.")
        }
        if words.platform != nil, scheme != "oci" {
            throw arguments.error("--platform is about an image: oci:REGISTRY/REPO:TAG.")
        }
        if words.isAnonymous == true, scheme != "s3" {
            throw arguments.error("--anonymous is about a bucket: s3://BUCKET.")
        }
    }

    /// The source of records, with the options of a list, for what a URL turns out to be.
    private static func records(_ list: ListInput) -> Records {
        var records = Records()
        records.listForm = list.form
        records.reading = list.reading
        return records
    }

    /// A list at a URL, for `-i`.
    ///
    /// - Throws: `UsageError` for an impossible URL or setting.
    init(listAt url: String, _ arguments: ParsedArguments, _ context: CommandContext) throws {
        let list = try ListInput(url, arguments)
        reading = list.reading
        do throws(DownloadError) {
            guard let found = try Self.record(url, Self.records(list), context) else {
                throw DownloadError(.invalidURL, "This is no URL.", url: url.masked)
            }
            source = found
        } catch {
            throw arguments.error(error.message)
        }
        words.include = arguments.given("include")
        words.exclude = arguments.given("exclude")
        layout = .plain
        isFolder = false
        either = nil
    }

    /// The source of a barrel, to ask it again; nil for a barrel of another origin.
    ///
    /// - Throws: the error of a name that cannot be used.
    init?(of options: BarrelOptions, _ context: CommandContext) throws {
        guard let origin = options.origin else { return nil }
        words = options.source ?? SourceWords()
        layout = words.layout.flatMap(SourceLayout.init) ?? .plain
        guard let found = try Self.find(origin, words, isSingle: false, Records(), context) else { return nil }
        (source, isFolder, either) = found
        if let fault = otherServer(than: words) {
            throw CommandFailure("The barrel \(fault)".visible, status: ExitStatus.usage)
        }
    }

    /// The origin of the server that the environment gives to the name; nil for a URL, and for a program.
    private var server: String? {
        let parts = source.secretOrigin.urlParts
        guard !NearbyFile.isURL(source.title), let scheme = parts.scheme else { return nil }
        return "\(scheme)://\(parts.hostPort)"
    }

    /// Says that the name of the source stands for another server than when the barrel was made; nil if it does not. Amazon's servers
    /// count as one.
    func otherServer(than known: SourceWords?) -> String? {
        guard let old = known?.server, let now = server, old != now,
            ![old, now].allSatisfy({ URLOrigin($0)?.isAmazon == true })
        else { return nil }
        return
            "has its files from \(old), and \(source.title.masked) is at \(now) in this environment. Set the variable of the "
            + "server as it was, or name another barrel and folder."
    }

    /// The last part of the place's name, for its folder and barrel.
    var folderName: String { source.folderName }

    /// What the barrel keeps. A URL that was once a folder has to be one the next time.
    var kept: SourceWords {
        var words = words
        if either?.wasFolder == true { words.isRecursive = true }
        words.server = server
        return words
    }

    /// True if another version of the place is taken as it comes: its files have the same addresses, or other names.
    var isFollowed: Bool { !source.place.reference.isPublication }

    /// True if the place is a record or a list, which has one version.
    var namesVersion: Bool { !isFollowed || NearbyFile.isURL(source.title) && !isFolder }

    /// True if the words choose a file of this name, so that a listing without it means that it is gone.
    func chooses(_ name: String) -> Bool {
        if let depth = words.depth, name.utf8.count(where: { $0 == UInt8(ascii: "/") }) >= depth { return false }
        return name.isChosen(include: words.include ?? [], exclude: words.exclude ?? [])
    }

    private static func find(
        _ text: String, _ words: SourceWords, isSingle: Bool, _ records: Records, _ context: CommandContext
    ) throws(DownloadError) -> (ListedPlace, isFolder: Bool, FolderOrRecord?)? {
        let isURL = NearbyFile.isURL(text)
        let isRecursive = words.isRecursive == true
        let isPublication = SourceReference(text)?.isPublication == true
        if isURL, !isRecursive {
            guard let record = try record(text, records, context) else { return nil }
            guard text.hasSuffix("/"), let folder = try? place(text, words, isSingle: false, context) else {
                return (record, false, nil)
            }
            let either = FolderOrRecord(folder.place, records, record.place)
            var place = folder.place
            place.pinsFiles = true
            var found = ListedPlace(either, place, context.environment)
            found.choice = folder.choice
            return (found, false, either)
        }
        // A file of this name is a list.
        if !isURL, !isRecursive, !isPublication, access(text, F_OK) == 0 { return nil }
        guard let found = try place(text, words, isSingle: isSingle, context) else { return nil }
        return (found, !isSingle && !isPublication, nil)
    }

    /// The record or list at a URL.
    private static func record(
        _ url: String, _ records: Records, _ context: CommandContext
    ) throws(DownloadError) -> ListedPlace? {
        guard let reference = SourceReference(url) else { return nil }
        return ListedPlace(records, try records.place(of: reference, in: context.environment), context.environment)
    }

    private static func place(
        _ text: String, _ words: SourceWords, isSingle: Bool, _ context: CommandContext
    ) throws(DownloadError) -> ListedPlace? {
        let registry: SourceRegistry
        do { registry = try self.registry(context) } catch {
            throw DownloadError(wrapping: error, code: .invalidArgument, message: "The sources cannot be read.")
        }
        guard var place = try ListedPlace(text, in: registry, context.environment) else { return nil }
        place.choice.isSingle = isSingle
        place.choice.takesDigests = words.takesDigests == true
        place.choice.platform = words.platform
        place.choice.isAnonymous = words.isAnonymous == true
        place.choice.layout = words.layout.flatMap { .init(rawValue: $0) } ?? .files
        if let depth = words.depth {
            place.choice.depth = depth
            place.choice.isDepthChosen = true
        }
        return place
    }

    /// Divides the options of a place without a server of its own, such as that of a program: plain header fields go to the servers of all
    /// files, and secrets to none, which is said.
    private func share(_ options: inout TaskOptions, _ context: CommandContext) {
        let names = Set((options.headers ?? []).map { $0.name.lowercased() })
        // Who names the servers of a record is nobody that the owner knows.
        let plain = names.filter { isFollowed && !HeaderField.isSecret($0) }
        options.listHeaders = plain.isEmpty ? nil : plain.sorted()
        let marked = Set(options.secretHeaders ?? [])
        let left: [(name: String, isGiven: Bool)] = [
            (
                "a login or header field (--user, -H)",
                names.subtracting(plain).contains { marked.contains($0) || HeaderField.isSecret($0) }
            ),
            ("--netrc", options.netrc == true), ("--cookies", options.cookiePath != nil),
            ("--cert", options.clientCertificate != nil), ("--aws-sigv4", options.awsSignature != nil),
        ]
        let kinds = left.filter(\.isGiven).map(\.name)
        guard !kinds.isEmpty else { return }
        context.warn(
            "\(source.title.masked) does not name the servers of its files, so this was sent to none of them: "
                + "\(kinds.joined(separator: ", ")). A request middleware (fk middleware add) can log in at a server.")
    }

    /// Asks for the files, and makes their tasks.
    ///
    /// - Parameters:
    ///   - barrel: the barrel whose last listing is remembered; nil for none.
    ///   - mayChooseNone: true if a choice without a file is no error. The default is false.
    ///   - check: refuses the version of the place by an error, before anything is written.
    /// - Throws: `CommandFailure` if no file is chosen, or no entry can be used.
    func listed(
        _ settings: ListedTasks.Settings, of barrel: String? = nil, _ context: CommandContext,
        over transport: any Transport, mayChooseNone: Bool = false, check: (Manifest.Facts?) throws -> Void = { _ in }
    ) async throws -> ListedTasks {
        var settings = settings
        var source = source
        let title = source.title.masked
        if let barrel {
            source.memory = ListedPlace.Memory(
                WorkPath(context.global.workPath).listingPath(barrel), scratch: try ScratchFolder.base(context))
        }
        settings.options.secretOrigin = source.secretOrigin
        if source.secretOrigin.isEmpty { share(&settings.options, context) }
        // A login in the place's URL is for all of the place, as --user is.
        if let login = Login.header(inURL: source.secretOrigin), !settings.options.hasLogin {
            settings.options.add(login)
        }
        settings.takesHidden = settings.takesHidden || words.takesHidden == true
        settings.bindsSizes = source.place.pinsFiles
        settings.keepsVersions = isFollowed
        // A blob has the name of its digest: one that another commit has fetched is the file.
        if layout != .plain { settings.options.existing = settings.options.existing ?? .skip }
        var listed = try ListedTasks(ofServer: source.title, settings, context)
        listed.memory = source.memory
        var hub: HubLayout?
        var isEmpty = true
        let list = try await source.files(
            include: words.include ?? [], exclude: words.exclude ?? [], settings.options, over: transport
        ) { files, form in
            isEmpty = false
            if let reason = reading.fault(in: form) {
                throw CommandFailure("\(title): \(reason).", status: ExitStatus.usage)
            }
            if let orders = source.orders { listed.obey(orders) }
            if layout == .hub {
                if hub == nil {
                    let reference = try HubReference(parsing: source.place.reference.description)
                    hub = HubLayout(of: reference, in: settings.folder)
                }
                try listed.add(hub?.place(files) ?? [], form)
            } else if layout == .ollama {
                // The manifest of a tag is no file that anything else may stand for.
                try listed.add(files.filter { $0.name?.hasPrefix("blobs/") == true }, form)
                listed.existing = .refuse
                try listed.add(files.filter { $0.name?.hasPrefix("blobs/") != true }, form)
            } else {
                try listed.add(files, form)
            }
        }
        if !context.global.quiet {
            for note in list.notes { context.errors.writeLine("fk: \(note.visible)") }
        }
        if words.takesDigests == true, list.notes.isEmpty {
            context.warn(
                "\(title): --checksum auto: no folder has a list of digests such as SHA256SUMS, so no file is compared."
            )
        }
        if isEmpty, list.faultCount == 0 {
            guard mayChooseNone || isFolder && words.include == nil && words.exclude == nil else {
                throw CommandFailure(
                    "\(title): no file is chosen. See --include and --exclude.", status: ExitStatus.usage)
            }
            context.warn(
                words.include == nil && words.exclude == nil
                    ? "\(title): the folder has no files." : "\(title): no file is chosen any more.")
        }
        try check(list.manifest.facts)
        if settings.writesLayout { try hub?.finish(commit: list.commit) }
        if settings.writesLayout, layout == .oci, let manifest = source.orders?.manifest {
            try OCILayout.check(manifest, in: settings.folder)
        }
        try listed.finish(list, mayBeEmpty: (isFolder || mayChooseNone) && isEmpty)
        return listed
    }
}

/// A URL that ends with a slash: a folder whose server lists it, else a record or its landing page.
private struct FolderOrRecord: Source {
    private let folder: SourcePlace
    private let records: Records
    private let record: SourcePlace
    private let isListed = Locked(false)

    init(_ folder: SourcePlace, _ records: Records, _ record: SourcePlace) {
        self.folder = folder
        self.records = records
        self.record = record
    }

    /// True once its server has listed it as a folder.
    var wasFolder: Bool { isListed.withLock(\.self) }

    var schemes: [String] { ["http", "https"] }
    var form: String { "https://HOST/PATH/" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        folder
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            do {
                for try await page in WebFolder().pages(of: folder, client) {
                    isListed.withLock { $0 = true }
                    var page = page
                    // Another length than the listed one is another version of the file, and no error.
                    for index in page.files.indices { page.files[index].size = nil }
                    try await send(page)
                }
            } catch let error as DownloadError
                where !wasFolder && [.protocolViolation, .redirect].contains(error.code)
            {
                for try await page in records.pages(of: record, client) { try await send(page) }
            }
        }
    }

    func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String? {
        try await records.version(of: record, client)
    }
}

extension ParsedArguments {
    /// The values of a repeated option; nil for none.
    fileprivate func given(_ name: String) -> [String]? {
        let values = all(name)
        return values.isEmpty ? nil : values
    }
}
