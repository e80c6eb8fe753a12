import FKMiddleware
import FKTransport

/// A place without a list of its own, whose server tells the files: a repository of a hub, or a record.
package protocol NamedSource: Sendable {
    /// The name for messages, such as `hf:OWNER/REPO@REVISION`.
    var title: String { get }

    /// Asks the server for the files.
    ///
    /// - Parameters:
    ///   - include: patterns of the names to take; empty takes all.
    ///   - exclude: patterns of the names to leave out.
    ///   - options: the options for the connection.
    ///   - transport: is not shut down here.
    /// - Returns: the files; `facts` has the origin, and the version as `commit`.
    func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> Manifest

    /// The version that the server has now; nil if its name stands for one version.
    func version(_ options: TaskOptions, over transport: any Transport) async throws(DownloadError) -> String?
}

/// The pages of a list of files, joined. A list that does not end is refused.
struct SourcePages {
    /// The largest number of pages of a list. A hub has 1,000 files on each.
    static let maxPages = 10_000
    /// The largest number of pages in succession without a file.
    static let maxEmptyPages = 100

    private(set) var manifest: Manifest
    private let include: [HubPattern]
    private let exclude: [HubPattern]
    private var known = ExactMap<Int>()
    private var page = 0
    private var emptyPages = 0

    init(_ manifest: Manifest, include: [String], exclude: [String]) {
        self.manifest = manifest
        self.include = include.map(HubPattern.init)
        self.exclude = exclude.map(HubPattern.init)
    }

    /// Adds the next page.
    mutating func add(_ part: Manifest, from url: String) throws(DownloadError) {
        page += 1
        guard page <= Self.maxPages else { throw Self.endless("it has more than \(Self.maxPages) pages", url) }
        var isNew = part.entries.isEmpty && part.faults.isEmpty
        emptyPages = isNew ? emptyPages + 1 : 0
        guard emptyPages <= Self.maxEmptyPages else { throw Self.endless("its pages have no files any more", url) }
        for entry in part.entries {
            let name = entry.name ?? entry.sources.first?.url ?? ""
            guard known[name] == nil else { continue }
            known[name] = page
            isNew = true
            let shown = entry.name ?? FileNameRules.name(url: name, head: nil)
            if HubPattern.chooses(shown, include: include, exclude: exclude) { manifest.entries.append(entry) }
        }
        isNew = isNew || !part.faults.isEmpty && page == 1
        guard isNew else { throw Self.endless("page \(page) names only files of earlier pages", url) }
        manifest.faultCount += part.faultCount
        manifest.faults += part.faults.prefix(max(0, ManifestCollector.maxFaults - manifest.faults.count))
        manifest.passedOver.merge(part.passedOver, uniquingKeysWith: +)
    }

    private static func endless(_ reason: String, _ url: String) -> DownloadError {
        DownloadError(.protocolViolation, "The list of files does not end: \(reason).", url: URLMasking.mask(url))
    }
}
