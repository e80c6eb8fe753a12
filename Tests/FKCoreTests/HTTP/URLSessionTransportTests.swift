import TestSupport
import Testing

/// One after another: all sessions of a process share one queue, and what floods it would make others look silent.
@Suite("The transport over URLSession", .serialized)
struct URLSessionTransportTests {
    /// A case that FoundationNetworking's own faults make impossible. Docs/Transports.md has the same list.
    struct Impossible: Sendable, CustomTestStringConvertible {
        let name: String
        let reason: String
        /// False where trying it would end or flood the process.
        var canBeTried = true

        var testDescription: String { "\(name): \(reason)" }
    }

    private static let crash = "the process ends (swift-corelibs-foundation #5285)"
    private static let lenient = "Foundation's reader of heads is stricter or more lenient"

    static let impossible: [Impossible] = [
        .init(name: "head cut by the end of the connection", reason: crash, canBeTried: false),
        .init(
            name: "header floods are capped in bytes and lines", reason: "libcurl's limit of a line is the only one",
            canBeTried: false),
        .init(name: "head: HTTP/1.0", reason: "the version is not told"),
        .init(name: "head: no reason phrase", reason: lenient),
        .init(
            name: "head: lines that end with LF alone", reason: "\(lenient) (swift-corelibs-foundation #4965)"),
        .init(name: "head: a repeated field keeps its order", reason: "fields come in a dictionary"),
        .init(name: "head: blanks around a value", reason: lenient),
        .init(name: "head: a value of blanks only", reason: lenient),
        .init(name: "head: bytes that are not UTF-8 are Latin-1", reason: lenient),
        .init(name: "head refused: a bare CR", reason: lenient),
        .init(name: "control characters in Location are refused", reason: "two Location fields are joined"),
    ]

    static let cases = TransportConformance.cases(for: [.strictHeaders, .headerCaps])
    static let possible = cases.filter { test in !impossible.contains { $0.name == test.name } }

    @Test("keeps the transports' contract", arguments: possible)
    func conformance(_ test: TransportConformance) async throws {
        try await test.run { URLSessionTransport() }
    }

    #if canImport(FoundationNetworking)
        @Test("what is listed as impossible still is", arguments: impossible.filter(\.canBeTried))
        func stillImpossible(_ listed: Impossible) async throws {
            let test = try #require(Self.cases.first { $0.name == listed.name })
            await #expect(throws: TransportConformance.Failure.self) { try await test.run { URLSessionTransport() } }
        }
    #endif

    @Test("the list of what is impossible names cases that exist", arguments: impossible)
    func listed(_ listed: Impossible) {
        #expect(Self.cases.contains { $0.name == listed.name })
    }

