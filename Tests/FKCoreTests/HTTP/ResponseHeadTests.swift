import TestSupport
import Testing

@Suite("Response heads, line by line")
struct ResponseHeadTests {
    private func collect(_ lines: [String], maxBytes: Int = 1_000, maxLines: Int = 20) -> HeaderCollector.Event {
        var collector = HeaderCollector(maxBytes: maxBytes, maxLines: maxLines)
        var last = HeaderCollector.Event.more
        for line in lines {
            last = Array((line + "\r\n").utf8).withUnsafeBytes { collector.add(line: $0) }
            if case .violation = last { return last }
        }
        return last
    }

    private func framing(_ lines: [String]) -> BodyFraming? {
        if case .head(let head) = collect(lines + [""]) { head.framing } else { nil }
    }

    @Test(
        "how the end of the body is known",
        arguments: [
            (["HTTP/1.1 200 OK"], .untilClose), (["HTTP/1.0 200 OK"], .untilClose), (["HTTP/2 200"], .delimited),
            (["HTTP/3 200"], .delimited), (["HTTP/1.1 200 OK", "Content-Length: 0"], .length(0)),
            (["HTTP/2 200", "content-length: 7"], .length(7)),
            (["HTTP/1.1 206 OK", "Content-Length: 9223372036854775807"], .length(.max)),
            (["HTTP/1.1 200 OK", "Content-Length: 7, 7"], .length(7)),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Content-Length: 7"], .delimited),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: identity", "Content-Length: 7"], .countedLength(7)),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: Chunked"], .delimited),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: gzip"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: gzip", "Transfer-Encoding: chunked"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding:", "Content-Length: 7"], .countedLength(7)),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: identity, identity", "Content-Length: 0"], .countedLength(0)),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: identity"], .untilClose),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked, chunked"], .delimited),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "transfer-encoding: chunked"], .delimited),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: identity, chunked"], .delimited),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked, identity"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked, gzip"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: chunked, another, chunked"], nil),
            (["HTTP/1.1 200 OK", "Transfer-Encoding: identityx", "Content-Length: 7"], nil),
            (["HTTP/1.1 204 OK", "Content-Length: 7"], .noBody), (["HTTP/1.1 304 OK"], .noBody),
            (["HTTP/1.1 200 OK", "Content-Length: 9223372036854775808"], nil),
            (["HTTP/1.1 200 OK", "Content-Length: 7, 8"], nil), (["HTTP/1.1 200 OK", "Content-Length: 7,"], nil),
            (["HTTP/1.1 200 OK", "Content-Length: 0x7"], nil), (["HTTP/1.1 204 OK", "Content-Length: -1"], nil),
        ] as [([String], BodyFraming?)])
    func framings(lines: [String], expected: BodyFraming?) {
        #expect(framing(lines) == expected)
    }

    @Test("a head gives its status, version and fields; what follows is ignored")
    func whole() {
        var collector = HeaderCollector(maxBytes: 1_000, maxLines: 20)
        let lines = ["HTTP/1.1 103 Early", "A: 1", "", "HTTP/2.0 206 Partial Content", "B:  2 ", "", "Trailer: 3", ""]
        let events = lines.map { line in Array((line + "\r\n").utf8).withUnsafeBytes { collector.add(line: $0) } }
        #expect(events[2] == .interim)
        guard case .head(let head) = events[5] else { return unexpected("no head but \(events[5])") }
        #expect(head.status == 206)
        #expect(head.version == "2")
        #expect(head.fields == [.init("B", "2")])
        #expect(head.framing == .delimited)
        #expect(events[6...].allSatisfy { $0 == .more })
    }

    @Test("a Location keeps its bytes: UTF-8 as text, others percent-encoded")
    func location() {
        func location(_ value: [UInt8]) -> String? {
            var collector = HeaderCollector(maxBytes: 1_000, maxLines: 20)
            let lines = [Array("HTTP/1.1 302 Found\r\n".utf8), Array("LOCATION: ".utf8) + value + [13, 10], [13, 10]]
            var last = HeaderCollector.Event.more
            for line in lines { last = line.withUnsafeBytes { collector.add(line: $0) } }
            if case .head(let head) = last { return head.fields.first?.value }
            return nil
        }
        #expect(location(Array("/caf\u{e9}".utf8)) == "/caf\u{e9}")
        #expect(location(Array("/caf".utf8) + [0xe9, 0x20, 0x78]) == "/caf%E9 x")
    }

    @Test("caps count interim responses too")
    func caps() {
        let interim = ["HTTP/1.1 103 Early", ""]
        let head = ["HTTP/1.1 200 OK", ""]
        func isViolation(_ event: HeaderCollector.Event) -> Bool {
            if case .violation = event { true } else { false }
        }
        #expect(!isViolation(collect(interim + head, maxLines: 4)))
        #expect(isViolation(collect(interim + interim + head, maxLines: 4)))
        #expect(!isViolation(collect(head + ["X-Trailer: 1"], maxLines: 3)))
        #expect(isViolation(collect(head + ["X-Trailer: 1", "X-Trailer: 2"], maxLines: 3)))
        #expect(!isViolation(collect(head, maxBytes: 19)))
        #expect(isViolation(collect(head, maxBytes: 18)))
    }

    @Test(
        "request field names and values",
        arguments: [
            ("X-A", "1", true), ("x_a.b~", "", true), ("", "1", false), ("X A", "1", false), ("X:A", "1", false),
            ("X-\u{e9}", "1", false), ("X-A", "caf\u{e9}", true), ("X-A", "1\r", false), ("X-A", "1\n2", false),
            ("X-A", "\u{0}", false), ("X-A", "\t", true),
        ])
    func requestFields(name: String, value: String, isValid: Bool) {
        #expect((name.isFieldName && value.isFieldValue) == isValid)
    }
}
