import FKMiddleware
import TestSupport
import Testing

@testable import FKEngine

@Suite("A web page in the place of a file") struct WebPageTests {
    private func head(_ type: String?, _ more: [HeaderField] = []) -> ResponseHead {
        ResponseHead(
            status: 200, fields: (type.map { [HeaderField("Content-Type", $0)] } ?? []) + more, url: "http://h/x"
        )
    }

    @Test(
        "a page is refused where the name is that of an archive, a medium or a document",
        arguments: [
            "file2.zip", "a.tar.gz", "A.ISO", "model.safetensors", "x.pdf", "a.b.whl", "photo.jpeg", ".x.zip",
        ], ["text/html", "text/html; charset=utf-8", "TEXT/HTML;charset=x", "application/xhtml+xml"])
    func refused(_ name: String, _ type: String) {
        #expect(PageRules.error(name, head(type))?.message.contains(name) == true)
    }

    @Test(
        "a page is accepted where the name may be that of a page",
        arguments: [
            "download", "index.html", "a.htm", "a.php", "notes.txt", "data.json", "list.csv", "v1.2", "zip", "x.",
            ".zip",
        ])
    func accepted(_ name: String) { #expect(PageRules.error(name, head("text/html")) == nil) }

    @Test(
        "other types are accepted under every name",
        arguments: [nil, "", "text/plain", "application/octet-stream", "application/zip", "text/htmlx", "text/xml"])
    func others(_ type: String?) { #expect(PageRules.error("a.zip", head(type)) == nil) }

    @Test("an expected type decides alone: itself, a range of types, or any file but a page")
    func expected() {
        func fails(_ name: String, _ type: String?, _ expected: String) -> Bool {
            PageRules.error(name, head(type), expected: expected) != nil
        }
        #expect(fails("x", "text/html", "file") && !fails("x", "text/plain", "file") && !fails("x", nil, "file"))
        #expect(fails("x", nil, "application/zip") && fails("a.zip", "text/plain", "application/zip"))
        #expect(!fails("a", "Application/ZIP; q=1", "application/zip") && !fails("a.zip", "text/html", "text/html"))
        #expect(!fails("a", "image/png", "image/*") && fails("a", "imagex/png", "image/*"))
        var options = TaskOptions()
        for type in ["zip", "a/b/c", "*/x", "a/", "a b/c", ""] {
            options.expectedType = type
            #expect(options.fault != nil, "\(type)")
        }
        for type in ["file", "image/*", "application/vnd.x+json"] {
            options.expectedType = type
            #expect(options.fault == nil, "\(type)")
        }
    }

    @Test("it is tried again only if the answer says when, and then")
    func retry() {
        #expect(PageRules.error("a.zip", head("text/html"))?.isRetryable == false)
        for expected in [nil, "application/zip"] {
            let answer = head("text/html", [HeaderField("Retry-After", "5")])
            let error = PageRules.error("a.zip", answer, expected: expected)
            #expect(error?.isRetryable == true && error?.retryAfter == .seconds(5))
        }
    }

    @Test("every extension is lower case, or no name would match") func extensions() {
        for suffix in PageRules.binaryExtensions {
            #expect(PageRules.isBinary("a.\(suffix)") && suffix == suffix.lowercased())
        }
    }

    private func decide(
        _ status: Int, _ more: [HeaderField] = [], ask: RangeAsk = RangeAsk(), expected: String? = nil
    ) -> (ResumeRules.HeadDecision, suspicion: DownloadError?) {
        let head = ResponseHead(
            status: status, fields: [HeaderField("Content-Type", "text/html"), HeaderField("ETag", "\"1\"")] + more,
            url: "http://h/x")
        let version = FileVersion(source: "http://h/x", length: 900, validator: Validator(etag: "\"1\""))
        let known = ResumeRules.Known(version, name: "a.zip", expectedType: expected)
        let decision = ResumeRules.decide(head: head, ask: ask, known: known, segments: 1)
        return (decision, ResumeRules.suspicion(of: head, decision, ask: ask, known: known))
    }

    @Test("the bytes of a whole file decide, errors keep their own reason", arguments: [200, 203, 404, 503])
    func statuses(_ status: Int) {
        let (decision, suspicion) = decide(status)
        if status < 300 {
            #expect(decision == .startOver(total: nil) && suspicion?.code == .protocolViolation)
        } else {
            guard case .refuse(let error) = decision else { return unexpected("\(decision)") }
            #expect(error.code == .httpStatus && suspicion == nil)
        }
    }

    @Test(
        "a part that continues the stored bytes is the file; a coded body and an expected type are judged by their names"
    )
    func certain() {
        let rest = RangeAsk(start: 100, ifRange: "\"1\"", usesRange: true)
        let part = decide(206, [HeaderField("Content-Range", "bytes 100-899/900")], ask: rest)
        #expect(part.0 == .append(skip: 0, until: 900, total: 900) && part.suspicion == nil)
        for (more, expected) in [([HeaderField("Content-Encoding", "gzip")], nil), ([], "application/zip")]
            as [([HeaderField], String?)]
        {
            guard case .refuse(let error) = decide(200, more, expected: expected).0 else { return unexpected("kept") }
            #expect(error.code == .protocolViolation)
        }
        #expect(decide(200, [HeaderField("Content-Length", "0")]).suspicion == nil)
    }

    @Test(
        "bytes that begin a page",
        arguments: [
            "<!DOCTYPE html>", "<!doctype HTML PUBLIC", "\n\t <HTML>", "<html lang=de>", "<head>", "<Body >",
            "<a href=x>", "<p>",
            "<!-- x", "<?xml version=", "\u{feff}<html>", "<script>", "<br/>", "<h1>",
        ])
    func pages(_ text: String) {
        #expect(PageRules.isPage(Array(text.utf8), isAll: false) == true)
        // No byte less than needed is taken for an answer.
        for count in 0..<text.utf8.count {
            #expect(PageRules.isPage(Array(text.utf8.prefix(count)), isAll: false) != false)
        }
    }

    @Test(
        "bytes that begin none",
        arguments: [
            "PK\u{3}\u{4}", "\u{1f}\u{8b}", "GIF89a", "%PDF-1.7", "abc <html>", "<?php", "<abc>", "<bodyx>",
            "<!ELEMENT",
            "{\"a\": 1}", "< html>",
        ])
    func files(_ text: String) { #expect(PageRules.isPage(Array(text.utf8), isAll: false) == false) }

    @Test("the end of the file, or 512 bytes of it, end the look")
    func ends() {
        #expect(PageRules.isPage([UInt8](), isAll: true) == false)
        #expect(PageRules.isPage(Array("<ht".utf8), isAll: true) == false)
        #expect(PageRules.isPage(Array("<html".utf8), isAll: true) == true)
        #expect(PageRules.isPage([UInt8](repeating: 0x20, count: 511), isAll: false) == nil)
        #expect(PageRules.isPage([UInt8](repeating: 0x20, count: 512) + Array("<html>".utf8), isAll: false) == false)
        #expect(PageRules.isPage([0xff, 0xfe, 0x3c, 0, 0x68, 0, 0x31, 0, 0x3e, 0], isAll: false) == true)
    }

    private static let binary = Bytes.pattern(count: 900_000)

    @Test("a binary file that a server labels text/html is fetched and resumed", arguments: [1, 4])
    func labelled(_ connections: Int) async throws {
        let server = try FaultServer()
        server.route("/a.bin") { request in
            let answer = FaultResponse.ranged(Self.binary, for: request, etag: "\"1\"").setting(
                "Content-Type", "text/html")
            return request.index == 0 ? answer.cut(at: 300_000) : answer
        }
        let live = try LiveBench { $0.connections = .fixed(connections) }
        let info = try await live.fetch(server.url("/a.bin"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a.bin") == Self.binary)
        #expect(server.requests.dropFirst().allSatisfy { $0["Range"] != nil })
    }

    @Test(
        "a login page in the place of the rest is refused, and the stored bytes stay; so does one that arrives byte by byte"
    )
    func login() async throws {
        let server = try FaultServer()
        let page = Array("  <!DOCTYPE html><html>Please log in</html>".utf8)
        server.route("/a.bin") { request in
            if request.index == 0 { return .ranged(Self.binary, for: request, etag: "\"1\"").cut(at: 300_000) }
            if request.index == 1 { return .ok(page, headers: ["Content-Type": "text/html"]) }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: \(page.count)\r\n\r\n"
            var steps: [FaultResponse.Step] = [.text(head)]
            for byte in page { steps.append(.drip([byte], times: 1, every: 0.001)) }
            return .raw(steps)
        }
        let live = try LiveBench()
        for count in 1...2 {
            let info = try await live.fetch(server.url("/a.bin"))
            #expect(info.error?.message.contains("web page") == true, "\(String(describing: info.error))")
            #expect(info.count.received == 300_000 && server.requests.count == count + 1)
        }
    }

    @Test(
        "files labelled text/html whose first bytes need a second look, by length and by chunks",
        arguments: ["", "ab", "<?php x", "<!Dx", "  <b"])
    func secondLook(_ start: String) async throws {
        let content = Array(start.utf8) + (start.count < 3 ? [] : Bytes.pattern(count: 2_000))
        let server = try FaultServer()
        server.route("/a.zip") { request in
            request.query == "chunked"
                ? FaultResponse.chunked(content, size: 1).setting("Content-Type", "text/html")
                : .ok(content, headers: ["Content-Type": "text/html"])
        }
        for query in ["", "?chunked"] {
            let live = try LiveBench()
            let info = try await live.fetch(server.url("/a.zip" + query))
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a.zip") == content)
        }
    }
}
