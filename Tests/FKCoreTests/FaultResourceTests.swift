import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKModel

/// Rows 73 to 76: servers that would go on for ever. Every one of them ends by a limit.
@Suite("Faults: servers without an end", .timeLimit(.minutes(10)))
struct FaultResourceTests {
    private func expectNothing(_ info: DownloadInfo, _ live: LiveBench, _ code: DownloadError.Code) {
        #expect(info.state == .error && info.error?.code == code, "\(String(describing: info.error))")
        #expect(live.names.allSatisfy { $0.hasPrefix(".") }, "\(live.names)")
    }

    @Test(
        "fault 73: an endless body ends at maxSize, by our own count",
        arguments: ["", "Transfer-Encoding: chunked\r\n", "Content-Length: 9223372036854775807\r\n"])
    func endless(_ field: String) async throws {
        let server = try FaultServer()
        let piece = Bytes.pattern(count: 0x4000)
        let framed = field.contains("chunked") ? Array("4000\r\n".utf8) + piece + Array("\r\n".utf8) : piece
        server.route("/a") { _ in .raw([.text("HTTP/1.1 200 OK\r\n\(field)\r\n"), .sendForever(framed)]) }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a")) { $0.maxSize = 1_000_000 }
        expectNothing(info, live, .tooLarge)
        #expect(info.attempts == 1 && info.count.received <= 1_000_000)
        for name in live.names { #expect(try live.out(name).count <= 1_000_000) }
        await live.downloader.close()
    }

    @Test("fault 74: a server that says nothing, stops in the head, or sends a byte now and then is given up")
    func slow() async throws {
        let server = try FaultServer()
        let gate = Gate()
        let drips = FaultResponse.Step.drip([0x78], times: 400, every: 0.1)
        server.route("/mute") { _ in .raw([.stall(gate)]) }
        server.route("/head") { _ in .raw([.text("HTTP/1.1 200 OK\r\nX-A: "), drips]) }
        server.route("/body") { _ in .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n"), drips]) }
        let live = try LiveBench {
            $0.retry = RetryPolicy(maxAttempts: 1)
            $0.transport.stallTimeout = .seconds(1)
            $0.transport.stallRate = 200
        }
        for name in ["mute", "head", "body"] { _ = try await live.add(server.url("/\(name)")) }
        await live.downloader.waitUntilDrained()
        for info in await live.downloader.messager.all() { expectNothing(info, live, .timeout) }
        await live.downloader.close()
    }

    @Test(
        "fault 75: a header flood ends at the cap",
        arguments: ["X-A: \(String(repeating: "x", count: 1_000))\r\n", "X-A: 1\r\n", "x"])
    func flood(_ text: String) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .raw([.text("HTTP/1.1 200 OK\r\n"), .sendForever(Array(text.utf8))]) }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a"))
        expectNothing(info, live, .protocolViolation)
        #expect(info.attempts == 1)
        #expect(server.requests[0].bytesSent < 16 << 20)
        await live.downloader.close()
    }

    @Test("fault 76: nothing is unpacked: an archive's bytes are the file, whatever it is called")
    func archive() async throws {
        // A gzip member of 1 MiB of zeros in about a thousand bytes would grow a thousandfold.
        let packed: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3] + Bytes.pattern(count: 1_000)
        let server = try FaultServer()
        server.route("/a.gz") { _ in .ok(packed, headers: ["Content-Type": "application/gzip"]) }
        server.route("/b.gz") { _ in .ok(packed, headers: ["Content-Encoding": "gzip"]) }
        server.route("/c.gz") { _ in .ok(packed, headers: ["Transfer-Encoding": "gzip"]) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a.gz")).state == .complete)
        #expect(try live.out("a.gz") == packed)
        #expect(try await live.fetch(server.url("/b.gz")).state == .complete)
        #expect(try live.out("b.gz") == packed)
        #expect(try await live.fetch(server.url("/c.gz")).state == .error)
        #expect(live.names == ["a.gz", "b.gz"])
        await live.downloader.close()
    }
}
