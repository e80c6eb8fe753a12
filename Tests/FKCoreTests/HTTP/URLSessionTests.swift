import TestSupport
import Testing

@Suite("A downloader over URLSession")
struct URLSessionTests {
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
    }

    @Test("what URLSession cannot keep fails the task with what to do")
    func refused() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        let live = try bench { $0.transport.insecure = true }
        let info = try await live.fetch(server.url("/a"))
        #expect(info.error?.code == .invalidArgument)
        #expect(info.error?.description.contains("libcurl") == true)
        #expect(server.requests.isEmpty)
    }
}
