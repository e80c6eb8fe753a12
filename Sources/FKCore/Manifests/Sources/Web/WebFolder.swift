import FKMiddleware
import FKTransport

/// A folder of a web server, with its subfolders: by WebDAV (RFC 4918) where the server has it, else by the listings that servers
/// make of their folders, as HTML or JSON.
///
/// | who | may |
/// | --- | --- |
/// | the owner | name the folder, whose redirects are followed |
/// | the folder's listing | name files and folders below it, on the same origin |
/// | a subfolder's answer | come from that folder: a redirect elsewhere is a fault |
///
/// Of a listing in HTML only names count. The text beside a link is the version of the file (`Manifest.FileFacts.version`), because times
/// and sizes in words are no facts.
package struct WebFolder: Source {
    package init() {}

    package var schemes: [String] { ["http", "https"] }
    package var form: String { "https://HOST/FOLDER/" }

    package func place(
        of reference: SourceReference, in environment: [String: String]
    ) throws(DownloadError) -> SourcePlace {
        var url = try reference.description.normalizedURL()
        let parts = URLParts(url)
        guard parts.query == nil else { throw reference.fault("a folder's URL has no query", form) }
        if !parts.path.hasSuffix("/") { url += "/" }
        guard let scope = SourceScope(url) else {
            throw reference.fault(
                "its path could be read in two ways: write it without '.', '..' and encoded slashes", form)
        }
        return SourcePlace(reference, title: url, folderName: scope.lastPart ?? scope.host, address: url)
    }

    /// The files of the folder and its subfolders.
    package func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            var walk = try await FolderWalk(place, client)
            defer { walk.stop() }
            while let page = try await walk.next() { try await send(page) }
        }
    }
}

/// A folder of a listing.
struct WebEntry: Sendable, Hashable {
    /// The path below the place, without a final slash; empty for the place itself.
    var path: String
    /// The URL, with a final slash.
    var url: String
}

/// The entries of one folder.
struct FolderPage: Sendable {
    var files: [Manifest.FileFacts] = []
    var folders: [WebEntry] = []
    var faults: [SourceFault] = []
    var leftOut: [String: Int] = [:]
    var notes: [String] = []
}

/// Lists folders level by level, several at a time, and gives their pages in order.
struct FolderWalk {
    /// The folders that are asked for at a time. A host's policy may allow fewer.
    private static let width = 6
    /// The most folders of a place.
    private static let maxFolders = 1_000_000

    private let lister: FolderLister
    private let client: SourceClient
    /// The folders that were found, in order. Those before `done` are empty texts.
    private var folders: [WebEntry]
    private var done = 0
    private var started = 0
    private var tasks: [Task<Result<FolderPage, DownloadError>, Never>] = []
    /// The page of the place itself, which was asked for first.
    private var first: FolderPage?

    /// Asks for the place itself.
    ///
    /// - Throws: the error of the server; `.protocolViolation` for an answer that is no listing.
    init(_ place: SourcePlace, _ client: SourceClient) async throws(DownloadError) {
        self.client = client
        let (lister, page) = try await FolderLister.begin(at: place, client)
        self.lister = lister
        folders = [lister.root]
        first = page
    }

    /// The next page; nil at the end.
    mutating func next() async throws -> SourcePage? {
        guard done < folders.count else { return nil }
        if started == 0, let page = first {
            first = nil
            started = 1
            return finish(.success(page))
        }
        while started < folders.count, tasks.count < Self.width {
            let folder = folders[started]
            tasks.append(Task { [lister] in await lister.page(of: folder) })
            started += 1
        }
        let task = tasks.removeFirst()
        let running = tasks
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
            for other in running { other.cancel() }
        }
        try Task.checkCancellation()
        return finish(result)
    }

    func stop() { for task in tasks { task.cancel() } }

    private mutating func finish(_ result: Result<FolderPage, DownloadError>) -> SourcePage {
        let folder = folders[done]
        folders[done] = WebEntry(path: "", url: "")
        done += 1
        switch result {
        case .failure(let error):
            return SourcePage(faults: [SourceFault(folder.path + "/", Self.reason(error), isIncomplete: true)])
        case .success(let found):
            var page = SourcePage(found.files, faults: found.faults, leftOut: found.leftOut)
            page.notes = found.notes
            for child in found.folders {
                // The depth of a folder in the place is the number of its parts, and the place itself is the first.
                let depth = child.path.utf8.count { $0 == UInt8(ascii: "/") } + 2
                if client.leavesOutFolder(child.path) { continue }
                guard depth <= client.choice.depth else {
                    if !client.choice.isDepthChosen {
                        page.faults.append(
                            SourceFault(
                                child.path + "/",
                                "it lies deeper than the \(client.choice.depth) levels that are listed: raise the depth, or name it itself",
                                isIncomplete: true))
                    }
                    continue
                }
                guard folders.count < Self.maxFolders else {
                    page.faults.append(
                        SourceFault(
                            child.path + "/", "the place has more than \(Self.maxFolders) folders", isIncomplete: true))
                    continue
                }
                folders.append(child)
            }
            return page
        }
    }

    /// The reason of an error, as a clause.
    static func reason(_ error: DownloadError) -> String {
        var text = error.message
        if text.hasSuffix(".") { text.removeLast() }
        return "it cannot be listed: \(text)"
    }
}

