import TestSupport
import Testing

@testable import FKManifests

/// Whom the search for a record's files asks.
@Suite("Search for a record's files") struct RecordSearchTests {
    /// Answers each URL by its script, others with 404; returns what was asked, and the error.
    private static func search(
        _ name: String, _ answers: [String: (fields: [HeaderField], body: String)]
    ) async throws -> (asked: [String], files: [String], error: String?, code: DownloadError.Code?) {
        let transport = ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            guard let (fields, body) = answers[url] else {
                return .init([.head(ResponseHead(status: 404, fields: [], url: url))])
            }
            let length = HeaderField("Content-Length", "\(body.utf8.count)")
            return .init([
                .head(ResponseHead(status: 200, fields: fields + [length], url: url)), .bytes(Array(body.utf8)),
            ])
        }
        defer { transport.shutdown() }
        let place = try Records().place(of: try #require(SourceReference(name)), in: [:])
        let source = ListedPlace(Records(), place, [:])
        var files: [String] = []
        var failure: DownloadError?
        do {
            _ = try await source.files(include: [], exclude: [], TaskOptions(), over: transport) { part, _ in
                files += part.map { $0.sources.first?.url ?? "" }
            }
        } catch let error as DownloadError { failure = error }
        return (
            transport.requests.map { $0.urlRequest.url?.absoluteString ?? "" }, files, failure?.message, failure?.code
        )
    }

    private static let page = [HeaderField("Content-Type", "text/html")]

    private static func links(_ targets: [String]) -> [HeaderField] {
        let text = targets.map { "<\($0)>; rel=describedby; type=\"application/ld+json\"" }.joined(separator: ", ")
        return page + [HeaderField("Link", text)]
    }

    @Test(
        "a public record leads to no loopback or private address",
        arguments: [
            "http://127.0.0.1:631/", "http://localhost/x", "http://[::1]/", "http://10.1.2.3/",
            "http://169.254.169.254/m",
        ])
    func privateAddress(target: String) async throws {
        let found = try await Self.search(
            "https://repo.example/item/1",
            ["https://repo.example/item/1": (Self.links([target, "https://other.example/c"]), "<html>")])
        #expect(!found.asked.contains { $0.hasPrefix(target) }, "\(found.asked)")
        #expect(found.asked.contains("https://other.example/c"))
        #expect(found.error?.contains("not asked: it is at a loopback or private address") == true, "\(found)")
        // The resolver of DOIs is public as well.
        let handle = "https://doi.org/api/handles/10.1/x?type=URL"
        let doi = try await Self.search(
            "doi:10.1/x",
            [handle: ([], "{\"values\":[{\"type\":\"URL\",\"data\":{\"value\":\"\(target)\"}}]}")])
        #expect(!doi.asked.contains { $0.hasPrefix(target) }, "\(doi.asked)")
    }

    @Test("an empty list says that it is empty", arguments: ["", "# no files\n"])
    func empty(body: String) async throws {
        let url = "https://h.example/list.txt"
        let found = try await Self.search(url, [url: ([HeaderField("Content-Type", "text/plain")], body)])
        #expect(found.error == "The list is empty: it names no URL.", "\(found)")
    }

    @Test(
        "a malformed line of a list at a URL is an invalid argument, as in a file",
        arguments: [
            ("list.txt", "https://h.example/a\nhttps://h.example/b c\n", "URL list, line 2"),
            ("list.aria2", "https://h.example/a\n  nosuch=1\n", "aria2 list, line 2"),
            ("SHA256SUMS", "zzzz  b\n", "line 1"),
        ])
    func malformed(name: String, body: String, place: String) async throws {
        let url = "https://h.example/\(name)"
        let found = try await Self.search(url, [url: ([HeaderField("Content-Type", "text/plain")], body)])
        #expect(found.code == .invalidArgument && found.error?.contains(place) == true, "\(found)")
    }

    @Test("the user's own address may be private, and lead to others")
    func ownAddress() async throws {
        let own = "http://127.0.0.1:8080/item"
        let found = try await Self.search(
            own,
            [
                own: (Self.links(["http://10.0.0.1/crate"]), "<html>"),
                "http://10.0.0.1/crate": ([], "{\"@graph\":[{\"@id\":\"http://10.0.0.1/a\",\"@type\":\"File\"}]}"),
            ])
        #expect(found.files == ["http://10.0.0.1/a"], "\(found)")
    }

    @Test("at most 20 links of a page are followed, and the error says what was asked and why it is none")
    func many() async throws {
        let start = "https://repo.example/item/1"
        let found = try await Self.search(
            start, [start: (Self.links((0..<200).map { "https://h\($0).example/c" }), "<html>")])
        #expect(found.asked.count { $0.contains(".example/c") } == 20)
        #expect(found.error?.contains("https://h0.example/c (HTTP 404)") == true, "\(found)")
        #expect(found.error?.contains("\(start) (a web page)") == true)
    }

    @Test(
        "a record with restricted files says so",
        arguments: ["\"metadata\":{\"access_right\":\"embargoed\"}", "\"access\":{\"files\":\"restricted\"}"])
    func restricted(member: String) async throws {
        let found = try await Self.search(
            "zenodo:1", ["https://zenodo.org/api/records/1": ([], "{\"id\":1,\(member),\"files\":[]}")])
        #expect(found.error?.contains("(its files are") == true && found.error?.contains("ZENODO_TOKEN") == true)
    }
}
