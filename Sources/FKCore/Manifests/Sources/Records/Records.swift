import FKMiddleware
import FKTransport
import Foundation

/// A record of a repository: `doi:10.x/y`, `zenodo:ID`, or the URL of a record, of its landing page or of a list.
///
/// What is asked, until one answer lists files:
///
/// 1. the DOI's resolver, for the URL of the record;
/// 2. the API of Zenodo (InvenioRDM) or Dataverse, where that URL is of their form: it has sizes and digests;
/// 3. the URL itself. An answer that is no web page is a list of any form;
/// 4. the page's links (FAIR Signposting): `describedby` to an RO-Crate or Croissant, `linkset`, and `item`;
/// 5. the page in JSON-LD, by content negotiation;
/// 6. DataCite, for the URLs of a DOI's files.
///
/// Other hosts than the user's are asked only if an answer names them: at most 20 documents that pages link to, and no loopback or
/// private address unless the user's own URL has one.
package struct Records: Source {
    /// The servers that names lead to.
    package struct Servers: Sendable {
        /// The resolver of DOIs.
        package var doi = "https://doi.org"
        package var zenodo = "https://zenodo.org"
        package var dataCite = "https://api.datacite.org"
        /// The token of Zenodo, `ZENODO_TOKEN`, which goes to that server alone; nil for none.
        package var zenodoToken: String?

        /// The servers, or those that `FK_DOI_ENDPOINT`, `FK_ZENODO_ENDPOINT` and `FK_DATACITE_ENDPOINT` name.
        package init(_ environment: [String: String]) {
            func server(_ name: String, _ usual: String) -> String {
                guard let text = environment[name], !text.isEmpty else { return usual }
                return text.hasSuffix("/") ? String(text.dropLast()) : text
            }
            doi = server("FK_DOI_ENDPOINT", doi)
            zenodo = server("FK_ZENODO_ENDPOINT", zenodo)
            dataCite = server("FK_DATACITE_ENDPOINT", dataCite)
            zenodoToken = environment["ZENODO_TOKEN"].flatMap(SourceSecret.token)
        }
    }

    private enum Name: Hashable {
        case doi(String)
        case zenodo(String)
        case url(String)

        /// - Throws: `.invalidArgument` for a malformed one.
        init(_ reference: SourceReference, _ servers: Servers) throws(DownloadError) {
            let rest = reference.rest
            switch reference.scheme {
            case "doi" where Self.isDOI(rest): self = .doi(rest)
            case "zenodo" where rest.utf8.allSatisfy(\.isASCIIDigit): self = .zenodo(rest)
            case "https", "http":
                let text = reference.description
                if let fault = text.urlFault { throw DownloadError(.invalidArgument, "\(fault).") }
                let url = try text.normalizedURL()
                let path = ["https://doi.org/", "https://dx.doi.org/", "\(servers.doi)/"].first { url.hasPrefix($0) }
                let doi = path.flatMap { url.dropFirst($0.count).percentDecoded }
                self = if let doi, Self.isDOI(doi) { .doi(doi) } else { .url(url) }
            default:
                throw DownloadError(
                    .invalidArgument,
                    "'\(reference.description.visible)' is no record: write doi:10.X/Y, zenodo:NUMBER or its URL."
                )
            }
        }

        private static func isDOI(_ text: String) -> Bool {
            guard let slash = text.firstIndex(of: "/"), text.hasPrefix("10.") else { return false }
            return text.index(after: slash) != text.endIndex && text.utf8.count <= 2_048
                && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
        }
    }

    /// The form of the list at a URL; nil recognises it.
    package var listForm: Manifest.Form?
    /// The settings for reading it. Without a base, relative URLs are below the folder of the list's own.
    package var reading = Manifest.Reading()

    package init() {}

    /// `doi` and `zenodo`. The URL of a record is one of a folder too, so it is no scheme of this source: a command decides.
    package var schemes: [String] { ["doi", "zenodo"] }
    package var form: String { "doi:10.X/Y or zenodo:NUMBER" }

    /// Reads a name, or the URL of a record. A DOI leads to any server, so none gets the owner's secrets.
    package func place(
        of reference: SourceReference, in environment: [String: String]
    ) throws(DownloadError) -> SourcePlace {
        let servers = Servers(environment)
        let name = try Name(reference, servers)
        let (text, address): (String, String?) =
            switch name {
            case .doi(let text): (text, nil)
            case .zenodo(let id): (id, servers.zenodo)
            case .url(let url): (url, url)
            }
        let last = text.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").last.map {
            $0.percentDecoded ?? String($0)
        }
        var title = reference.description
        if reference.scheme.hasPrefix("http") { title = try title.normalizedURL() }
        var place = SourcePlace(
            reference, title: title, folderName: last ?? reference.scheme, address: address, pinsFiles: true)
        if address == nil { place.first = servers.doi }
        return place
    }

    /// The files of a record, of the version that it has now.
    package func pages(
        of place: SourcePlace, _ client: SourceClient
    ) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            var search = search(client, latest: false)
            let found = try await find(place, by: &search)
            do { try await search.read(found, send) } catch let error as ManifestError {
                throw DownloadError(.protocolViolation, "The list cannot be read. \(error)", url: place.title.masked)
            }
        }
    }

    /// The latest version of a record; for a list without versions, a digest of its entries.
    package func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String? {
        var search = search(client, latest: true)
        return try await find(place, by: &search).version
    }

    // MARK: The search

    private func search(_ client: SourceClient, latest: Bool) -> RecordSearch {
        RecordSearch(
            client: client, servers: Servers(client.environment), latest: latest, form: listForm, given: reading)
    }

    private func find(
        _ place: SourcePlace, by search: inout RecordSearch
    ) async throws(DownloadError) -> RecordSearch.Found {
        let servers = search.servers
        let found: RecordSearch.Found?
        let name = try Name(place.reference, servers)
        switch name {
        case .zenodo(let id): found = try await search.invenio("\(servers.zenodo)/records/\(id)")
        case .url(let url): found = try await search.record(at: url)
        case .doi(let doi):
            let path = BaseURL.encoded(doi)
            let url =
                try await search.resolve("\(servers.doi)/api/handles/\(path)?type=URL") ?? "\(servers.doi)/\(path)"
            if let record = try await search.record(at: url) {
                found = record
            } else {
                found = try await search.dataCite("\(servers.dataCite)/dois/\(path.replacing("/", with: "%2F"))")
            }
        }
        if let found { return found }
        if case .url(let url) = name, search.asked.count == 1, let status = search.status {
            throw DownloadError(
                .httpStatus,
                "The list cannot be fetched: the server answered with HTTP \(status)."
                    + ([401, 403].contains(status) ? " It may need a login." : ""), url: url.masked,
                status: status)
        }
        if case .url(let url) = name, search.asked.count == 1, search.isEmptyList {
            throw DownloadError(.invalidArgument, "The list is empty: it names no URL.", url: url.masked)
        }
        throw DownloadError(
            .notFound,
            "\(place.title.masked): no server lists its files. Asked: \(search.asked.joined(separator: ", "))."
                + search.advice
        )
    }
}

