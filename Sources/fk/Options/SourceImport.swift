import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// A place whose server tells the files: `hf:…`, `doi:…`, `zenodo:…`, a URL, or the place of a registered source.
struct SourceImport: Sendable {
    private(set) var source: any NamedSource
    /// What the owner says about it.
    private var words = SourceWords()
    private let layout: SourceLayout
    /// True if the place has the files of a folder, so that an empty one is no error.
    private let isFolder: Bool

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
        // Those of the library, and the three that have commands of their own.
        let schemes = (registry.schemes + ["doi", "hf", "zenodo"]).sorted().joined(separator: ", ")
        return "There is no source for '\(Escaping.visible(reference.scheme)):'. The schemes are \(schemes)."
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
        if let fault = InputURL.fault(in: text), text.hasPrefix("magnet:") || text.hasPrefix("torrent:") {
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
        do throws(DownloadError) {
            guard let found = try Self.find(text, words, isSingle: isSingle, context) else { return nil }
            (source, isFolder) = found
        } catch {
            throw arguments.error(error.message)
        }
        if NearbyFile.isURL(text) { source = Self.reading(source, as: try ListInput(text, arguments)) }
        if layout == .hub, !(source is HubSource) {
            throw arguments.error("--layout hub is about a repository of a hub: hf:OWNER/REPO.")
        }
        let scheme = (source as? ListedPlace)?.place.reference.scheme
        if layout.registry != nil, scheme != "oci", scheme != "ollama" {
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

    /// The source with the options of a list, for what a URL turns out to be.
    private static func reading(_ source: any NamedSource, as list: ListInput) -> any NamedSource {
        func record(_ source: any NamedSource) -> any NamedSource {
            guard var record = source as? FKManifests.RecordSource else { return source }
            record.form = list.form
            record.reading = list.reading
            return record
        }
        guard var either = source as? FolderOrRecord else { return record(source) }
        either.record = record(either.record)
        return either
    }

    /// A list at a URL, for `-i`.
    ///
    /// - Throws: `UsageError` for an impossible URL or setting.
    init(listAt url: String, _ arguments: ParsedArguments, _ context: CommandContext) throws {
        let list = try ListInput(url, arguments)
        do throws(DownloadError) {
            let record = try FKManifests.RecordSource(url, FKManifests.RecordSource.Servers(context.environment))
            source = Self.reading(record, as: list)
        } catch {
            throw arguments.error(error.message)
        }
        words.include = arguments.given("include")
        words.exclude = arguments.given("exclude")
        layout = .plain
        isFolder = false
    }

    /// The source of a barrel, to ask it again; nil for a barrel of another origin.
    ///
    /// - Throws: same as `NamedSources.find`.
    init?(of options: BarrelOptions, _ context: CommandContext) throws {
        guard let origin = options.origin else { return nil }
        words = options.source ?? SourceWords()
        layout = words.layout.flatMap(SourceLayout.init) ?? .plain
        guard let found = try Self.find(origin, words, isSingle: false, context) else { return nil }
        (source, isFolder) = found
    }

    /// The last part of the place's name, for its folder and barrel; nil if it has none.
    var folderName: String? { source.folderName }

    /// What the barrel keeps. A URL that was once a folder has to be one the next time.
    var kept: SourceWords {
        var words = words
        if let url = source as? FolderOrRecord, url.wasFolder { words.isRecursive = true }
        return words
    }

    /// True if another version of the place is taken as it comes: its files have the same addresses, or other names.
    var isFollowed: Bool { source is ListedPlace || source is FolderOrRecord || NearbyFile.isURL(source.title) }

    /// True if the words choose a file of this name, so that a listing without it means that it is gone.
    func chooses(_ name: String) -> Bool {
        if let depth = words.depth, name.utf8.count(where: { $0 == UInt8(ascii: "/") }) >= depth { return false }
        return HubPattern.chooses(
            name, include: (words.include ?? []).map(HubPattern.init),
            exclude: (words.exclude ?? []).map(HubPattern.init))
    }

    private static func find(
        _ text: String, _ words: SourceWords, isSingle: Bool, _ context: CommandContext
    ) throws(DownloadError) -> (any NamedSource, isFolder: Bool)? {
        let isURL = NearbyFile.isURL(text)
        let isRecursive = words.isRecursive == true
        if !isRecursive || !isURL, let named = try NamedSources.find(text, in: context.environment) {
            guard isURL, text.hasSuffix("/"), let place = try? place(text, words, isSingle: false, context) else {
                return (named, false)
            }
            return (FolderOrRecord(folder: place, record: named), false)
        }
        // A file of this name is a list.
        if !isURL, !isRecursive, access(text, F_OK) == 0 { return nil }
        return try place(text, words, isSingle: isSingle, context).map { ($0, !isSingle) }
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
        if let layout = words.layout.flatMap(SourceLayout.init)?.registry { place.choice.layout = layout }
        if let depth = words.depth {
            place.choice.depth = depth
            place.choice.isDepthChosen = true
        }
        return place
    }

    /// Asks for the files, and makes their tasks.
    ///
    /// - Throws: `CommandFailure` if no file is chosen, or no entry can be used.
    func listed(
        _ settings: ListedTasks.Settings, _ context: CommandContext, over transport: any Transport
    ) async throws -> ListedTasks {
        var settings = settings
        settings.options.secretOrigin = source.secretOrigin
        settings.takesHidden = settings.takesHidden || words.takesHidden == true
        if let place = source as? ListedPlace {
            settings.bindsSizes = place.place.pinsFiles
        }
        settings.keepsVersions = isFollowed
        // A blob has the name of its digest: one that another commit has fetched is the file.
        if layout != .plain { settings.options.existing = settings.options.existing ?? .skip }
        var listed = try ListedTasks(ofServer: source.title, settings, context)
        var hub: HubLayout?
        var isEmpty = true
        let list = try await source.files(
            include: words.include ?? [], exclude: words.exclude ?? [], settings.options, over: transport
        ) { files, form in
            isEmpty = false
            if let orders = (source as? ListedPlace)?.orders { listed.obey(orders) }
            if layout == .hub, let source = source as? HubSource {
                if hub == nil { hub = HubLayout(of: source.reference, in: settings.folder) }
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
            for note in list.notes { context.errors.writeLine("fk: \(Escaping.visible(note))") }
        }
        if words.takesDigests == true, list.notes.isEmpty {
            context.warn(
                "\(source.title): --checksum auto: no folder has a list of digests such as SHA256SUMS, so no file is compared."
            )
        }
        if isEmpty, list.faultCount == 0 {
            guard isFolder, words.include == nil, words.exclude == nil else {
                throw CommandFailure(
                    "\(source.title): no file is chosen. See --include and --exclude.", status: ExitStatus.usage)
            }
            context.warn("\(source.title): the folder has no files.")
        }
        if settings.writesLayout { try hub?.finish(commit: list.commit) }
        if settings.writesLayout, layout == .oci, let place = source as? ListedPlace,
            let manifest = place.orders?.manifest
        {
            try OCILayout.finish(manifest, in: settings.folder)
        }
        try listed.finish(list, mayBeEmpty: isFolder && isEmpty)
        return listed
    }
}

/// A URL that ends with a slash: a folder whose server lists it, else a record or its landing page.
private struct FolderOrRecord: NamedSource {
    let folder: ListedPlace
    fileprivate(set) var record: any NamedSource
    private let isListed = Locked(false)

    init(folder: ListedPlace, record: any NamedSource) {
        self.folder = folder
        self.record = record
    }

    /// True once its server has listed it as a folder.
    var wasFolder: Bool { isListed.withLock(\.self) }

    var title: String { folder.title }
    var secretOrigin: String { record.secretOrigin }
    var folderName: String? { folder.folderName }

    func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        do {
            let list = try await folder.files(include: include, exclude: exclude, options, over: transport) {
                files, form in
                isListed.withLock { $0 = true }
                // Another length than the listed one is another version of the file, and no error.
                try take(
                    files.map { file in
                        var file = file
                        file.size = nil
                        return file
                    }, form)
            }
            isListed.withLock { $0 = true }
            return list
        } catch let error as DownloadError
            where !wasFolder && [.protocolViolation, .redirect].contains(error.code)
        {
            return try await record.files(include: include, exclude: exclude, options, over: transport, take)
        }
    }

    func version(_ options: TaskOptions, over transport: any Transport) async throws(DownloadError) -> String? {
        try await record.version(options, over: transport)
    }
}

extension ParsedArguments {
    /// The values of a repeated option; nil for none.
    fileprivate func given(_ name: String) -> [String]? {
        let values = all(name)
        return values.isEmpty ? nil : values
    }
}