    @Test("a paused transfer lets the server send no more than the system's buffers hold, however long it lasts")
    func pausedIsBounded() async throws {
        let server = try FaultServer()
        let piece = Bytes.pattern(count: 1 << 20)
        server.route("/a") { _ in .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .sendForever(piece)]) }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        // Pauses again and again: whatever each of them lets through would add up.
        let handler = RecordingHandler(
            keepsBody: false,
            onBody: { _, record in record.pieces % 2 == 0 ? .pause(.milliseconds(10)) : .consumed })
        let operation = transport.start(
            try TransportConformance.Context.request(server.url("/a")), handler: handler)
        _ = await handler.record.wait { $0.pieces >= 60 }
        let taken = handler.record.value.bodyBytes
        let ahead = Int64(server.requests[0].bytesSent) - taken
        operation.cancel()
        await handler.finished()
        #expect(ahead < 16 << 20, "\(ahead) bytes were sent ahead")
    }

    @Test("a piece that had to wait may end the transfer, whatever waits behind it", arguments: [true, false])
    func endAfterPause(_ fails: Bool) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .untilClose(Bytes.pattern(count: 200_000)) }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        let error = DownloadError(.tooLarge, "Too much.")
        let handler = RecordingHandler(
            onBody: { _, record in record.pieces == 0 ? .pause(.milliseconds(10)) : fails ? .fail(error) : .enough })
        _ = transport.start(try TransportConformance.Context.request(server.url("/a")), handler: handler)
        let record = await handler.finished()
        #expect(record.violations == [] && record.pieces == 2)
        #expect(fails ? record.error?.code == .tooLarge : record.summary != nil)
    }

    @Test("trailer fields are dropped, and do not end the process", arguments: [200, 404, 401])
    func trailers(_ status: Int) async throws {
        let server = try FaultServer()
        let chunks = "3\r\nabc\r\n0\r\n"
        let trailers = ["X-A: y\r\nX-B: z", "X-A:", "X: \(String(repeating: "x", count: 9_000))"]
        for (number, trailer) in trailers.enumerated() {
            server.route("/\(number)") { _ in
                .raw("HTTP/1.1 \(status) OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)\(trailer)\r\n\r\n")
            }
        }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        for number in 0..<3 {
            let handler = RecordingHandler()
            _ = transport.start(try TransportConformance.Context.request(server.url("/\(number)")), handler: handler)
            let record = await handler.finished()
            #expect(record.head?.status == status && record.head?["X-A"] == nil, "\(number)")
            #expect(status != 200 || record.body == Array("abc".utf8), "\(number)")
        }
    }

    @Test("a handler that blocks holds the server back")
    func slowHandlerIsBounded() async throws {
        let server = try FaultServer()
        let piece = Bytes.pattern(count: 1 << 20)
        server.route("/a") { _ in .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .sendForever(piece)]) }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        let isBlocked = DispatchSemaphore(value: 0)
        let handler = RecordingHandler(
            keepsBody: false,
            onBody: { _, record in
                if record.pieces == 1 { isBlocked.wait() }
                return .consumed
            })
        let operation = transport.start(
            try TransportConformance.Context.request(server.url("/a")), handler: handler)
        let request = await server.wait { $0.first.map { $0.timesBlocked > 0 && $0.bytesSent > 1 << 20 } == true }[0]
        operation.cancel()
        isBlocked.signal()
        await handler.finished()
        #expect(request.bytesSent < 16 << 20, "\(request.bytesSent) bytes were sent to a handler that took one piece")
    }

    @Test("a server that sends without end does not keep others from their turn")
    func turns() async throws {
        let server = try FaultServer()
        server.route("/endless") { _ in
            .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .sendForever(Bytes.pattern(count: 1 << 20))])
        }
        server.route("/small") { _ in .ok([1]) }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        let endless = RecordingHandler(keepsBody: false)
        let operation = transport.start(
            try TransportConformance.Context.request(server.url("/endless")), handler: endless)
        _ = await endless.record.wait { $0.bodyBytes > 0 }
        let small = RecordingHandler()
        _ = transport.start(try TransportConformance.Context.request(server.url("/small")), handler: small)
        #expect(await small.finished().summary != nil)
        operation.cancel()
        #expect(await endless.finished().error?.code == .cancelled)
    }

    @Test("an option that URLSession cannot keep is refused before anything is sent")
    func refusals() async throws {
        let changes: [(String, @Sendable (inout TransportOptions) -> Void)] = [
            ("authorities", { $0.caPath = "/ca.pem" }), ("revocation", { $0.crlPath = "/crl.pem" }),
            ("public keys", { $0.pinnedPublicKey = "sha256//\(Data(count: 32).base64EncodedString())" }),
            ("any certificate", { $0.insecure = true }), ("proxy", { $0.proxy = "http://127.0.0.1:1" }),
            ("network interface", { $0.interface = "lo" }), ("netrc", { $0.netrc = true }),
            ("file of cookies", { $0.cookiePath = "/cookies.txt" }), ("version of HTTP", { $0.httpVersion = .http1 }),
        ]
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        for (what, change) in changes {
            var options = TransportConformance.Context.options
            change(&options)
            let handler = RecordingHandler()
            _ = transport.start(
                try TransportConformance.Context.request(server.url("/a"), options: options), handler: handler)
            let error = try #require(await handler.finished().error)
            #expect(error.code == .invalidArgument && !error.isRetryable)
            #expect(error.message.contains(what) && error.remedy == .useCurl, "\(error)")
        }
        #expect(server.requests.isEmpty)
    }

    @Test("where private redirects are refused, a redirect to a name is too: nobody can tell where it leads")
    func privateRedirect() async throws {
        let server = try FaultServer()
        server.route("/a") { [port = server.port] _ in .redirect(to: "http://name.test:\(port)/b") }
        let transport = URLSessionTransport()
        defer { transport.shutdown() }
        var options = TransportConformance.Context.options
        options.allowsPrivateRedirect = false
        let handler = RecordingHandler()
        _ = transport.start(
            try TransportConformance.Context.request(server.url("/a"), options: options), handler: handler)
        #expect(await handler.finished().error?.code == .redirect)
    }

    @Test("a transport that nobody shuts down still ends what runs, and nothing is kept")
    func dropped() async throws {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { _ in .raw([.stall(gate)]) }
        weak var weakHandler: RecordingHandler?
        do {
            let handler = RecordingHandler()
            weakHandler = handler
            var transport: URLSessionTransport? = URLSessionTransport()
            _ = transport?.start(try TransportConformance.Context.request(server.url("/a")), handler: handler)
            await server.waitForRequests(1)
            transport = nil
            #expect(await handler.finished().error?.code == .cancelled)
        }
        #expect(try await eventually { weakHandler == nil ? true : nil } == true)
    }
}