/// The requests for a record's files.
private struct RecordSearch {
    /// The list that a search has found.
    struct Found {
        var form: Manifest.Form
        var version: String
        var content: Content
        /// The program that has unpacked it.
        var unpacker: Unpacker?
    }

    /// The source of the files of a list.
    enum Content {
        /// A document that was read once, so that it is known to be a list.
        case document(bytes: [UInt8], ServerList.Reader)
        /// URLs from a link field or a record.
        case urls([String])
        /// The first page of a dataset, and the URL of the others without their offset.
        case pages(first: [UInt8], ServerList.Reader, address: String)
    }

    let client: SourceClient
    let servers: Records.Servers
    /// True asks for the latest version of a record, not the one that is named.
    let latest: Bool
    /// The form that the user names, and the settings for reading.
    let form: Manifest.Form?
    let given: Manifest.Reading
    /// The URLs that were asked, without secrets, with the reason why they list no files.
    private(set) var asked: [String] = []
    /// The number of documents that were asked for because a page links to them.
    private var links = 0
    /// The status code of the last answer that was refused; nil for none.
    private(set) var status: Int?
    /// True if an answer says that a login is needed.
    private var isRefused = false
    /// True if the document at the URL that the owner names is a list without files.
    private(set) var isEmptyList = false

    init(
        client: SourceClient, servers: Records.Servers, latest: Bool, form: Manifest.Form?, given: Manifest.Reading
    ) {
        self.client = client
        self.servers = servers
        self.latest = latest
        self.form = form
        self.given = given
    }

