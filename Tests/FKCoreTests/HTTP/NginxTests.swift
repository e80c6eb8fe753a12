import TestSupport
import Testing

@Suite("A real nginx")
struct NginxTests {
    /// Has requests go to the slow twin of their URL until the value is false: a transfer can then be interrupted in its
    /// middle however busy the machine is, and is over quickly afterwards.
    private func slowing(_ chains: MiddlewareChains) -> Observed<Bool> {
        let isSlow = Observed(true)
        chains.onRequest("request step") { request, _ in
            guard isSlow.value, let url = request.url,
                var parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
            else { return }
            parts.path = "/slow" + parts.path
            request.url = parts.url
        }
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
            $0.transport.caPath = server.certificates.caFile
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
    }

    @Test("a file alone comes over HTTP/1.1, a barrel over HTTP/2")
    func versions() async throws {
        let server = try NginxServer()
        let live = try LiveBench { $0.transport.caPath = server.certificates.caFile }
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
    }

    @Test("256 transfers at once over HTTP/2 need a connection for every hundred, not one each")
    func streams() async throws {
        let server = try NginxServer()
        let live = try LiveBench {
            $0.maxAction = 256
            $0.maxConnectionsPerHost = 256
            $0.transport.caPath = server.certificates.caFile
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
    }

    @Test("a certificate nobody vouches for: error with the reason, no file, no retry")
    func untrusted() async throws {
        let server = try NginxServer()
        try server.write([1], to: "a")
        let live = try LiveBench()
        let info = try await live.fetch("\(server.tlsBase)/a")
        #expect(info.state == .error && info.error?.code == .tls && info.attempts == 1)
        #expect(live.names == [])
    }
}
