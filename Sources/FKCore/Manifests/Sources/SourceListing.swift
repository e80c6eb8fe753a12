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

    /// Creates a listing.
    ///
    /// - Parameter owns: true shuts the transport down when the listing and its pages are gone.
    package init(
        _ source: any Source, _ place: SourcePlace, _ choice: SourceChoice, _ options: TaskOptions,
        _ environment: [String: String], over transport: any Transport, owns: Bool = false
    ) {
        self.source = source
        self.place = place
        client = SourceClient(place, choice, options, environment, over: transport)
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
            for try await page in source.pages(of: place, client) { try await send(filter.take(page)) }
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
    private var known = NameBook()
    private var page = 0
    private var files = 0

    init(_ client: SourceClient) {
        include = client.choice.include.map(HubPattern.init)
        exclude = client.choice.exclude.map(HubPattern.init)
        limits = client.limits
        title = client.place.title
    }

    /// Takes the next page.
    ///
    /// - Throws: `.protocolViolation` for a list without an end.
    mutating func take(_ page: SourcePage) throws(DownloadError) -> SourcePage {
        self.page += 1
        guard self.page <= limits.pages else { throw endless("it has more than \(limits.pages) pages") }
        var result = page
        result.files = []
        var isNew = page.files.isEmpty
        for file in page.files {
            guard let name = file.name.map(ManifestName.plain) else {
                result.faults.append(SourceFault(file.sources.first?.url ?? "", "it has no name", isIncomplete: false))
                continue
            }
            if let fault = ManifestName.fault(in: file.name ?? "") {
                isNew = true
                result.faults.append(SourceFault(file.name ?? name, fault, isIncomplete: false))
                continue
            }
            switch known.add(name, line: self.page, content: file.contentHash) {
            case .same: continue
            case .conflict:
                result.faults.append(
                    SourceFault(name, "an earlier file has this name, or is its folder", isIncomplete: false))
                continue
            case .new: isNew = true
            }
            files += 1
            guard files <= limits.files else { throw endless("it has more than \(limits.files) files") }
            guard HubPattern.chooses(name, include: include, exclude: exclude) else { continue }
            var file = file
            file.name = name
            result.files.append(file)
        }
        guard isNew || !result.faults.isEmpty else {
            throw endless("page \(self.page) names only files of earlier pages")
        }
        return result
    }

    private func endless(_ reason: String) -> DownloadError {
        DownloadError(.protocolViolation, "The list of files does not end: \(reason).", url: URLMasking.mask(title))
    }
}