    /// The most documents that are asked for because pages link to them.
    static let maxLinks = 20
    /// The maximum size of an unpacked list.
    private static let maxUnpacked = 1 << 30
    /// The files on a page of a list.
    private static let pageSize = 1_000
    /// The status codes that mean that a server has no list: it is looked for elsewhere.
    private static let absent = [400, 401, 403, 404, 405, 406, 410, 415]
    private static let json = "application/json"

    /// The remedy, after a blank; empty if there is none.
    var advice: String {
        isRefused && servers.zenodoToken == nil
            ? " The files may need a login: for Zenodo, set ZENODO_TOKEN to a token that has access." : ""
    }

    /// The list at a URL, in the order of `Records`.
    mutating func record(at url: String) async throws(DownloadError) -> Found? {
        if let found = try await known(url) { return found }
        guard let page = try await get(url, accept: "text/html, */*;q=0.5") else { return nil }
        if let bytes = page.bytes { return try list(bytes, page.head, isNamed: true) }
        // The landing page itself may be of a known form behind its redirects.
        if page.head.url != url, let found = try await known(page.head.url) { return found }
        let links = LinkField.parse(page.head.values(of: "Link")).compactMap { link in
            URL(string: link.target, relativeTo: URL(string: page.head.url)).map { (link, $0.absoluteString) }
        }
        for (link, target) in links where link.relations.contains("describedby") && Self.isList(link) {
            if let found = try await linked(target, accept: "application/ld+json, application/json") { return found }
        }
        for (link, target) in links
        where link.relations.contains("linkset") && link.parameters["type"] == "application/linkset+json" {
            if let found = try await linked(target, accept: "application/linkset+json") { return found }
        }
        let items = links.filter { $0.0.relations.contains("item") }.map(\.1)
        if !items.isEmpty { return Self.found(items) }
        return try await document(page.head.url, accept: "application/ld+json")
    }

    /// The files of a record whose URL shows what server it is on.
    private mutating func known(_ url: String) async throws(DownloadError) -> Found? {
        if let found = try await invenio(url) { return found }
        return try await dataverse(url)
    }

    /// Zenodo and other InvenioRDM servers: `/records/ID` or `/record/ID`.
    mutating func invenio(_ url: String) async throws(DownloadError) -> Found? {
        let parts = url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
        guard parts.count == 4 || parts.count == 5 && parts[2] == "api", let id = parts.last,
            ["record", "records"].contains(parts[parts.count - 2])
        else { return nil }
        let api = "\(parts[0])//\(parts[1])/api/records/\(id)"
        if latest, let found = try await document("\(api)/versions/latest", accept: Self.json) { return found }
        return try await document(api, accept: Self.json)
    }

    /// Dataverse: its pages of datasets have `persistentId`.
    private mutating func dataverse(_ url: String) async throws(DownloadError) -> Found? {
        guard let query = url.split(separator: "?", maxSplits: 1).dropFirst().first,
            let id = query.split(separator: "&").first(where: { $0.hasPrefix("persistentId=") })
        else { return nil }
        let versions = "\(RecordBase(url).origin)/api/datasets/:persistentId/versions/"
        let answer = try await get("\(versions):latest-published?\(id)&excludeFiles=true", accept: Self.json)
        guard let data = answer.flatMap({ Self.value($0.bytes) })?.object?["data"]?.object,
            let major = data["versionNumber"]?.integer, let minor = data["versionMinorNumber"]?.integer
        else { return nil }
        let address = "\(versions)\(major).\(minor)/files?\(id)&limit=\(Self.pageSize)&offset="
        guard let found = try await document(address + "0", accept: Self.json),
            case .document(let bytes, let reader) = found.content
        else { return nil }
        return Found(
            form: found.form, version: "\(major).\(minor)",
            content: .pages(first: bytes, reader, address: address))
    }

    /// The URL of a DOI, as the resolver's API tells it; nil if it tells none.
    mutating func resolve(_ url: String) async throws(DownloadError) -> String? {
        let answer = try await get(url, accept: Self.json)
        let values = answer.flatMap { Self.value($0.bytes) }?.object?["values"]?.array ?? []
        let found = values.first { $0.object?["type"]?.string == "URL" }?.object?["data"]?.object?["value"]?.string
        return found.flatMap { $0.urlFault == nil ? $0 : nil }
    }

