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

    private static func isDOI(_ text: String) -> Bool {
        guard let slash = text.firstIndex(of: "/"), text.hasPrefix("10.") else { return false }
        return text.index(after: slash) != text.endIndex && text.utf8.count <= 2_048
            && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
    }

    package func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> Manifest {
        let (form, parts, version) = try await search(options, latest: false, over: transport)
        var pages = SourcePages(Manifest(form: form), include: include, exclude: exclude)
        for part in parts { try pages.add(part, from: title) }
        var manifest = pages.manifest
        manifest.facts.origin = title
        manifest.facts.commit = version
        return manifest
    }

    package func version(
        _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> String? {
        try await search(options, latest: true, over: transport).version
    }

    // MARK: The search

    private func search(
        _ options: TaskOptions, latest: Bool, over transport: any Transport
    ) async throws(DownloadError) -> RecordSearch.Found {
        var search = RecordSearch(transport: transport, servers: servers, options: options, latest: latest)
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
            .notFound, "\(title): no server lists its files. Asked: \(search.asked.joined(separator: ", ")).")
    }
}

/// The requests for a record's files.
private struct RecordSearch {
    typealias Found = (form: Manifest.Form, pages: [Manifest], version: String)

    let transport: any Transport
    let servers: RecordSource.Servers
    let options: TaskOptions
    /// True asks for the latest version of a record, not the one that is named.
    let latest: Bool
    /// The URLs that were asked, without secrets.
    private(set) var asked: [String] = []

    /// The files on a page of a list.
    private static let pageSize = 1_000
    /// What an answer means that has no list: it is looked for elsewhere.
    private static let absent = [400, 401, 403, 404, 405, 406, 410, 415]
    private static let json = "application/json"

    /// The list at a URL, in the order of `RecordSource`.
    mutating func record(at url: String) async throws(DownloadError) -> Found? {
        if let found = try await known(url) { return found }
        guard let page = try await get(url, accept: "text/html, */*;q=0.5") else { return nil }
        if let bytes = page.bytes { return try list(bytes, page.head) }
        // The landing page itself may be of a known form behind its redirects.
        if page.head.url != url, let found = try await known(page.head.url) { return found }
        let links = LinkField.parse(page.head.values(of: "Link")).compactMap { link in
            URL(string: link.target, relativeTo: URL(string: page.head.url)).map { (link, $0.absoluteString) }
        }
        for (link, target) in links where link.relations.contains("describedby") && Self.isList(link) {
            if let found = try await document(target, accept: "application/ld+json, application/json") { return found }
        }
        for (link, target) in links
        where link.relations.contains("linkset") && link.parameters["type"] == "application/linkset+json" {
            if let found = try await document(target, accept: "application/linkset+json") { return found }
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
        var pages: [Manifest] = []
        while pages.count < SourcePages.maxPages {
            let offset = pages.count * Self.pageSize
            let page = "\(versions)\(major).\(minor)/files?\(id)&limit=\(Self.pageSize)&offset=\(offset)"
            guard let part = try await document(page, accept: Self.json)?.pages.first else { break }
            pages.append(part)
            if part.entries.count + part.faultCount != Self.pageSize { break }
        }
        return pages.isEmpty ? nil : (.record, pages, "\(major).\(minor)")
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

    // MARK: Answers

    /// True for a link to a document that lists files.
    private static func isList(_ link: LinkField) -> Bool {
        let profile = link.parameters["profile"]?.lowercased() ?? ""
        return profile.contains("ro/crate") || profile.contains("croissant")
            || link.parameters["type"] == "application/ld+json"
    }

    /// A list of URLs.
    private static func found(_ urls: [String]) -> Found? {
        var manifest = Manifest(form: .record)
        for url in urls where InputURL.fault(in: url) == nil { manifest.entries.append(.init(sources: [.init(url)])) }
        return manifest.entries.isEmpty ? nil : (.record, [manifest], version(of: manifest.entries))
    }

    /// The list in a document; nil if there is no document, or it is none.
    private mutating func document(_ url: String, accept: String) async throws(DownloadError) -> Found? {
        guard let answer = try await get(url, accept: accept), let bytes = answer.bytes else { return nil }
        return try list(bytes, answer.head)
    }

    private func list(_ bytes: [UInt8], _ head: ResponseHead) throws(DownloadError) -> Found? {
        var reading = Manifest.Reading()
        reading.baseURL = BaseURL.folder(of: head.url)
        do throws(ManifestError) {
            let name = FileNameRules.name(url: head.url, head: nil)
            var manifest: Manifest
            do throws(ManifestError) { manifest = try Manifest(parsing: bytes, fileName: name, reading) } catch {
                // The list of a record may stand far behind its description.
                guard error.form == .json else { throw error }
                guard let record = try? Manifest(parsing: bytes, as: .record, reading) else { return nil }
                manifest = record
            }
            guard !manifest.entries.isEmpty || manifest.faultCount > 0 else { return nil }
            let version = manifest.form == .record ? manifest.facts.commit : nil
            return (manifest.form, [manifest], version ?? Self.version(of: manifest.entries))
        } catch {
            // Any text may be the answer for a record; only a malformed list is an error.
            if error.form == nil || error.form == .urls { return nil }
            throw DownloadError(.protocolViolation, "The list cannot be read. \(error)", url: URLMasking.mask(head.url))
        }
    }

    private static func value(_ bytes: [UInt8]?) -> JSONReader.Value? {
        var reader = JSONReader(bytes ?? [])
        return try? reader.value()
    }

    /// The version of a list that has none: a digest of its entries.
    private static func version(of entries: [Manifest.Entry]) -> String {
        let digester = Digester(.sha256)
        for entry in entries {
            let line = [entry.name, entry.size.map(String.init), entry.digests.first?.hex, entry.sources.first?.url]
            Array((line.map { $0 ?? "" }.joined(separator: "\t") + "\n").utf8).withUnsafeBytes { digester.update($0) }
        }
        return digester.hex()
    }

    /// The answer to a request; nil if the server has none. A web page has no bytes.
    private mutating func get(_ url: String, accept: String) async throws(DownloadError) -> DocumentRequest.Answer? {
        var request = DocumentRequest(url: try URLNormalizer.normalize(url), options: options)
        request.headers = [HeaderField("Accept", accept)]
        if let token = servers.zenodoToken, URLOrigin(request.url) == URLOrigin(servers.zenodo) {
            request.headers.append(HeaderField("Authorization", "Bearer \(token)"))
            request.secretHeaders = ["authorization"]
        }
        request.isWanted = { head in
            let type = head["Content-Type"]?.prefix { $0 != ";" }.lowercased() ?? ""
            return type != "text/html" && type != "application/xhtml+xml"
        }
        asked.append(URLMasking.mask(url))
        do { return try await request.fetch(over: transport) } catch {
            guard let status = error.status, Self.absent.contains(status) else { throw error }
            return nil
        }
    }
}
