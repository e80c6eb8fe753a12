import Foundation
import TestSupport
import Testing

@testable import FKManifests

/// The walk through the folders of a web server.
@Suite("Folders of web servers") struct WebFolderTests {
    private static let root = "http://h.example/pub/"

    private struct Found {
        var files: [String] = []
        var faults: [SourceFault] = []
        var leftOut: [String: Int] = [:]
        var asked: [String] = []
        var error: DownloadError?
    }

    /// Lists the place; each URL has its answer, others 404.
    private static func list(
        _ answers: [String: Answer], _ choice: SourceChoice = SourceChoice(), from reference: String = root
    ) async throws -> Found {
        let transport = ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            let method = request.urlRequest.httpMethod ?? "GET"
            let answer = answers["\(method) \(url)"] ?? (method == "GET" ? answers[url] : nil) ?? Answer(404, "")
            return .init([
                .head(
                    ResponseHead(
                        status: answer.status,
                        fields: answer.fields + [
                            HeaderField("Content-Type", answer.type),
                            HeaderField("Content-Length", "\(answer.body.utf8.count)"),
                        ], url: answer.from ?? url)), .bytes(Array(answer.body.utf8)),
            ])
        }
        defer { transport.shutdown() }
        var options = TaskOptions()
        options.maxAttempts = 1
        let (source, place) = try #require(try SourceRegistry().find(reference, in: [:]))
        var found = Found()
        do {
            for try await page in SourceListing(source, place, choice, options, [:], over: transport).pages {
                found.files += page.files.map { $0.name ?? "" }
                found.faults += page.faults
                found.leftOut.merge(page.leftOut, uniquingKeysWith: +)
            }
        } catch let error as DownloadError { found.error = error }
        found.asked = transport.requests.map {
            "\($0.urlRequest.httpMethod ?? "GET") \($0.urlRequest.url?.absoluteString ?? "")"
        }
        return found
    }

    private struct Answer {
        var status = 200
        var body: String
        var type = "text/html"
        var fields: [HeaderField] = []
        /// The URL after redirects; nil for the one that was asked.
        var from: String?

        init(_ status: Int, _ body: String) {
            self.status = status
            self.body = body
        }

        init(_ body: String) { self.init(200, body) }
    }

    /// A listing of these links.
    private static func page(_ links: [String]) -> Answer {
        Answer(
            "<html><title>Index of /</title><pre><a href=\"../\">../</a>\n"
                + links.map { "<a href=\"\($0)\">\($0)</a>  26-Nov-2026 18:44  1\n" }.joined() + "</pre></html>")
    }

    @Test("all folders, level by level, each once")
    func tree() async throws {
        let found = try await Self.list([
            Self.root: Self.page(["a/", "z", "b/"]), Self.root + "a/": Self.page(["x", "../b/", "c/"]),
            Self.root + "b/": Self.page(["y"]), Self.root + "a/c/": Self.page(["w"]),
        ])
        #expect(found.error == nil && found.faults.isEmpty)
        #expect(found.files == ["z", "a/x", "b/y", "a/c/w"])
        #expect(found.asked.first == "OPTIONS \(Self.root)")
        #expect(found.asked.dropFirst().sorted() == ["", "a/", "a/c/", "b/"].map { "GET \(Self.root)\($0)" })
    }

    @Test("a folder that fails is a missing part, and the rest is listed", arguments: [401, 403, 404, 500])
    func failing(status: Int) async throws {
        let found = try await Self.list([
            Self.root: Self.page(["a/", "b/", "z"]), Self.root + "a/": Answer(status, ""),
            Self.root + "b/": Self.page(["y"]),
        ])
        #expect(found.error == nil && found.files == ["z", "b/y"])
        #expect(found.faults.map(\.name) == ["a/"] && found.faults[0].isIncomplete)
        #expect(found.faults[0].reason.contains("\(status)"))
    }

    @Test("a place that fails is an error", arguments: [401, 403, 404, 429, 503])
    func noPlace(status: Int) async throws {
        let found = try await Self.list([Self.root: Answer(status, "")])
        #expect(found.error?.status == status && found.files.isEmpty)
    }

    @Test("a page that is none, or is cut off, is an error of the place and a missing part below it")
    func noListing() async throws {
        var cut = Self.page(["a", "b"])
        cut.body = String(cut.body.dropLast(20))
        for page in [cut] + ListingPages.others.map({ Answer($0.text) }) {
            #expect(try await Self.list([Self.root: page]).error?.code == .protocolViolation)
            let below = try await Self.list([Self.root: Self.page(["s/", "x"]), Self.root + "s/": page])
            #expect(below.error == nil && below.files == ["x"])
            #expect(below.faults.map(\.name) == ["s/"] && below.faults[0].isIncomplete)
        }
        var file = Self.page([])
        file.type = "application/zip"
        #expect(try await Self.list([Self.root: file]).error?.code == .protocolViolation)
    }

    @Test("a redirect of the place counts, and one of a folder to another place is a missing part")
    func redirects() async throws {
        var moved = Self.page(["a/", "x"])
        moved.from = "https://new.example/files/"
        let found = try await Self.list([
            Self.root: moved, "https://new.example/files/a/": Self.page(["y"]),
        ])
        #expect(found.error == nil && found.files == ["x", "a/y"])
        for target in [
            "http://other.example/pub/a/", "http://h.example/", "http://h.example/pub/", "http://h.example/pub/b/",
            "http://h.example/pub/a",
        ] {
            var away = Self.page(["evil"])
            away.from = target
            let found = try await Self.list([Self.root: Self.page(["a/", "x"]), Self.root + "a/": away])
            #expect(found.files == ["x"] && found.faults.map(\.name) == ["a/"], "\(target)")
            #expect(found.faults.first?.isIncomplete == true)
        }
        var file = Self.page([])
        file.from = "http://h.example/login"
        #expect(try await Self.list([Self.root: file]).error?.code == .redirect)
    }

    @Test("the depth ends a loop, and says so unless it was chosen")
    func depth() async throws {
        var answers: [String: Answer] = [:]
        for level in 0..<30 { answers[Self.root + String(repeating: "l/", count: level)] = Self.page(["l/", "f"]) }
        let all = try await Self.list(answers)
        #expect(all.files.count == 20 && all.asked.count == 21)
        #expect(all.faults.map(\.name) == [String(repeating: "l/", count: 20)] && all.faults[0].isIncomplete)
        var choice = SourceChoice(depth: 1)
        choice.isDepthChosen = true
        let one = try await Self.list(answers, choice)
        #expect(one.files == ["f"] && one.faults.isEmpty && one.asked.count == 2)
    }

    @Test("a folder that is left out whole is not asked for")
    func excluded() async throws {
        let found = try await Self.list(
            [Self.root: Self.page(["data/", "x"])], SourceChoice(exclude: ["data/*"]))
        #expect(found.files == ["x"] && found.faults.isEmpty)
        #expect(!found.asked.contains { $0.hasSuffix("data/") })
    }

    @Test("hostile links lead nowhere")
    func hostile() async throws {
        let found = try await Self.list([
            Self.root: Self.page([
                "ok", "/etc/passwd", "../secret", "%2e%2e/x/", "..%2fy", "http://169.254.169.254/z",
                "//evil.example/pub/", "a%2fb/",
            ])
        ])
        #expect(found.error == nil && found.files == ["ok"])
        #expect(found.faults.count == 3 && found.faults.allSatisfy { !$0.isIncomplete })
        #expect(found.asked.count == 2)
    }

    @Test("WebDAV is used where the server says that it has it, and listings where it then refuses")
    func webDAV() async throws {
        var options = Answer(200, "")
        options.fields = [HeaderField("DAV", "1, 2")]
        func multistatus(_ names: [String]) -> Answer {
            var answer = Answer(
                207,
                "<multistatus xmlns=\"DAV:\">"
                    + names.map {
                        "<response><href>\($0)</href><propstat><prop><resourcetype>\($0.hasSuffix("/") ? "<collection/>" : "")</resourcetype>"
                            + "<getcontentlength>7</getcontentlength></prop><status>HTTP/1.1 200 OK</status></propstat></response>"
                    }.joined() + "</multistatus>")
            answer.type = "application/xml"
            return answer
        }
        let dav = try await Self.list([
            "OPTIONS \(Self.root)": options, "PROPFIND \(Self.root)": multistatus(["/pub/", "/pub/a/", "/pub/x"]),
            "PROPFIND \(Self.root)a/": multistatus(["/pub/a/", "/pub/a/y"]), Self.root: Self.page(["z"]),
        ])
        #expect(dav.error == nil && dav.files == ["x", "a/y"])
        let without = try await Self.list([
            "OPTIONS \(Self.root)": options, "PROPFIND \(Self.root)": Answer(405, ""), Self.root: Self.page(["z"]),
        ])
        #expect(without.error == nil && without.files == ["z"])
    }

    @Test("lists of digests bind the files of their folder")
    func digests() async throws {
        let digest = String(repeating: "ab", count: 32)
        var choice = SourceChoice()
        choice.takesDigests = true
        let (source, place) = try #require(try SourceRegistry().find(Self.root, in: [:]))
        let answers = [
            Self.root: Self.page(["SHA256SUMS", "a", "b", "s/"]), Self.root + "s/": Self.page(["a", "md5sum.txt"]),
            Self.root + "SHA256SUMS": Answer("\(digest)  a\n\(digest) *./b\n\(digest)  s/a\n\(digest)  ../c\n"),
            Self.root + "s/md5sum.txt": Answer("no digests\n"),
        ]
        let transport = ScriptedTransport { request, _ in
            let url = request.urlRequest.url?.absoluteString ?? ""
            let answer = request.urlRequest.httpMethod == "OPTIONS" ? Answer(404, "") : answers[url] ?? Answer(404, "")
            return .init([
                .head(
                    ResponseHead(status: answer.status, fields: [HeaderField("Content-Type", "text/html")], url: url)),
                .bytes(Array(answer.body.utf8)),
            ])
        }
        defer { transport.shutdown() }
        var bound: [String] = []
        var faults: [String] = []
        var notes: [String] = []
        for try await page in SourceListing(source, place, choice, TaskOptions(), [:], over: transport).pages {
            bound += page.files.filter { $0.digests.first?.hex == digest }.map { $0.name ?? "" }
            faults += page.faults.map(\.name)
            notes += page.notes
        }
        #expect(bound == ["a", "b"])
        #expect(faults == ["s/md5sum.txt"])
        #expect(notes == ["SHA256SUMS has the digests of 2 files"])
    }

    @Test(
        "places that cannot be listed",
        arguments: ["http://h/pub/?a=b", "http://h/../x/", "http://h/a%2fb/", "http:///", "https://"])
    func noPlaces(text: String) { #expect(throws: DownloadError.self) { _ = try SourceRegistry().find(text, in: [:]) } }

    @Test(
        "the name of the folder and of the barrel",
        arguments: [
            ("http://h/pub/", "pub"), ("http://h/a/b%20c", "b c"), ("https://h.example/", "h.example"),
            ("http://h:8080", "h"),
        ] as [(String, String)])
    func folderName(text: String, name: String) throws {
        #expect(try SourceRegistry().find(text, in: [:])?.place.folderName == name)
    }
}