    /// The URLs that DataCite has of a DOI's files.
    mutating func dataCite(_ url: String) async throws(DownloadError) -> Found? {
        let answer = try await get(url, accept: "application/vnd.api+json")
        let data = answer.flatMap { Self.value($0.bytes) }?.object?["data"]?.object
        let content = data?["attributes"]?.object?["contentUrl"]
        let urls = (content?.array ?? [content].compactMap(\.self)).compactMap(\.string)
        return urls.isEmpty ? nil : Self.found(urls)
    }

    // MARK: The files

    /// Hands the files of a list over, a page at a time.
    ///
    /// - Throws: `ManifestError` if a page cannot be read; `DownloadError`.
    mutating func read(
        _ found: Found, _ send: SourcePageSender
    ) async throws {
        switch found.content {
        case .urls(let urls):
            var page = SourcePage(urls.map { .init(sources: [.init($0)]) }, version: found.version)
            (page.form, page.list) = (.record, ServerList(.record))
            try await send(page)
        case .document(let bytes, let reader):
            _ = try await send.list(bytes, reader, version: found.version, unpacker: found.unpacker)
        case .pages(let first, let reader, let address):
            var count = try await send.list(first, reader, version: found.version)
            var offset = 0
            while count >= Self.pageSize {
                offset += Self.pageSize
                guard let page = try await get(address + "\(offset)", accept: Self.json), let bytes = page.bytes else {
                    throw DownloadError(
                        .protocolViolation,
                        "The list of files breaks off after \(offset) files: the server does not send the next page.",
                        url: (address + "\(offset)").masked)
                }
                let reader = ServerList.Reader(.record, reading(page.head))
                count = try await send.list(bytes, reader, version: found.version)
            }
        }
    }

    // MARK: Answers

    /// True for a link to a document that lists files.
    private static func isList(_ link: LinkField) -> Bool {
        let profile = link.parameters["profile"]?.lowercased() ?? ""
        return profile.contains("ro/crate") || profile.contains("croissant")
            || link.parameters["type"] == "application/ld+json"
    }

    private static func found(_ urls: [String]) -> Found? {
        let urls = urls.filter { $0.urlFault == nil }
        guard !urls.isEmpty else { return nil }
        let version = ListVersion()
        version.add(urls.map { .init(sources: [.init($0)]) })
        return Found(form: .record, version: version.text, content: .urls(urls))
    }

    /// The list in a document that a page links to; nil beyond `maxLinks`.
    private mutating func linked(_ url: String, accept: String) async throws(DownloadError) -> Found? {
        guard links < Self.maxLinks else {
            if links == Self.maxLinks { asked.append("and at most \(Self.maxLinks) links of pages") }
            links = Self.maxLinks + 1
            return nil
        }
        links += 1
        return try await document(url, accept: accept)
    }

    /// The list in a document; nil if there is no document, or it is none.
    private mutating func document(_ url: String, accept: String) async throws(DownloadError) -> Found? {
        guard let answer = try await get(url, accept: accept), let bytes = answer.bytes else { return nil }
        return try list(bytes, answer.head)
    }

    private func reading(_ head: ResponseHead) -> Manifest.Reading {
        var reading = given
        reading.baseURL = reading.baseURL ?? head.url.urlFolder
        return reading
    }

