import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKModel

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Integration: a real nginx", .timeLimit(.minutes(10)))
struct IntegrationNginxTests {
    /// Has requests go to the slow twin of their URL until the value is false: a transfer can then be interrupted in its
    /// middle however busy the machine is, and is over quickly afterwards.
    private func slowing(_ chains: MiddlewareChains) -> Observed<Bool> {
        let isSlow = Observed(true)
        chains.register(
            request: RequestStep { request, _ in
                guard isSlow.value, let url = request.url,
                    var parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
                else { return request }
                parts.path = "/slow" + parts.path
                var request = request
                request.url = parts.url
                return request
            })
        return isSlow
    }

    private func checksum(_ content: [UInt8]) throws -> Checksum {
        try Checksum(.sha256, hex: Bytes.sha256(content))
    }

    @Test("many files of many sizes, with digests", arguments: ["http", "https"])
    func files(_ scheme: String) async throws {
        let server = try NginxServer()
        let live = try LiveBench {
            $0.maxAction = 8
            $0.transport.caFile = server.certificates.caFile
            // The first one would be alone.
            if scheme == "https" { $0.transport.httpVersion = .http2 }
        }
        var contents: [String: [UInt8]] = [:]
        for (index, size) in [0, 1, 4_095, 70_000, 262_144, 262_145, 3_000_000].enumerated() {
            for copy in 0..<3 {
                let name = "f\(index)-\(copy)"
                contents[name] = Bytes.pattern(count: size, seed: UInt64(index * 7 + copy + 1))
                try server.write(contents[name] ?? [], to: name)
            }
        }
        let base = scheme == "http" ? server.base : server.tlsBase
        for (name, content) in contents {
            _ = try await live.add("\(base)/\(name)") { $0.checksum = try? checksum(content) }
        }
        await live.downloader.waitUntilDrained()
        let infos = await live.downloader.messager.all()
        #expect(infos.count == 21 && infos.allSatisfy { $0.state == .complete }, "\(infos.compactMap(\.error))")
        for (name, content) in contents { #expect(try live.out(name) == content) }
        #expect(live.names == contents.keys.sorted())
        let log = try await server.log(atLeast: 21)
        #expect(log.count == 21)
        #expect(Set(log.map(\.version)) == [scheme == "http" ? "HTTP/1.1" : "HTTP/2.0"])
        await live.downloader.close()
    }

    @Test("a file alone comes over HTTP/1.1, a barrel over HTTP/2")
    func versions() async throws {
        let server = try NginxServer()
        let live = try LiveBench { $0.transport.caFile = server.certificates.caFile }
        let content = Bytes.pattern(count: 300_000)
        for name in ["alone", "a", "b", "c"] { try server.write(content, to: name) }
        // By another name than the barrel, which may else take its idle connection.
        let alone = try await live.fetch("https://localhost:\(server.tlsPort)/alone")
        #expect(alone.state == .complete, "\(String(describing: alone.error))")
        let builders = try ["a", "b", "c"].map { try Builder("\(server.tlsBase)/\($0)") }
        _ = try await Builder.prepare(builders, barrel: "x", in: live.downloader)
        await live.downloader.waitUntilDrained()
        let log = try await server.log(atLeast: 4)
        #expect(log.map(\.version) == ["HTTP/1.1", "HTTP/2.0", "HTTP/2.0", "HTTP/2.0"])
        await live.downloader.close()
    }

    @Test("256 transfers at once over HTTP/2 need a connection for every hundred, not one each")
    func streams() async throws {
        let server = try NginxServer()
        let live = try LiveBench {
            $0.maxAction = 256
            $0.maxConnectionsPerHost = 256
            $0.transport.caFile = server.certificates.caFile
            $0.transport.httpVersion = .http2
        }
        let content = Bytes.pattern(count: 5_000)
        try server.write(content, to: "f")
        var builders = try (0..<300).map { try Builder("\(server.tlsBase)/f?\($0)") }
        for index in builders.indices { builders[index].directory = live.out }
        _ = try await Builder.prepare(builders, barrel: "x", in: live.downloader)
        await live.downloader.waitUntilDrained()
        #expect(await live.downloader.messager.all().allSatisfy { $0.state == .complete })
        let log = try await server.log(atLeast: 300)
        #expect(log.count == 300 && Set(log.map(\.connection)).count <= 4)
        await live.downloader.close()
    }

    @Test("suspended in the middle and resumed: nginx sends hardly a byte twice", arguments: ["http", "https"])
    func resume(_ scheme: String) async throws {
        let server = try NginxServer(slowRate: 100_000)
        let live = try LiveBench {
            $0.transport.caFile = server.certificates.caFile
            $0.connections = .fixed(1)
        }
        let isSlow = slowing(live.downloader.middlewares)
        let content = Bytes.pattern(count: 6_000_000)
        try server.write(content, to: "big.bin")
        let base = scheme == "http" ? server.base : server.tlsBase
        let id = try await live.add("\(base)/big.bin") { $0.checksum = try? checksum(content) }
        for await info in live.downloader.messager.infos(.id(id)) where info.count.received > 0 { break }
        try await live.downloader.control.suspend(.id(id))
        let held = try #require(await live.downloader.messager.info(.id(id))?.count.received)
        #expect(held > 0 && held < 6_000_000)
        isSlow.update { $0 = false }
        try await live.downloader.control.resume(.id(id))
        let info = try #require(await live.downloader.messager.finished(id))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("big.bin") == content)
        let log = try await server.log(atLeast: 2)
        #expect(log.map(\.status) == [200, 206])
        try #require(log.count == 2)
        #expect(log[1].range == "bytes=\(held)-")
        #expect(log[1].bodyBytesSent == 6_000_000 - Int(held))
        // What was under way in socket buffers when the connection was closed.
        #expect(log[0].bodyBytesSent - Int(held) <= 2 << 20)
        await live.downloader.close()
    }

    @Test("several connections get more from a server that limits each of them", arguments: ["http", "https"])
    func several(_ scheme: String) async throws {
        let server = try NginxServer(slowRate: 1_000_000)
        let content = Bytes.pattern(count: 6_000_000)
        try server.write(content, to: "big.bin")
        let base = scheme == "http" ? server.base : server.tlsBase
        for connections in [ConnectionLimit.fixed(4), .automatic] {
            let live = try LiveBench {
                $0.transport.caFile = server.certificates.caFile
                $0.connections = connections
            }
            let info = try await live.fetch("\(base)/slow/big.bin") { $0.checksum = try? checksum(content) }
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("big.bin") == content)
            await live.downloader.close()
        }
        let log = try await server.log(atLeast: 4)
        #expect(log.count { $0.status == 206 } >= 3)
        #expect(Set(log.map(\.connection)).count >= 4)
    }

