import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Integration: a server that lies, cuts and stalls", .timeLimit(.minutes(10)))
struct IntegrationFaultTests {
    static let sizes = [20_000, 1_000_000]

    /// The first answer is the fault, later ones are honest: the file must be right in the end.
    private func recovers(
        _ size: Int, etag: String? = "\"1\"", settings: (inout Configure) -> Void = { _ in },
        _ fault: @escaping @Sendable ([UInt8], FaultRequest) -> FaultResponse?
    ) async throws -> [FaultRequest] {
        let content = Bytes.pattern(count: size)
        let server = try FaultServer()
        server.route("/a") { request in fault(content, request) ?? .ranged(content, for: request, etag: etag) }
        let live = try LiveBench(settings)
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == content)
        #expect(live.names == ["a"])
        await live.downloader.close()
        return server.requests
    }

    @Test("a body shorter than its length: the rest is fetched", arguments: sizes)
    func short(_ size: Int) async throws {
        let requests = try await recovers(size) { content, request in
            request.index == 0 ? .ranged(content, for: request, etag: "\"1\"").cut(at: size / 3) : nil
        }
        #expect(requests.map { $0["Range"] } == [nil, "bytes=\(size / 3)-"])
    }

    @Test("a reset in the middle of the body", arguments: sizes)
    func reset(_ size: Int) async throws {
        let requests = try await recovers(size) { content, request in
            request.index == 0 ? .ranged(content, for: request, etag: "\"1\"").cut(at: size / 3, .reset) : nil
        }
        #expect(requests.count == 2)
    }

    @Test("a chunked body without its last chunk is not whole", arguments: sizes)
    func chunked(_ size: Int) async throws {
        let requests = try await recovers(size, etag: nil) { content, request in
            request.index == 0 ? FaultResponse.chunked(content).cut(at: size / 2) : nil
        }
        #expect(requests.count == 2)
    }

    @Test("a 206 of another range than asked for is thrown away", arguments: sizes)
    func wrongRange(_ size: Int) async throws {
        let requests = try await recovers(size) { content, request in
            switch request.index {
            case 0: return .ranged(content, for: request, etag: "\"1\"").cut(at: size / 2)
            case 1:
                return .status(
                    206, body: Array(content[100...]),
                    headers: ["ETag": "\"1\"", "Content-Range": "bytes 100-\(size - 1)/\(size)"])
            default: return nil
            }
        }
        #expect(requests.count == 3)
    }

    @Test("a 206 without Content-Range is thrown away", arguments: sizes)
    func noContentRange(_ size: Int) async throws {
        let requests = try await recovers(size) { content, request in
            switch request.index {
            case 0: return .ranged(content, for: request, etag: "\"1\"").cut(at: size / 2)
            case 1: return .ranged(content, for: request, etag: "\"1\"").removing("Content-Range")
            default: return nil
            }
        }
        #expect(requests.count == 3)
    }

    @Test("a server that stalls in the body: given up after the time-out, the rest is fetched")
    func stall() async throws {
        let never = Gate()
        let requests = try await recovers(20_000, settings: { $0.transport.stallTimeout = .seconds(1) }) {
            content, request in
            request.index == 0
                ? .ranged(content, for: request, etag: "\"1\"").stalling(at: 5_000, until: never) : nil
        }
        #expect(requests.map { $0["Range"] } == [nil, "bytes=5000-"])
    }

    @Test("a redirect to another origin gets no secrets, the same origin does")
    func secrets() async throws {
        let content = Bytes.pattern(count: 1_000)
        let other = try FaultServer()
        other.routeOthers { .ranged(content, for: $0) }
        let first = try FaultServer()
        let target = other.url("/b")
        first.route("/a") { _ in .redirect(to: "/here") }
        first.route("/here") { _ in .redirect(to: target) }
        let live = try LiveBench()
        live.downloader.middlewares.register(
            request: RequestStep(secretHeaders: ["X-Signature"]) { request, _ in
                var request = request
                request.setValue("s", forHTTPHeaderField: "X-Signature")
                request.setValue("Bearer t", forHTTPHeaderField: "Authorization")
                request.setValue("p", forHTTPHeaderField: "X-Plain")
                return request
            })
        let info = try await live.fetch(first.url("/a")) {
            $0.headers = [.init("X-Token", "t")]
            $0.secretHeaders = ["X-Token"]
        }
        #expect(info.state == .complete && info.path == live.out + "/a")
        for request in first.requests {
            #expect(
                request["X-Signature"] == "s" && request["X-Token"] == "t" && request["Authorization"] == "Bearer t")
        }
        let asked = try #require(other.requests.first)
        #expect(asked["X-Signature"] == nil && asked["X-Token"] == nil && asked["Authorization"] == nil)
        #expect(asked["X-Plain"] == "p")
        await live.downloader.close()
    }

    @Test("what can never be the file: an error that says so, at once, and no file")
    func refused() async throws {
        let server = try FaultServer()
        let flood = (0..<6_000).map { "X-Flood-\($0): \(String(repeating: "x", count: 100))\r\n" }.joined()
        server.route("/flood") { _ in .raw("HTTP/1.1 200 OK\r\n\(flood)Content-Length: 1\r\n\r\nx") }
        let line = String(repeating: "x", count: 290 << 10)
        server.route("/line") { _ in .raw("HTTP/1.1 200 OK\r\nX-A: \(line)\r\nContent-Length: 1\r\n\r\nx") }
        server.route("/coded") { _ in .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx") }
        server.route("/gone") { _ in .status(410, "Gone", body: Array("moved away".utf8)) }
        server.route("/part") { _ in
            .status(206, body: [1], headers: ["Content-Range": "bytes 0-0/10"])
        }
        server.route("/loop") { _ in .redirect(to: "/loop") }
        server.route("/file") { _ in .redirect(to: "file:///etc/passwd") }
        let live = try LiveBench()
        let expected: [(String, DownloadError.Code)] = [
            ("flood", .protocolViolation), ("gone", .httpStatus), ("part", .badRange),
            ("loop", .redirect), ("file", .redirect), ("line", .protocolViolation), ("coded", .protocolViolation),
        ]
        for (name, code) in expected {
            let info = try await live.fetch(server.url("/\(name)"))
            #expect(info.state == .error && info.error?.code == code, "\(name): \(String(describing: info.error))")
            #expect(info.attempts == 1, "\(name)")
        }
        #expect(await live.downloader.messager.error(.url(server.url("/gone")))?.underlying == "moved away")
        let error = try #require(await live.downloader.messager.error(.url(server.url("/line"))))
        #expect(error.message.contains("too long") && error.underlying?.contains("memory") != true)
        #expect(live.names == [])
        await live.downloader.close()
    }

    @Test("nobody listens: tried again, then an error")
    func refusedConnection() async throws {
        let port = try SilentPort()
        let live = try LiveBench()
        defer { withExtendedLifetime(port) {} }
        let info = try await live.fetch("http://127.0.0.1:\(port.number)/a")
        #expect(info.state == .error && info.attempts == 3)
        #expect([.connect, .connectionLost].contains(info.error?.code), "\(String(describing: info.error))")
        #expect(live.names == [])
        await live.downloader.close()
    }

    @Test("a total rate limit holds over several real transfers")
    func rate() async throws {
        let content = Bytes.pattern(count: 150_000)
        let server = try FaultServer()
        server.routeOthers { .ranged(content, for: $0, etag: "\"1\"") }
        let live = try LiveBench { $0.rateLimit = 600_000 }
        let start = ContinuousClock.now
        for index in 0..<4 { _ = try await live.add(server.url("/\(index)")) }
        await live.downloader.waitUntilDrained()
        // A bucketful may come at once.
        #expect(ContinuousClock.now - start > .milliseconds(700))
        for index in 0..<4 { #expect(try live.out("\(index)") == content) }
        await live.downloader.close()
    }
}