    /// Reads a document to its end, and keeps none of its files.
    ///
    /// - Parameter isNamed: true for the document at the URL that the owner names: it has to be a list. Any other may be anything.
    /// - Returns: nil for a document that is no list; the reason is noted.
    /// - Throws: `.invalidArgument` for a malformed list that the owner names, as for one in a file. Only a document that says to be
    ///   text counts as a list of URLs.
    private mutating func list(
        _ packed: [UInt8], _ head: ResponseHead, isNamed: Bool = false
    ) throws(DownloadError) -> Found? {
        var bytes = packed
        var name = FileNameRules.name(url: head.url, head: nil)
        let unpacker = Unpacker(packed)
        if let unpacker {
            do { bytes = try unpacker.unpacked(packed, limit: Self.maxUnpacked) } catch {
                recordReason((error as? Unpacker.Fault)?.reason ?? "\(error)")
                return nil
            }
            name = unpacker.plainName(name)
        }
        let unread = ServerList.Reader(isNamed ? form : nil, fileName: name, reading(head))
        do {
            var reader = unread
            let version = ListVersion()
            let list = try reader.read(bytes) { files, _ in version.add(files) }
            if reader.count > 0 || list.faultCount > 0 {
                return Found(
                    form: list.form, version: (list.form == .record ? list.commit : nil) ?? version.text,
                    content: .document(bytes: bytes, unread), unpacker: unpacker)
            }
            recordReason("names no files")
        } catch let error as ManifestError {
            // Only a list has places for its faults.
            if isNamed, let found = error.form, error.line > 0, found != .urls || form == .urls || Self.isText(head) {
                throw DownloadError(.invalidArgument, "The list cannot be read. \(error)", url: head.url.masked)
            }
            if let restriction = Self.restriction(in: bytes) {
                isRefused = true
                recordReason("its files are \(restriction)")
            } else {
                recordReason(error.description)
            }
            return nil
        } catch {
            throw DownloadError(wrapping: error, code: .protocolViolation, message: "The list cannot be read.")
        }
        if let restriction = Self.restriction(in: bytes), let last = asked.indices.last {
            isRefused = true
            asked[last] = asked[last].replacing(" (names no files)", with: " (its files are \(restriction))")
        } else if isNamed {
            isEmptyList = true
        }
        return nil
    }

    /// The word of a record of InvenioRDM for files that are not public; nil for any other document.
    private static func restriction(in bytes: [UInt8]) -> String? {
        let record = value(bytes)?.object
        let words = [
            record?["metadata"]?.object?["access_right"]?.string, record?["access"]?.object?["files"]?.string,
            record?["access"]?.object?["status"]?.string,
        ]
        return words.compactMap(\.self).first { ["restricted", "embargoed", "closed"].contains($0) }
    }

    private mutating func recordReason(_ reason: String) {
        guard let last = asked.indices.last, !asked[last].hasSuffix(")") else { return }
        asked[last] += " (\(reason))"
    }

    private static func value(_ bytes: [UInt8]?) -> JSONReader.Value? {
        var reader = JSONReader(bytes ?? [])
        return try? reader.value()
    }

    /// The answer to a request; nil if the server has none. A web page has no bytes.
    private mutating func get(
        _ url: String, accept: String
    ) async throws(DownloadError) -> (head: ResponseHead, bytes: [UInt8]?)? {
        var request = SourceRequest(try url.normalizedURL())
        asked.append(url.masked)
        guard client.mayAsk(URLOrigin(request.url)) else {
            recordReason("not asked: it is at a loopback or private address")
            return nil
        }
        request.headers = [HeaderField("Accept", accept)]
        if let token = servers.zenodoToken {
            request.secrets = [SourceSecret(HeaderField("Authorization", "Bearer \(token)"), for: servers.zenodo)]
        }
        request.isWanted = { !Self.isPage($0) }
        do {
            let answer = try await client.get(request)
            guard Self.isPage(answer.head) else { return (answer.head, answer.bytes) }
            recordReason("a web page")
            return (answer.head, nil)
        } catch {
            guard let status = error.status, Self.absent.contains(status) else { throw error }
            if status == 401 || status == 403 { isRefused = true }
            self.status = status
            recordReason("HTTP \(status)")
            return nil
        }
    }

    private static func type(_ head: ResponseHead) -> String {
        head["Content-Type"]?.prefix { $0 != ";" && $0 != " " }.lowercased() ?? ""
    }

    private static func isPage(_ head: ResponseHead) -> Bool {
        ["text/html", "application/xhtml+xml"].contains(type(head))
    }

    private static func isText(_ head: ResponseHead) -> Bool { type(head) == "text/plain" }
}

/// The version of a list that has none: a digest of its entries.
private struct ListVersion {
    private let digester = Digester(.sha256)

    func add(_ files: [Manifest.FileFacts]) {
        for file in files {
            let line = [file.name, file.size.map(String.init), file.digests.first?.hex, file.sources.first?.url]
            Array((line.map { $0 ?? "" }.joined(separator: "\t") + "\n").utf8).withUnsafeBytes { digester.update($0) }
        }
    }

    var text: String { digester.hex() }
}
