import TestSupport
import Testing

@Suite("Pages that come with an error")
struct ErrorPageTests {
    @Test(
        "Only the text is left of a page",
        arguments: [
            ("<!DOCTYPE html><html><head><title>T</title></head><body><h1>Gone</h1></body></html>", "Gone"),
            ("<!-- if a > b, pad --><p>Busy</p>", "Busy"),
            ("a &amp; b &#60;c&#x3e; &nbsp;d &unknown; &", "a & b <c> d &unknown; &"),
            ("<html><head><title>503 Fetch failed</title><style>b{", "503 Fetch failed"),
            ("{\"error\": \"a < b\"}", "{\"error\": \"a < b\"}"), ("<script>if (a<b) x()</script>x", "x"),
            ("one\r\n\ttwo\u{202e}\u{7}three", "one two three"), ("<a href=\"x\">y</a", "y"), ("<br><hr/>", nil),
            ("", nil),
        ] as [(String, String?)])
    func text(page: String, expected: String?) {
        #expect(page.pageLine == expected)
    }

    @Test("Bytes that are no text are not quoted")
    func binary() {
        let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d] + Array("IHDR".utf8)
        #expect(ErrorPage.text(png) == nil)
        #expect(ErrorPage.text((0x80...0xff) + Array("some text".utf8)) == nil)
        let latin1 = Array("Die Datei geh".utf8) + [0xf6] + Array("rt nicht dazu".utf8)
        #expect(ErrorPage.text(latin1) == "Die Datei geh\u{fffd}rt nicht dazu")
    }

    @Test("An error of the library holds a page's text and no markup")
    func error() async throws {
        let server = try FaultServer()
        let page = "<html><head><title>No</title></head><body><p>It is <b>gone</b> &amp; done.</p></body></html>"
        server.route("/a") { _ in .status(404, body: Array(page.utf8)) }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a"))
        #expect(info.error?.underlying == "It is gone & done.")
    }
}
