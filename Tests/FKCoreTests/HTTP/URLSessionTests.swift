import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("Integration: a downloader over URLSession", .timeLimit(.minutes(10)))
struct IntegrationURLSessionTests {
    private func bench(_ settings: (inout Configure) -> Void = { _ in }) throws -> LiveBench {
        try LiveBench {
            $0.transportKind = .urlSession
            settings(&$0)
        }
    }

    @Test("a file from nginx, with a digest", arguments: [0, 1, 262_145, 5_000_000])
    func file(_ size: Int) async throws {
        let server = try NginxServer()
        let content = Bytes.pattern(count: size)
        try server.write(content, to: "a.bin")
        let live = try bench()
        let info = try await live.fetch("\(server.base)/a.bin") {
            $0.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content))
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a.bin") == content)
        await live.downloader.close()
    }

    @Test("several connections for one file")
    func lanes() async throws {
        // Twelve seconds over one connection: on a busy machine the others begin late.
        let server = try NginxServer(slowRate: 500_000)
        let content = Bytes.pattern(count: 6_000_000)
        try server.write(content, to: "a.bin")
        let live = try bench { $0.connections = .fixed(3) }
        let info = try await live.fetch("\(server.base)/slow/a.bin")
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a.bin") == content)
        let log = try await server.log(atLeast: 3)
        #expect(log.count { $0.status == 206 } >= 2)
        await live.downloader.close()
    }

    @Test("interrupted by the server in its middle: the rest is fetched, and the file is the same")
    func interrupted() async throws {
        let content = Bytes.pattern(count: 3_000_000)
        let server = try FaultServer()
        server.route("/a") { request in
            let whole = FaultResponse.ranged(content, for: request, etag: "\"1\"")
            return request.index == 0 ? whole.cut(at: 1_000_000) : whole
        }
        let live = try bench()
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == content)
        #expect(server.requests.map { $0["Range"] } == [nil, "bytes=1000000-"])
        await live.downloader.close()
    }

    @Test("suspended in the middle and resumed: the file is the same, and what is there is not fetched again")
    func suspended() async throws {
        let content = Bytes.pattern(count: 6_000_000)
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { request in
            let whole = FaultResponse.ranged(content, for: request, etag: "\"1\"")
            return request.index == 0 ? whole.stalling(at: 2_000_000, until: gate) : whole
        }
        let live = try bench()
        let id = try await live.add(server.url("/a"))
        for await info in live.downloader.messager.infos(.id(id)) where info.count.received == 2_000_000 { break }
        try await live.downloader.control.suspend(.id(id))
        try await live.downloader.control.resume(.id(id))
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == content)
        // On a slow machine more connections may fetch the rest, in any order.
        let starts = server.requests.map { $0["Range"]?.split { !$0.isNumber }.first.flatMap { Int($0) } }
        #expect(starts.first == .some(nil) && starts.contains(2_000_000))
        #expect(starts.dropFirst().allSatisfy { $0 ?? 0 >= 2_000_000 })
        await live.downloader.close()
    }

    @Test("statuses that are errors end the task with the status", arguments: [401, 404, 407, 410])
    func status(_ status: Int) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in
            .status(
                status, body: Array("why".utf8),
                headers: ["WWW-Authenticate": "Basic realm=\"x\"", "Proxy-Authenticate": "Basic"])
        }
        let live = try bench()
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .error)
        #expect(info.error?.code == .httpStatus && info.error?.status == status)
        #expect(info.error?.underlying == "why")
        await live.downloader.close()
    }

    @Test("a barrel of 50 small files")
    func barrel() async throws {
        let server = try NginxServer()
        let live = try bench { $0.maxAction = 8 }
        var contents: [String: [UInt8]] = [:]
        for index in 0..<50 {
            let name = "f\(index)"
            contents[name] = Bytes.pattern(count: 100 + index * 313, seed: UInt64(index + 1))
            try server.write(contents[name] ?? [], to: name)
        }
        for name in contents.keys.sorted() { _ = try await live.add("\(server.base)/\(name)") }
        _ = try await live.downloader.messager.addBarrel("small", urls: contents.keys.map { "\(server.base)/\($0)" })
        await live.downloader.waitUntilDrained()
        #expect(try await live.downloader.messager.barrelInfo("small").states == [.complete: 50])
        for (name, content) in contents { #expect(try live.out(name) == content) }
        let log = try await server.log(atLeast: 50)
        #expect(Set(log.map(\.connection)).count <= 8 * 2)
        await live.downloader.close()
    }

    @Test("a limit in bytes per second holds, and the server cannot run ahead of it")
    func limited() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in
            .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .sendForever(Bytes.pattern(count: 1 << 20))])
        }
        let live = try bench { $0.rateLimit = 1 << 20 }
        let id = try await live.add(server.url("/a"))
        for await info in live.downloader.messager.infos(.id(id)) where info.count.received > 1 << 20 { break }
        await live.downloader.close()
        #expect(server.requests[0].bytesSent < 64 << 20, "\(server.requests[0].bytesSent) bytes")
    }

    @Test("what URLSession cannot keep fails the task with what to do")
    func refused() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        let live = try bench { $0.transport.insecure = true }
        let info = try await live.fetch(server.url("/a"))
        #expect(info.error?.code == .invalidArgument)
        #expect(info.error?.message.contains("libcurl") == true)
        #expect(server.requests.isEmpty)
        await live.downloader.close()
    }
}
