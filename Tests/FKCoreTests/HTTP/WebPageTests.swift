import FKMiddleware
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

    @Test(
        "each answer that brings bytes is judged, errors keep their own reason", arguments: [200, 203, 206, 404, 503])
    func statuses(_ status: Int) {
        let head = ResponseHead(
            status: status, fields: [HeaderField("Content-Type", "text/html")], url: "http://h/x")
        let decision = ResumeRules.decide(
            head: head, ask: RangeAsk(), known: .init(name: "a.zip"), segments: 1)
        guard case .refuse(let error) = decision else { return unexpected("\(decision)") }
        #expect((error.code == .protocolViolation) == (status < 300))
    }
}
