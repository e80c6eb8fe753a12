import FKMiddleware
import FKTransport

/// A place without a list of its own, whose server tells the files: a repository of a hub, or a record.
package protocol NamedSource: Sendable {
    /// The name for messages, such as `hf:OWNER/REPO@REVISION`.
    var title: String { get }
    /// The URL whose server the owner has named, and which alone may receive the secrets of a task; empty for none.
    var secretOrigin: String { get }

    /// The last part of the name, for a folder and a barrel; nil if it has none.
    var folderName: String? { get }

    /// Asks the server for the files, a page at a time.
    ///
    /// - Parameters:
    ///   - include: patterns of the names to take; empty takes all.
    ///   - exclude: patterns of the names to leave out.
    ///   - options: the options for the connection.
    ///   - transport: is not shut down here.
    ///   - take: receives the files in order, a portion at a time, with the form of the list. They have no orders.
    /// - Returns: the list without its files; it has the origin, and the version as `commit`.
    /// - Throws: `DownloadError`, and the errors of `take`. The files that were taken are of no use then.
    func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList

    /// The version that the server has now; nil if its name stands for one version.
    func version(_ options: TaskOptions, over transport: any Transport) async throws(DownloadError) -> String?
}

/// Joins the pages of a list of files. A list that does not end, or is too long, is refused.
struct SourcePages {
    /// The largest number of pages of a list. A hub has 1,000 files on each.
    static let maxPages = 10_000
    /// The largest number of pages in succession without a file.
    static let maxEmptyPages = 100
    /// The largest sum of all pages in bytes: 1 GiB. A page has at most 64 MiB (`DocumentRequest.limit`).
    static let maxBytes = 1 << 30

    /// The list so far, without its files.
    private(set) var list: ServerList
    private let include: [HubPattern]
    private let exclude: [HubPattern]
    private var known = NameBook()
    private var page = 0
    private var emptyPages = 0
    private var bytes = 0

    init(_ list: ServerList, include: [String], exclude: [String]) {
        self.list = list
        self.include = include.map(HubPattern.init)
        self.exclude = exclude.map(HubPattern.init)
    }

    /// Reads the next page.
    ///
    /// - Parameters:
    ///   - bytes: the page.
    ///   - reader: a reader for its form.
    ///   - url: the URL of the list, for messages.
    ///   - take: receives the files that are chosen and were on no earlier page.
    /// - Returns: the number of entries on the page, with faults and repeated ones.
    /// - Throws: `ManifestError` if the page cannot be read; `.protocolViolation` if the list does not end; the errors of `take`.
    mutating func add(
        _ bytes: [UInt8], _ reader: ServerListReader, from url: String,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) throws -> Int {
        self.bytes += bytes.count
        guard self.bytes <= Self.maxBytes else {
            throw Self.endless("it is longer than \(Self.maxBytes >> 30) GiB", url)
        }
        page += 1
        guard page <= Self.maxPages else { throw Self.endless("it has more than \(Self.maxPages) pages", url) }
        var reader = reader
        var isNew = false
        let part = try reader.read(bytes) { files, form in
            let chosen = choose(files, form, &isNew)
            if !chosen.isEmpty { try take(chosen, form) }
        }
        list.add(part)
        let count = reader.count + part.faultCount + part.repeatedCount
        emptyPages = count == 0 ? emptyPages + 1 : 0
        guard emptyPages <= Self.maxEmptyPages else { throw Self.endless("its pages have no files any more", url) }
        guard isNew || count == 0 || page == 1 && part.faultCount > 0 else {
            throw Self.endless("page \(page) names only files of earlier pages", url)
        }
        return count
    }

    /// Adds files that were on no page.
    mutating func add(
        _ files: [Manifest.FileFacts], _ form: Manifest.Form,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) rethrows {
        var isNew = false
        let chosen = choose(files, form, &isNew)
        if !chosen.isEmpty { try take(chosen, form) }
    }

    /// The new files that the patterns choose. A file that says the same as an earlier one is that file; another one of its name is
    /// a fault.
    private mutating func choose(
        _ files: [Manifest.FileFacts], _ form: Manifest.Form, _ isNew: inout Bool
    ) -> [Manifest.FileFacts] {
        files.filter { file in
            let url = file.sources.first?.url ?? ""
            // A URL is no path with folders.
            let key = file.name ?? url.replacing("/", with: "\u{1}")
            switch known.add(key, line: page, content: file.contentHash) {
            case .new: break
            case .same: return false
            case .conflict:
                let reason = "an entry of an earlier page has this name or is its folder"
                list.add(ManifestError(form: form, line: file.line, "'\(file.name ?? url)': \(reason)"))
                return false
            }
            isNew = true
            return HubPattern.chooses(
                file.name ?? FileNameRules.name(url: url, head: nil), include: include, exclude: exclude)
        }
    }

    private static func endless(_ reason: String, _ url: String) -> DownloadError {
        DownloadError(.protocolViolation, "The list of files does not end: \(reason).", url: URLMasking.mask(url))
    }
}