/// Asks for the entries of single folders in the way that the server has for them.
struct FolderLister: Sendable {
    /// The place, after redirects.
    let root: WebEntry
    private let scope: SourceScope
    private let usesDAV: Bool
    private let client: SourceClient

    private static let accept = "text/html, application/xhtml+xml;q=0.9, application/json;q=0.8, */*;q=0.1"
    private static let properties = Array(
        """
        <?xml version="1.0" encoding="utf-8"?>
        <propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getetag/><getlastmodified/></prop></propfind>
        """.utf8)

    /// Asks for the place itself: by WebDAV if the server says that it has it, else for its listing.
    static func begin(
        at place: SourcePlace, _ client: SourceClient
    ) async throws(DownloadError) -> (FolderLister, FolderPage) {
        let url = place.address ?? place.title
        var options = SourceRequest(url)
        options.method = "OPTIONS"
        options.statuses = Set(200...599).subtracting([401, 407, 429, 500, 502, 503, 504])
        options.isTriedOnce = true
        // A folder whose listing is remembered has no WebDAV. Whatever goes wrong here shows again with the listing.
        if client.memory?.knows(listing(url)) != true, let answer = try? await client.get(options),
            answer.head.status < 300, answer.head.hasDAV, let found = try await dav(answer.head.url, place, client)
        {
            return found
        }
        let answer = try await get(url, client)
        let lister = try FolderLister(at: answer.head.url, usesDAV: false, place, client)
        return (lister, await lister.withDigests(try lister.read(answer, of: lister.root), lister.root))
    }

    /// The place by WebDAV; nil if the server does not answer so for this folder.
    private static func dav(
        _ url: String, _ place: SourcePlace, _ client: SourceClient
    ) async throws(DownloadError) -> (FolderLister, FolderPage)? {
        let lister = try FolderLister(at: url, usesDAV: true, place, client)
        let answer: SourceAnswer
        do { answer = try await lister.propfind(lister.root) } catch {
            guard error.code == .httpStatus, let status = error.status, (200..<500).contains(status), status != 429
            else { throw error }
            return nil
        }
        return (lister, await lister.withDigests(try lister.readDAV(answer, of: lister.root), lister.root))
    }

    /// - Parameter url: the URL of the place after redirects.
    private init(at url: String, usesDAV: Bool, _ place: SourcePlace, _ client: SourceClient) throws(DownloadError) {
        let base = String(url.prefix { $0 != "?" && $0 != "#" })
        guard base.hasSuffix("/"), let scope = SourceScope(base) else {
            throw DownloadError(
                .redirect, "The folder redirects to \(url.masked), which is no folder.", url: place.title.masked)
        }
        root = WebEntry(path: "", url: base)
        self.scope = scope
        self.usesDAV = usesDAV
        self.client = client
    }

    func page(of folder: WebEntry) async -> Result<FolderPage, DownloadError> {
        do throws(DownloadError) {
            if usesDAV {
                return .success(await withDigests(try readDAV(try await propfind(folder), of: folder), folder))
            }
            return .success(await withDigests(try read(try await Self.get(folder.url, client), of: folder), folder))
        } catch {
            return .failure(error)
        }
    }

    private static func listing(_ url: String) -> SourceRequest {
        var request = SourceRequest(url)
        request.headers = [HeaderField("Accept", accept)]
        return request
    }

    private static func get(_ url: String, _ client: SourceClient) async throws(DownloadError) -> SourceAnswer {
        do throws(DownloadError) { return try await client.get(listing(url)) } catch {
            guard error.status == 404 || error.status == 410 else { throw error }
            var error = error
            error.code = .notFound
            error.message = "The server answered \(error.status ?? 404): it has no such folder."
            throw error
        }
    }

    private func propfind(_ folder: WebEntry) async throws(DownloadError) -> SourceAnswer {
        var request = SourceRequest(folder.url)
        request.method = "PROPFIND"
        request.headers = [HeaderField("Depth", "1"), HeaderField("Content-Type", "application/xml; charset=utf-8")]
        request.body = Self.properties
        request.statuses = [207]
        return try await client.get(request)
    }

    // MARK: Digests

