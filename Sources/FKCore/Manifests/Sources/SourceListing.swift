import FKMiddleware
import FKTransport

/// Which files of a place are listed.
public struct SourceChoice: Sendable, Hashable {
    /// Patterns of the names to take, such as `*.bin`; empty, the default, takes all. `*` matches slashes too.
    public var include: [String]
    /// Patterns of the names to leave out, such as `data/*`. The default is none.
    public var exclude: [String]
    /// The number of folders below each other that are listed, from 1, which is the place alone. A deeper folder is a fault. The
    /// default is 20.
    public var depth: Int
    /// True if the reference names one file and not the files of a place: an object, where it could also be a prefix. The default
    /// is false.
    public var isSingle = false
    /// The platform of an image, as `OS/ARCH` or `OS/ARCH/VARIANT`; nil, the default, for this machine's.
    public var platform: String?
    /// True signs no request to a bucket, although there are credentials. The default is false.
    public var isAnonymous = false
    /// The names of an artifact's files. The default is `files`.
    package var layout = RegistryLayout.files
    /// True if a deeper folder is left out and no fault, because the owner has chosen the depth.
    package var isDepthChosen = false
    /// True if a list of digests in a folder binds the files of that folder. The default is false.
    package var takesDigests = false

    /// The depth without another choice.
    public static let usualDepth = 20

    /// Creates a choice. The default takes all files.
    public init(include: [String] = [], exclude: [String] = [], depth: Int = usualDepth) {
        self.include = include
        self.exclude = exclude
        self.depth = depth
    }
}

/// The files of a place. `Downloader.listing` makes it.
public struct SourceListing: Sendable {
    /// The place.
    public let place: SourcePlace
    /// What a source may use: requests, limits, the choice.
    package let client: SourceClient
    private let source: any Source
    private let lifetime: TransportLifetime

    /// - Parameters:
    ///   - memory: the answers of the last listing; nil, the default, for none.
    ///   - owns: true shuts the transport down when the listing and its pages are gone.
    package init(
        _ source: any Source, _ place: SourcePlace, _ choice: SourceChoice, _ options: TaskOptions,
        _ environment: [String: String], memory: ListedPlace.Memory? = nil, over transport: any Transport,
        owns: Bool = false
    ) {
        self.source = source
        self.place = place
        client = SourceClient(place, choice, options, environment, memory: memory, over: transport)
        lifetime = TransportLifetime(owns ? transport : nil)
    }

    /// The files, a page at a time: those that the choice takes, with valid names, each name once. Names that cannot be used are
    /// faults of their page.
    ///
    /// Each use asks the server again.
    public var pages: AsyncThrowingStream<SourcePage, any Error> {
        let (source, place, client, lifetime) = (source, place, client, lifetime)
        return client.pages { send in
            var filter = SourceFilter(client)
            for try await page in source.pages(of: place, client) { try await send(filter.filter(page)) }
            withExtendedLifetime(lifetime) {}
        }
    }

    /// The version that the place has now; nil if it has none.
    ///
    /// - Throws: the error of the server.
    public func version() async throws(DownloadError) -> String? { try await source.version(of: place, client) }
}

/// Shuts a transport down when nobody uses it any more.
private final class TransportLifetime: Sendable {
    private let transport: (any Transport)?

    init(_ transport: (any Transport)?) { self.transport = transport }

    deinit { transport?.shutdown() }
}

/// Decides about the files of a source's pages.
struct SourceFilter {
    private let include: [HubPattern]
    private let exclude: [HubPattern]
    private let limits: SourceLimits
    private let title: String
    private var known = Manifest.NameBook()
    /// The number of the page, from 1.
    private var page = 1
    private var files = 0
    private var isNew = false
    /// The entries of the page so far.
    private var entries = 0
    private var emptyPages = 0

    /// The largest number of pages of a list in succession without an entry.
    private static let maxEmptyPages = 100

    init(_ client: SourceClient) {
        include = client.choice.include.map(HubPattern.init)
        exclude = client.choice.exclude.map(HubPattern.init)
        limits = client.limits
        title = client.place.title
    }

    /// Filters the next page, or the next portion of a list.
    ///
    /// - Throws: `.protocolViolation` for a list without an end.
    mutating func filter(_ page: SourcePage) throws(DownloadError) -> SourcePage {
        guard self.page <= limits.pages else { throw endless("it has more than \(limits.pages) pages") }
        var result = page
        result.files = []
        for file in page.files {
            if let file = try choose(file, page.form, &result.faults) { result.files.append(file) }
        }
        entries += page.files.count
        if page.form == nil || page.list != nil { try end(page, result.faults.count) }
        return result
    }

    /// The file, if it is new and the patterns choose it. A file that says the same as an earlier one is that file; another one of its name
    /// is a fault. What the patterns do not choose is no fault.
    private mutating func choose(
        _ file: Manifest.FileFacts, _ form: Manifest.Form?, _ faults: inout [SourceFault]
    ) throws(DownloadError) -> Manifest.FileFacts? {
        var file = file
        let url = file.sources.first?.url ?? ""
        if form == nil {
            guard let name = file.name else {
                faults.append(SourceFault(url, "it has no name", isIncomplete: false))
                return nil
            }
            if let fault = name.listedPathFault {
                isNew = true
                if chooses(name) { faults.append(SourceFault(name, fault, isIncomplete: false)) }
                return nil
            }
            file.name = name.plainListedPath
        }
        let isChosen = chooses(file.name ?? FileNameRules.name(url: url, head: nil))
        // A URL is no path with folders, and what is not chosen takes no name.
        let place =
            file.name.map { isChosen ? $0 : "\u{2}" + $0.replacing("/", with: "\u{1}") }
            ?? url.replacing("/", with: "\u{1}")
        switch known.add(place, line: page, content: file.contentHash) {
        case .same: return nil
        case .conflict where !isChosen: isNew = true
        case .conflict:
            let reason = "an earlier file has this name, or is its folder"
            var fault = SourceFault(file.name ?? url, reason, isIncomplete: false)
            if let form { fault.error = ManifestError(form: form, line: file.line, "'\(fault.name)': \(reason)") }
            faults.append(fault)
            return nil
        case .new: isNew = true
        }
        files += 1
        guard files <= limits.files else { throw endless("it has more than \(limits.files) files") }
        return isChosen ? file : nil
    }

    private func chooses(_ name: String) -> Bool { HubPattern.chooses(name, include: include, exclude: exclude) }

    /// Ends a page. One that has only files of earlier pages is the first of many.
    private mutating func end(_ page: SourcePage, _ faults: Int) throws(DownloadError) {
        let isFine: Bool
        if let list = page.list {
            let others = page.faults.count + list.faultCount
            let isEmpty = entries + others + list.repeatedCount == 0
            emptyPages = isEmpty ? emptyPages + 1 : 0
            guard emptyPages <= Self.maxEmptyPages else { throw endless("its pages have no files any more") }
            isFine = isEmpty || self.page == 1 && others > 0
        } else {
            isFine = entries == 0 || faults > 0
        }
        guard isNew || isFine else { throw endless("page \(self.page) names only files of earlier pages") }
        (isNew, entries) = (false, 0)
        self.page += 1
    }

    private func endless(_ reason: String) -> DownloadError {
        DownloadError(.protocolViolation, "The list of files does not end: \(reason).", url: title.masked)
    }
}
