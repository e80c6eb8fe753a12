import TestSupport
import Testing

/// One file, no range, a server that does not keep to HTTP.
@Suite("Answers that are not what they say")
struct AnswerTests {
    static let content = Bytes.pattern(count: 300_000)

    /// Fetches `/a` from a server that answers so every time.
    private func fetch(
        settings: (inout Configure) -> Void = { _ in }, options: (inout TaskOptions) -> Void = { _ in },
        _ answer: @escaping FaultServer.Route
    ) async throws -> (info: DownloadInfo, live: LiveBench, requests: [FaultRequest]) {
        let server = try FaultServer()
        server.route("/a", answer)
        let live = try LiveBench(settings)
        let info = try await live.fetch(server.url("/a"), options)
        await live.downloader.close()
        return (info, live, server.requests)
    }

    /// In error, and nothing that anybody could take for the file.
    private func expectNothing(_ info: DownloadInfo, _ live: LiveBench, _ code: DownloadError.Code) {
        #expect(info.state == .error && info.error?.code == code, "\(String(describing: info.error))")
        #expect(live.names.allSatisfy { $0.hasPrefix(".") }, "\(live.names)")
    }

    @Test("a body shorter than Content-Length is never whole, and its bytes are kept")
    func short() async throws {
        let (info, live, requests) = try await fetch(settings: { $0.retry.maxAttempts = 1 }) {
            FaultResponse.ranged(Self.content, for: $0, etag: "\"1\"").cut(at: 60_000)
        }
        expectNothing(info, live, .incompleteBody)
        #expect(requests.map { $0["Range"] } == [nil])
        #expect(info.count.received == 60_000)
        // Attempts that bring bytes do not count: the file ends.
        let (whole, there, ranges) = try await fetch {
            FaultResponse.ranged(Self.content, for: $0, etag: "\"1\"").cut(at: 60_000)
        }
        #expect(ranges.map { $0["Range"] } == [nil] + (1...4).map { "bytes=\($0 * 60_000)-" })
        #expect(whole.state == .complete)
        #expect(try there.out("a") == Self.content)
    }

    @Test("one byte less than Content-Length")
    func oneByteShort() async throws {
        let (info, live, _) = try await fetch { _ in
            FaultResponse.untilClose(Self.content).setting("Content-Length", "300001")
        }
        expectNothing(info, live, .incompleteBody)
    }

    @Test("a chunked body without its last chunk is never whole", arguments: [100, 300_000])
    func chunked(_ size: Int) async throws {
        let (info, live, _) = try await fetch { _ in
            FaultResponse.chunked(Array(Self.content.prefix(size))).withoutLastChunk()
        }
        expectNothing(info, live, .incompleteBody)
    }

    @Test("no length and a clean close is complete, and marked as not verified")
    func untilClose() async throws {
        let (info, live, _) = try await fetch { _ in .untilClose(Self.content) }
        #expect(info.state == .complete)
        #expect(try live.out("a") == Self.content)
        let record = try InfoFile.read(WorkPath(live.folder.path + "/work").infoPath(info.id)).record
        #expect(record.lengthVerified == false)
    }

    @Test("no length, and TLS closed without close_notify, is never whole")
    func truncatedTLS() async throws {
        let upstream = try FaultServer()
        upstream.route("/a") { _ in .untilClose(Self.content) }
        let nginx = try NginxServer(upstream: upstream.port)
        let relay = try CuttingRelay(to: nginx.tlsPort, dropsAlerts: true)
        let live = try LiveBench {
            $0.transport.caPath = nginx.certificates.caFile
            $0.transport.httpVersion = .http1
        }
        let info = try await live.fetch("https://127.0.0.1:\(relay.port)/upstream/a")
        expectNothing(info, live, .incompleteBody)
        let whole = try await live.fetch("\(nginx.tlsBase)/upstream/a")
        #expect(whole.state == .complete)
        #expect(try live.out("a") == Self.content)
        await live.downloader.close()
    }

    @Test("what comes beyond Content-Length is dropped, with its connection", arguments: [0, 1, 300_000])
    func excess(_ length: Int) async throws {
        let body = Array(Self.content.prefix(length))
        let (info, live, _) = try await fetch { _ in
            .raw([
                .text("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n"),
                .send(body + Bytes.pattern(count: 100_000, seed: 9)), .close,
            ])
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == body)
    }

