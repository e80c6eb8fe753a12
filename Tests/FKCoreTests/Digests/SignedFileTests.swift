import TestSupport
import Testing

@Suite("Signed files")
struct SignedFileTests {
    private static let content = Bytes.pattern(count: 100_000)

    private func server(_ content: [UInt8]) throws -> FaultServer {
        let server = try FaultServer()
        server.route("/a") { .ranged(content, for: $0, etag: "\"1\"") }
        return server
    }

    @Test(
        "a file gets its name when its signature is proven, and keeps it when it is asked for again", arguments: [1, 4])
    func proven(connections: Int) async throws {
        let (key, signature) = try Minisign.signed(Self.content)
        let server = try server(Self.content)
        let live = try LiveBench { $0.connections = .fixed(connections) }
        for _ in 0..<2 {
            let info = try await live.fetch(server.url("/a")) { $0.signature = FileSignature(signature, by: key) }
            #expect(info.state == .complete, "\(String(describing: info.error))")
            #expect(try live.out("a") == Self.content)
        }
    }

    @Test("a file that the key has not signed never gets its name")
    func refused() async throws {
        let (key, signature) = try Minisign.signed(Self.content)
        let server = try server(Self.content.reversed())
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a")) { $0.signature = FileSignature(signature, by: key) }
        #expect(info.state == .error && info.error?.code == .checksumMismatch)
        #expect(info.error?.message.contains("its signature does not match its bytes") == true)
        #expect(!live.names.contains("a"))
    }

    @Test("an existing file that the key has not signed does not count as the result, and stays")
    func existing() async throws {
        let (key, signature) = try Minisign.signed(Self.content)
        let server = try server(Self.content)
        let live = try LiveBench()
        try FileManager.default.createDirectory(atPath: live.out, withIntermediateDirectories: true)
        _ = try live.folder.write([1], to: "out/a")
        let info = try await live.fetch(server.url("/a")) {
            $0.signature = FileSignature(signature, by: key)
            $0.existing = .skip
        }
        #expect(info.error?.message.contains("was there already") == true)
        #expect(try live.out("a") == [1])
        #expect(server.requests.isEmpty)
    }
}
