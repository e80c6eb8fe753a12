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
package struct RecordSource: NamedSource {
    /// The servers that names lead to.
    package struct Servers: Sendable {
        /// The resolver of DOIs.
        package var doi = "https://doi.org"
        /// Zenodo.
        package var zenodo = "https://zenodo.org"
        /// DataCite's API.
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
            zenodoToken = environment["ZENODO_TOKEN"].flatMap(HubToken.clean)
        }
    }

    private enum Name: Hashable {
        case doi(String)
        case zenodo(String)
        case url(String)
    }

    /// As given: it is the origin of the barrel.
    package let title: String
    private let name: Name
    private let servers: Servers
    /// The form of the list at a URL; nil recognises it.
    package var form: Manifest.Form?
    /// The settings for reading it. Without a base, relative URLs are below the folder of the list's own.
    package var reading = Manifest.Reading()

    /// True for a text that names a record, or looks like it.
    package static func isOne(_ text: String) -> Bool {
        ["doi:", "zenodo:", "https://", "http://"].contains { text.lowercased().hasPrefix($0) }
    }

    /// Reads a name.
    ///
    /// - Throws: `.invalidArgument` for a malformed one.
    package init(_ text: String, _ servers: Servers) throws(DownloadError) {
        self.servers = servers
        let rest = String(text[(text.firstIndex(of: ":").map(text.index(after:)) ?? text.startIndex)...])
        switch text.prefix(while: { $0 != ":" }).lowercased() {
        case "doi" where Self.isDOI(rest):
            name = .doi(rest)
            title = "doi:\(rest)"
        case "zenodo" where !rest.isEmpty && rest.utf8.allSatisfy(\.isASCIIDigit):
            name = .zenodo(rest)
            title = "zenodo:\(rest)"
        case "https", "http":
            if let fault = InputURL.fault(in: text) { throw DownloadError(.invalidArgument, "\(fault).") }
            let url = try URLNormalizer.normalize(text)
            let path = ["https://doi.org/", "https://dx.doi.org/", "\(servers.doi)/"].first { url.hasPrefix($0) }
            let doi = path.flatMap { PercentCoding.decodedString(Array(url.dropFirst($0.count).utf8)[...]) }
            name = if let doi, Self.isDOI(doi) { .doi(doi) } else { .url(url) }
            title = url
        default:
            throw DownloadError(
                .invalidArgument,
                "'\(Escaping.visible(text))' is no record: write doi:10.X/Y, zenodo:NUMBER or its URL.")
        }
    }

    /// A DOI leads to any server.
    package var secretOrigin: String {
        switch name {
        case .doi: ""
        case .zenodo: servers.zenodo
        case .url(let url): url
        }
    }

    package var folderName: String? {
        switch name {
        case .doi(let text), .zenodo(let text), .url(let text):
            let path = text.prefix { $0 != "?" && $0 != "#" }
            return path.split(separator: "/").last.map {
                PercentCoding.decodedString(Array($0.utf8)[...]) ?? String($0)
            }
        }
    }

    private static func isDOI(_ text: String) -> Bool {
        guard let slash = text.firstIndex(of: "/"), text.hasPrefix("10.") else { return false }
        return text.index(after: slash) != text.endIndex && text.utf8.count <= 2_048
            && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
    }

    package func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        var search = search(options, latest: false, over: transport)
        let found = try await find(by: &search)
        var pages = SourcePages(ServerList(found.form), include: include, exclude: exclude)
        do { try await search.read(found.content, title, into: &pages, take) } catch let error as ManifestError {
            throw DownloadError(.protocolViolation, "The list cannot be read. \(error)", url: title)
        }
        var list = pages.list
        list.origin = title
        list.commit = found.version
        list.unpacker = found.unpacker
        return list
    }

    package func version(
        _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> String? {
        var search = search(options, latest: true, over: transport)
        return try await find(by: &search).version
    }

    // MARK: The search

    private func search(_ options: TaskOptions, latest: Bool, over transport: any Transport) -> RecordSearch {
        let first =
            switch name {
            case .doi: servers.doi
            case .zenodo: servers.zenodo
            case .url(let url): url
            }
        return RecordSearch(
            transport: transport, servers: servers, options: options, origin: URLOrigin(secretOrigin),
            latest: latest, first: first, form: form, given: reading)
    }

    private func find(by search: inout RecordSearch) async throws(DownloadError) -> RecordSearch.Found {
        let found: RecordSearch.Found?
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
        throw DownloadError(
            .notFound,
            "\(title): no server lists its files. Asked: \(search.asked.joined(separator: ", "))." + search.advice)
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
        case document(bytes: [UInt8], ServerListReader)
        /// URLs from a link field or a record.
        case urls([String])
        /// The first page of a dataset, and the URL of the others without their offset.
        case pages(first: [UInt8], ServerListReader, address: String)
    }

    let transport: any Transport
    let servers: RecordSource.Servers
    let options: TaskOptions
    /// The origin that the secrets of the options were given for; nil for none.
    let origin: URLOrigin?
    /// True asks for the latest version of a record, not the one that is named.
    let latest: Bool
    /// The URL that the user names.
    let first: String
    /// The form that the user names, and the settings for reading.
    let form: Manifest.Form?
    let given: Manifest.Reading
    /// The URLs that were asked, without secrets, with the reason why they list no files.
    private(set) var asked: [String] = []
    /// The number of documents that were asked for because a page links to them.
    private var links = 0
    /// True if an answer says that a login is needed.
    private var isRefused = false

    init(
        transport: any Transport, servers: RecordSource.Servers, options: TaskOptions, origin: URLOrigin?, latest: Bool,
        first: String, form: Manifest.Form?, given: Manifest.Reading
    ) {
        self.form = form
        self.given = given
        self.transport = transport
        self.servers = servers
        self.options = options
        self.origin = origin
        self.latest = latest
        self.first = first
    }

    /// The most documents that are asked for because pages link to them.
    static let maxLinks = 20
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

    /// The list at a URL, in the order of `RecordSource`.
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
        return found.flatMap { InputURL.fault(in: $0) == nil ? $0 : nil }
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

    /// Reads the files of a list, a page at a time.
    ///
    /// - Throws: `ManifestError` if a page cannot be read; `DownloadError`; the errors of `take`.
    mutating func read(
        _ content: Content, _ title: String, into pages: inout SourcePages,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws {
        switch content {
        case .urls(let urls): try pages.add(urls.map { .init(sources: [.init($0)]) }, .record, take)
        case .document(let bytes, let reader): _ = try pages.add(bytes, reader, from: title, take)
        case .pages(let first, let reader, let address):
            var count = try pages.add(first, reader, from: title, take)
            var offset = 0
            while count >= Self.pageSize {
                offset += Self.pageSize
                guard let page = try await get(address + "\(offset)", accept: Self.json), let bytes = page.bytes else {
                    throw DownloadError(
                        .protocolViolation,
                        "The list of files breaks off after \(offset) files: the server does not send the next page.",
                        url: URLMasking.mask(address + "\(offset)"))
                }
                count = try pages.add(bytes, ServerListReader(.record, reading(page.head)), from: title, take)
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

    /// A list of URLs.
    private static func found(_ urls: [String]) -> Found? {
        let urls = urls.filter { InputURL.fault(in: $0) == nil }
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
        reading.baseURL = reading.baseURL ?? BaseURL.folder(of: head.url)
        return reading
    }

    /// Reads a document to its end, and keeps none of its files.
    ///
    /// - Parameter isNamed: true for the document at the URL that the owner names: it has to be a list. Any other may be anything.
    /// - Returns: nil for a document that is no list; the reason is noted.
    /// - Throws: `.protocolViolation` for a malformed list that the owner names.
    private mutating func list(
        _ packed: [UInt8], _ head: ResponseHead, isNamed: Bool = false
    ) throws(DownloadError) -> Found? {
        var bytes = packed
        var name = FileNameRules.name(url: head.url, head: nil)
        let unpacker = Unpacker(packed)
        if let unpacker {
            do { bytes = try unpacker.unpacked(packed, limit: SourcePages.maxBytes) } catch {
                noteReason((error as? Unpacker.Fault)?.reason ?? "\(error)")
                return nil
            }
            name = unpacker.plainName(name)
        }
        let unread = ServerListReader(isNamed ? form : nil, fileName: name, reading(head))
        do {
            var reader = unread
            let version = ListVersion()
            let list = try reader.read(bytes) { files, _ in version.add(files) }
            if reader.count > 0 || list.faultCount > 0 {
                return Found(
                    form: list.form, version: (list.form == .record ? list.commit : nil) ?? version.text,
                    content: .document(bytes: bytes, unread), unpacker: unpacker)
            }
            noteReason("names no files")
        } catch let error as ManifestError {
            // Only a list has places for its faults.
            if isNamed, error.form != nil, error.form != .urls, error.line > 0 {
                throw DownloadError(
                    .protocolViolation, "The list cannot be read. \(error)", url: URLMasking.mask(head.url))
            }
            if let restriction = Self.restriction(in: bytes) {
                isRefused = true
                noteReason("its files are \(restriction)")
            } else {
                noteReason(error.description)
            }
            return nil
        } catch {
            throw DownloadError(wrapping: error, code: .protocolViolation, message: "The list cannot be read.")
        }
        if let restriction = Self.restriction(in: bytes), let last = asked.indices.last {
            isRefused = true
            asked[last] = asked[last].replacing(" (names no files)", with: " (its files are \(restriction))")
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

    private mutating func noteReason(_ reason: String) {
        guard let last = asked.indices.last, !asked[last].hasSuffix(")") else { return }
        asked[last] += " (\(reason))"
    }

    private static func value(_ bytes: [UInt8]?) -> JSONReader.Value? {
        var reader = JSONReader(bytes ?? [])
        return try? reader.value()
    }

    /// The answer to a request; nil if the server has none. A web page has no bytes.
    private mutating func get(_ url: String, accept: String) async throws(DownloadError) -> DocumentRequest.Answer? {
        var request = DocumentRequest(url: try URLNormalizer.normalize(url), options: options)
        asked.append(URLMasking.mask(url))
        guard mayAsk(request.url) else {
            noteReason("not asked: it is at a loopback or private address")
            return nil
        }
        request.allowsPrivateRedirect = false
        request.headers = [HeaderField("Accept", accept)]
        request.origin = origin
        if let token = servers.zenodoToken, URLOrigin(request.url) == URLOrigin(servers.zenodo) {
            request.headers.append(HeaderField("Authorization", "Bearer \(token)"))
            request.secretHeaders = ["authorization"]
        }
        request.isWanted = { head in
            let type = head["Content-Type"]?.prefix { $0 != ";" }.lowercased() ?? ""
            return type != "text/html" && type != "application/xhtml+xml"
        }
        do {
            let answer = try await request.fetch(over: transport)
            if answer.bytes == nil { noteReason("a web page") }
            return answer
        } catch {
            guard let status = error.status, Self.absent.contains(status) else { throw error }
            if status == 401 || status == 403 { isRefused = true }
            noteReason("HTTP \(status)")
            return nil
        }
    }

    /// False for a loopback or private address, unless the user's own URL is at one.
    private func mayAsk(_ url: String) -> Bool {
        guard let host = URLOrigin(url)?.host, AddressClass.isPrivate(host: host) == true else { return true }
        return URLOrigin(first).map { AddressClass.isPrivate(host: $0.host) == true || $0.host == host } ?? false
    }
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