    @Test("two mirrors that both limit a connection fill one file together, each under its own ETag")
    func mirrorsAtOnce() async throws {
        let servers = [try NginxServer(slowRate: 1_000_000), try NginxServer(slowRate: 1_000_000)]
        let content = Bytes.pattern(count: 8_000_000)
        for (number, server) in servers.enumerated() {
            try server.write(content, to: "big.bin")
            // nginx makes its ETag of the file's time and length.
            let date = Date(timeIntervalSince1970: 1_700_000_000 + Double(number) * 1000)
            try FileManager.default.setAttributes(
                [.modificationDate: date], ofItemAtPath: server.root.appendingPathComponent("big.bin").path)
        }
        let live = try LiveBench { $0.connections = .fixed(2) }
        let info = try await live.fetch(
            "\(servers[0].base)/slow/big.bin", mirrors: ["\(servers[1].base)/slow/big.bin"]
        ) { $0.mirrorPolicy = .combine }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("big.bin") == content)
        // The trial, and then a range.
        let log = try await servers[1].log(atLeast: 2)
        #expect(log.allSatisfy { $0.status == 206 } && log.map(\.bodyBytesSent).max() ?? 0 > 1 << 20)
        #expect(try servers[0].log().count >= 1)
        await live.downloader.close()
    }

    @Test("closed in the middle and opened again: goes on")
    func reopen() async throws {
        let server = try NginxServer(slowRate: 100_000)
        let content = Bytes.pattern(count: 6_000_000)
        try server.write(content, to: "big.bin")
        let live = try LiveBench { $0.connections = .fixed(1) }
        _ = slowing(live.downloader.middlewares)
        let id = try await live.add("\(server.base)/big.bin")
        for await info in live.downloader.messager.infos(.id(id)) where info.count.received > 0 { break }
        let configure = await live.downloader.configure
        await live.downloader.close()
        let second = try Downloader(configure)
        second.activateQueue()
        #expect(await second.messager.finished(id)?.state == .complete)
        #expect(try live.out("big.bin") == content)
        let log = try await server.log(atLeast: 2)
        #expect(log.map(\.status) == [200, 206])
        await second.close()
    }

    @Test("the file changed on the server while it was suspended: only the new one arrives")
    func changed() async throws {
        let server = try NginxServer(slowRate: 100_000)
        let live = try LiveBench()
        let isSlow = slowing(live.downloader.middlewares)
        try server.write(Bytes.pattern(count: 6_000_000), to: "big.bin")
        let id = try await live.add("\(server.base)/big.bin")
        for await info in live.downloader.messager.infos(.id(id)) where info.count.received > 0 { break }
        try await live.downloader.control.suspend(.id(id))
        let new = Bytes.pattern(count: 2_000_000, seed: 5)
        try server.write(new, to: "big.bin")
        isSlow.update { $0 = false }
        try await live.downloader.control.resume(.id(id))
        #expect(await live.downloader.messager.finished(id)?.state == .complete)
        #expect(try live.out("big.bin") == new)
        await live.downloader.close()
    }

    @Test("a certificate nobody vouches for: error with the reason, no file, no retry")
    func untrusted() async throws {
        let server = try NginxServer()
        try server.write([1], to: "a")
        let live = try LiveBench()
        let info = try await live.fetch("\(server.tlsBase)/a")
        #expect(info.state == .error && info.error?.code == .tls && info.attempts == 1)
        #expect(live.names == [])
        await live.downloader.close()
    }
}
