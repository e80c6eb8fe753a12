import FKRPC
import TestSupport
import Testing

@Suite("HTTP and WebSocket readers")
struct WebReaderTests {
    /// All steps of the bytes, given in parts of this length.
    private func steps(_ text: String, part: Int) -> [HTTPReader.Step] {
        var reader = HTTPReader(maxBody: 100)
        var steps: [HTTPReader.Step] = []
        for start in stride(from: 0, to: text.utf8.count, by: part) {
            reader.append(text.utf8.dropFirst(start).prefix(part))
            while true {
                let step = reader.next()
                if step == .wait { break }
                steps.append(step)
                if case .fault = step { return steps }
            }
        }
        return steps
    }

    @Test("requests that arrive together are read one after another, however they are cut", arguments: [1, 7, 10_000])
    func together(part: Int) {
        let steps = steps(
            "GET /a?x=%41&y HTTP/1.1\r\nHost: h\r\n\r\n\r\nPOST /b HTTP/1.1\nhost: h\ncontent-length: 3\n\nxyz"
                + "GET /c HTTP/1.0\r\n\r\n", part: part)
        let heads = steps.compactMap { step in if case .head(let request) = step { request } else { nil } }
        let bodies = steps.compactMap { step in if case .body(let body) = step { body } else { nil } }
        #expect(heads.map(\.path) == ["/a", "/b", "/c"] && heads.map(\.isClosing) == [false, false, true])
        #expect(heads[0].query.map(\.value) == ["A", ""])
        #expect(bodies == [[], Array("xyz".utf8), []])
    }

    @Test("empty lines before a request are not kept") func emptyLines() {
        var reader = HTTPReader(maxBody: 100)
        for _ in 0..<100 {
            reader.append([UInt8](repeating: 0x0a, count: 1_000))
            #expect(reader.next() == .wait)
        }
        #expect(reader.kept == 0)
        reader.append("GET /a HTTP/1.1\r\n\r\n".utf8)
        if case .head(let request) = reader.next() { #expect(request.path == "/a") } else { Issue.record("no head") }
    }

    @Test(
        "what two readers could understand differently is refused",
        arguments: [
            ("nonsense\r\n\r\n", 400), ("GET  /a HTTP/1.1\r\n\r\n", 400), ("GET /a\r\n\r\n", 400),
            ("G@T / HTTP/1.1\r\n\r\n", 400),
            ("GET a HTTP/1.1\r\n\r\n", 400), ("GET /a HTTP/2.0\r\n\r\n", 505), ("PRI * HTTP/2.0\r\n\r\n", 505),
            ("GET /\u{0} HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n", 400), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 411),
            ("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n", 413),
            ("GET /\(String(repeating: "a", count: 20_000))", 431),
        ]) func refused(text: String, status: Int)
    {
        #expect(steps(text, part: 10_000).last == .fault(status))
        #expect(steps(text, part: 13).last == .fault(status))
    }

    @Test("messages of a WebSocket are joined from their frames, with controls between them", arguments: [1, 3, 1_000])
    func frames(part: Int) {
        let bytes =
            RawClient.frame(Array("ab".utf8), isLast: false) + RawClient.frame([1], opcode: 9)
            + RawClient.frame(Array("c".utf8), opcode: 0) + [0x82, 0x82, 1, 2, 3, 4, 0x61 ^ 1, 0x62 ^ 2]
            + RawClient.frame([3, 232], opcode: 8)
        var reader = FrameReader(maxMessage: 100)
        var steps: [FrameReader.Step] = []
        for start in stride(from: 0, to: bytes.count, by: part) {
            reader.append(bytes.dropFirst(start).prefix(part))
            while true {
                let step = reader.next()
                if step == .wait { break }
                steps.append(step)
            }
        }
        #expect(steps == [.ping([1]), .message(Array("abc".utf8)), .message(Array("ab".utf8)), .close(1_000)])
    }

    @Test(
        "frames that break the protocol have the code of the RFC, before their bytes arrive",
        arguments: [
            ([0x81, 0x02, 0x7b, 0x7d], 1_002), ([0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0], 1_009),
            ([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], 1_002), ([0xc1, 0x80], 1_002), ([0x83, 0x80], 1_002),
            ([0x80, 0x80], 1_002), ([0x09, 0x80], 1_002), ([0x89, 0xfe], 1_002), ([0x81, 0xe5], 1_009),
            ([0x88, 0x81, 0, 0, 0, 0, 3], 1_002), ([0x88, 0x82, 0, 0, 0, 0, 0, 5], 1_002),
            ([0x81, 0x81, 0, 0, 0, 0, 0xff], 1_007), ([0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80], 1_002),
        ] as [([UInt8], UInt16)]) func broken(bytes: [UInt8], code: UInt16)
    {
        var reader = FrameReader(maxMessage: 100, bytes)
        #expect(reader.next() == .fault(code))
    }

    @Test("the handshake has the RFC's answer, and what is not spoken here is refused") func handshake() {
        var request = WebRequest()
        request.method = "GET"
        request.path = "/jsonrpc"
        request.fields = ["upgrade": "h2c"]
        #expect(WebSocketUpgrade(request) == .none)
        request.fields = [
            "upgrade": "WebSocket", "connection": "keep-alive, Upgrade", "sec-websocket-version": "13",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        ]
        #expect(WebSocketUpgrade(request) == .accepted("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
        for (name, value, status) in [
            ("sec-websocket-version", "12", 426), ("sec-websocket-key", "x", 400), ("connection", "close", 400),
            ("sec-websocket-protocol", "chat", 400),
        ] {
            var other = request
            other.fields[name] = value
            guard case .refused(status, _) = WebSocketUpgrade(other) else {
                Issue.record("\(name) \(value)")
                continue
            }
        }
    }

    @Test(
        "a page of another site is refused without an origin too, and a browser's GET changes nothing",
        arguments: [
            (nil, nil, true), (nil, "none", true), (nil, "same-origin", true), (nil, "cross-site", false),
            (nil, "same-site", false), (nil, "Cross-Site", false), ("https://ok.example", "cross-site", true),
            ("null", "cross-site", false),
        ] as [(String?, String?, Bool)]) func sites(origin: String?, site: String?, isServed: Bool)
    {
        let rules = AccessRules(address: "127.0.0.1", port: 1, isSecure: false, origins: ["https://ok.example"])
        #expect((rules.fault(host: "localhost", origin: origin, site: site) == nil) == isServed)
        var request = WebRequest()
        request.method = "GET"
        request.fields["origin"] = origin
        request.fields["sec-fetch-site"] = site
        #expect(AccessRules.mayChange(request) == (site == nil))
        request.fields["user-agent"] = "Mozilla/5.0"
        #expect(!AccessRules.mayChange(request))
        request.method = "POST"
        #expect(AccessRules.mayChange(request) == (origin != nil))
    }
}