    @Test(
        "contradicting, negative and overflowing lengths are refused",
        arguments: [
            "Content-Length: 3\r\nContent-Length: 4", "Content-Length: 3, 4", "Content-Length: -3",
            "Content-Length: 18446744073709551617", "Content-Length: 9223372036854775808", "Content-Length: 3x",
            "Content-Length: 0x3", "Content-Length: ",
        ])
    func lengths(_ fields: String) async throws {
        let (info, live, _) = try await fetch { _ in .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\nabc") }
        expectNothing(info, live, .protocolViolation)
        #expect(live.names == [])
    }

    @Test(
        "the body of an error status is never the file; its beginning explains the error",
        arguments: [400, 403, 404, 410, 416, 500, 503])
    func errorBody(_ status: Int) async throws {
        let page = "\u{1b}]0;owned\u{7}<h1>Gone \u{1b}[31mfishing\u{9b}2J\r\n\u{202e}</h1>"
        let body = Array(page.utf8) + [UInt8](repeating: 0x78, count: 100_000)
        let (info, live, _) = try await fetch { _ in .status(status, body: body) }
        expectNothing(info, live, .httpStatus)
        #expect(live.names == [] && info.error?.status == status)
        let text = try #require(info.error?.underlying)
        #expect(text.contains("Gone") && text.utf8.count <= 512)
        #expect(!text.unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{202e}" })
    }

    @Test("an error page on a resumed transfer leaves the bytes as they are", arguments: [404, 503])
    func errorOnResume(_ status: Int) async throws {
        let page = [UInt8](repeating: 0x78, count: 200_000)
        let (info, live, requests) = try await fetch { request in
            switch request.index {
            case 0: FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").cut(at: 100_000)
            default: .status(status, body: page)
            }
        }
        expectNothing(info, live, .httpStatus)
        #expect(info.count.received == 100_000)
        #expect(requests.count == (status == 404 ? 2 : 3))
        let part = try live.out(try #require(live.names.first))
        #expect(part == Array(Self.content.prefix(100_000)))
    }

    @Test(
        "an absurd Retry-After counts for maxRetryAfter at most, or not at all",
        arguments: [
            "31536000", "99999999999999999999", "-5", "Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT",
            "soon", "",
        ])
    func retryAfter(_ value: String) async throws {
        let (info, live, requests) = try await fetch(settings: { $0.retry.maxRetryAfter = .zero }) { request in
            request.index == 0 ? .retryAfter(value) : .ok(Self.content)
        }
        #expect(info.state == .complete && requests.count == 2)
        #expect(try live.out("a") == Self.content)
    }

    @Test(
        "bytes in a coding nobody asked for are kept as sent, and the record says so once",
        arguments: ["gzip", "br", "none", "binary", "UTF-8", "X-GZIP", "gzip, gzip", "identity", ""], [300_000, 1_000])
    func encoded(_ coding: String, _ count: Int) async throws {
        let body = Array(Self.content.prefix(count))
        let (info, live, requests) = try await fetch { request in
            // The first answer is cut: its coding is told again with the rest.
            let answer = FaultResponse.ranged(body, for: request, etag: "\"1\"").setting("Content-Encoding", coding)
            return request.index == 0 ? answer.cut(at: count / 2) : answer
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == body)
        #expect(requests.map { $0["Accept-Encoding"] } == ["identity", "identity"])
        #expect(requests[1]["Range"] == "bytes=\(count / 2)-")
        let record = try InfoFile.read(WorkPath(live.folder.path + "/work").infoPath(info.id)).record
        let plain = coding == "identity" || coding.isEmpty
        #expect(record.validator?.coding == (plain ? nil : coding == "X-GZIP" ? "gzip" : coding.lowercased()))
        #expect(record.history.filter { $0.by == "coding" }.count == (plain ? 0 : 1))
    }

    @Test("a rest in another coding than the part began with starts again", arguments: [true, false])
    func changedCoding(_ beginsEncoded: Bool) async throws {
        let (info, live, requests) = try await fetch { request in
            let answer = FaultResponse.ranged(Self.content, for: request, etag: "\"1\"")
            let isFirst = request.index == 0
            let coded = isFirst == beginsEncoded ? answer.setting("Content-Encoding", "gzip") : answer
            return isFirst ? coded.cut(at: 100_000) : coded
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
        #expect(requests.map { $0["Range"] } == [nil, "bytes=100000-", nil])
    }

    @Test("200 with an empty body is a file of no bytes", arguments: [true, false])
    func empty(_ hasLength: Bool) async throws {
        let (info, live, _) = try await fetch { _ in hasLength ? .ok([]) : .chunked([]) }
        #expect(info.state == .complete)
        #expect(try live.out("a") == [])
    }

    @Test(
        "chunked twice, identity and an empty Transfer-Encoding are read as curl reads them",
        arguments: [
            "chunked, chunked", "chunked\r\nTransfer-Encoding: chunked", "identity, chunked", "identity", "",
            "identity, identity",
        ], [0, 1, 3])
    func transferCoding(_ field: String, _ length: Int) async throws {
        // Kept open: the end of the body is to be known without the connection's.
        let gate = Gate()
        let body = Array("abc".utf8.prefix(length))
        let chunks = "\(length == 0 ? "" : "\(length)\r\n\(String(decoding: body, as: UTF8.self))\r\n")0\r\n\r\n"
        let rest = field.contains("chunked") ? Array(chunks.utf8) : body + Array("beyond".utf8)
        let fields = "Transfer-Encoding: \(field)\r\nContent-Length: \(length)"
        let (info, live, _) = try await fetch(settings: { $0.transport.stallTimeout = .seconds(3_600) }) { _ in
            .raw([.text("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n"), .send(rest), .stall(gate)])
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == body)
    }

    @Test("identity with fewer bytes than Content-Length is never whole")
    func cutIdentity() async throws {
        let (info, live, _) = try await fetch { _ in
            .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 9\r\n\r\nabc")
        }
        expectNothing(info, live, .incompleteBody)
    }

    @Test(
        "a coding that nobody asked for is refused",
        arguments: ["chunked, identity", "chunked, gzip", "gzip, chunked", "identityx", "chunked, another, chunked"])
    func refusedCoding(_ field: String) async throws {
        let (info, live, _) = try await fetch { _ in
            .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(field)\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        }
        expectNothing(info, live, .protocolViolation)
    }

    // MARK: Bodies beside the file

    @Test(
        "the body of an error without an end is waited for a second, or 512 bytes",
        arguments: [404, 503, 401, 202, 300], ["Content-Length: 9999", "X-A: 1", "Transfer-Encoding: chunked"])
    func endlessError(_ status: Int, _ field: String) async throws {
        let gate = Gate()
        let body = field.hasPrefix("Transfer") ? "5\r\nsorry\r\n" : "sorry"
        let (info, live, _) = try await fetch(
            settings: {
                $0.transport.stallTimeout = .seconds(3_600)
                $0.retry.maxAttempts = 1
            }
        ) { _ in .raw([.text("HTTP/1.1 \(status) No\r\n\(field)\r\n\r\n\(body)"), .stall(gate)]) }
        expectNothing(info, live, .httpStatus)
        #expect(info.error?.status == status && info.error?.underlying == "sorry")
    }

    // MARK: Digests

    /// The fields by which servers tell a digest, for a body.
    private static func digests(_ body: [UInt8]) -> [(name: String, value: String)] {
        func base64(_ algorithm: Checksum.Algorithm) -> String { Bytes.base64(algorithm, body) }
        return [
            ("Repr-Digest", "sha-256=:\(base64(.sha256)):"), ("Repr-Digest", "sha-512=:\(base64(.sha512)):"),
            ("Content-Digest", "sha-256=:\(base64(.sha256)):"), ("Digest", "SHA-256=\(base64(.sha256))"),
            ("Digest", "MD5=\(base64(.md5))"), ("Content-MD5", base64(.md5)),
        ]
    }

    @Test("a body that its own digest contradicts is never published, and set aside", arguments: 0..<6)
    func digest(_ index: Int) async throws {
        let (name, right) = Self.digests(Self.content)[index]
        let wrong = Self.digests(Bytes.pattern(count: 10))[index].value
        let (good, kept, _) = try await fetch { _ in FaultResponse.ok(Self.content).adding(name, right) }
        #expect(good.state == .complete, "\(String(describing: good.error))")
        #expect(kept.names == ["a"])
        let (bad, live, _) = try await fetch { _ in FaultResponse.ok(Self.content).adding(name, wrong) }
        expectNothing(bad, live, .checksumMismatch)
        #expect(live.names.count == 1 && live.names[0].hasSuffix(".fkrejected"))
    }

    @Test("the digest of the whole that comes with a 206 is of the joined file", arguments: [true, false])
    func resumedDigest(_ isRight: Bool) async throws {
        let (name, right) = Self.digests(Self.content)[0]
        let wrong = Self.digests(Bytes.pattern(count: 10))[0].value
        let (info, live, _) = try await fetch { request in
            request.index == 0
                ? FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").cut(at: 100_000)
                : FaultResponse.ranged(Self.content, for: request, etag: "\"1\"").adding(name, isRight ? right : wrong)
        }
        guard !isRight else {
            #expect(info.state == .complete)
            return #expect(try live.out("a") == Self.content)
        }
        expectNothing(info, live, .checksumMismatch)
    }

    @Test("a digest given with the task that does not fit", arguments: [1, 4])
    func ownDigest(_ connections: Int) async throws {
        let checksum = try Checksum(.sha256, hex: Bytes.sha256([1]))
        let (info, live, _) = try await fetch(
            settings: { $0.connections = .fixed(connections) }, options: { $0.checksum = checksum }
        ) { .ranged(Self.content, for: $0, etag: "\"1\"") }
        expectNothing(info, live, .checksumMismatch)
    }
}