    /// The names of lists of digests, the strongest first. Their algorithm is that of their digests.
    private static let digestLists = [
        "SHA512SUMS", "sha512sum.txt", "SHA512SUMS.txt", "SHA256SUMS", "sha256sum.txt", "SHA256SUMS.txt",
        "sha256sums.txt",
        "CHECKSUM", "SHA1SUMS", "sha1sum.txt", "MD5SUMS", "md5sum.txt", "md5sums.txt",
    ]

    /// The same page, whose files have the digests that the folder's own lists name. A list that cannot be read is a fault: the owner
    /// has asked for its word.
    private func withDigests(_ page: FolderPage, _ folder: WebEntry) async -> FolderPage {
        guard client.choice.takesDigests else { return page }
        let prefix = folder.path.isEmpty ? "" : folder.path + "/"
        var places: [ExactText: Int] = [:]
        for (index, file) in page.files.enumerated() { if let name = file.name { places[ExactText(name)] = index } }
        var page = page
        for list in Self.digestLists {
            guard let index = places[ExactText(prefix + list)], let url = page.files[index].sources.first?.url else {
                continue
            }
            do {
                let answer = try await client.get(url)
                var reading = Manifest.Reading()
                // A name that leaves the folder is none of its files.
                reading.skipsBadEntries = true
                let manifest = try Manifest(parsing: answer.bytes, as: .checksums, fileName: list, reading)
                if manifest.entries.isEmpty, let fault = manifest.faults.first { throw fault }
                var count = 0
                for entry in manifest.entries {
                    guard let name = entry.name.map(\.plainListedPath), let place = places[ExactText(prefix + name)]
                    else {
                        continue
                    }
                    for digest in entry.digests
                    where !page.files[place].digests.contains(where: { $0.algorithm == digest.algorithm }) {
                        page.files[place].digests.append(digest)
                        count += 1
                    }
                }
                page.notes.append("\(prefix)\(list) has the digests of \(count) \(count == 1 ? "file" : "files")")
            } catch {
                let reason = (error as? DownloadError)?.message ?? "\(error)"
                page.faults.append(
                    SourceFault(
                        prefix + list,
                        "its digests cannot be used: \(reason.hasSuffix(".") ? String(reason.dropLast()) : reason)",
                        isIncomplete: false))
            }
        }
        return page
    }

    // MARK: Answers

    /// Checks that the answer comes from the folder that was asked.
    private func check(_ answer: SourceAnswer, of folder: WebEntry) throws(DownloadError) {
        guard scope.name(of: answer.head.url) == folder.path + (folder.path.isEmpty ? "" : "/") else {
            throw DownloadError(
                .redirect, "It redirects to \(answer.head.url.masked), which is another place.", url: folder.url.masked)
        }
    }

    private func read(_ answer: SourceAnswer, of folder: WebEntry) throws(DownloadError) -> FolderPage {
        try check(answer, of: folder)
        if let coding = answer.head.contentCoding {
            throw DownloadError(
                .encodedBody, "The server sent the listing as \(coding), which was not requested.",
                url: folder.url.masked)
        }
        let type = answer.head["Content-Type"]?.prefix { $0 != ";" }.lowercased() ?? ""
        let start = answer.bytes.first { $0 > 0x20 }
        do throws(ListingFault) {
            if type.hasSuffix("json") || start == UInt8(ascii: "[") {
                return try JSONListing.read(answer.bytes, in: folder, scope, base: answer.head.url)
            }
            guard type.isEmpty || type == "text/html" || type == "application/xhtml+xml" else {
                throw ListingFault("it is \(type.isEmpty ? "a file" : type)")
            }
            return try HTMLListing.read(answer.bytes, in: folder, scope, base: answer.head.url)
        } catch {
            throw DownloadError(
                .protocolViolation, "The answer is no listing of a folder: \(error.reason).", url: folder.url.masked)
        }
    }

    private func readDAV(_ answer: SourceAnswer, of folder: WebEntry) throws(DownloadError) -> FolderPage {
        try check(answer, of: folder)
        do throws(ListingFault) {
            return try DAVListing.read(answer.bytes, in: folder, scope, base: answer.head.url)
        } catch {
            throw DownloadError(
                .protocolViolation, "The answer of WebDAV cannot be read: \(error.reason).", url: folder.url.masked)
        }
    }
}

/// The reason why a listing cannot be used, as a clause.
struct ListingFault: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

extension ResponseHead {
    /// True if the server says that the resource has WebDAV of class 1 (RFC 4918 section 10.1).
    fileprivate var hasDAV: Bool {
        self["DAV"]?.split(separator: ",").contains { $0.trimmingPrefix(" ").prefix { $0 != " " } == "1" } ?? false
    }
}
