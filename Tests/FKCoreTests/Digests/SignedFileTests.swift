import FKManifests
import TestSupport
import Testing

@Suite("Signed files", .timeLimit(.minutes(5)))
struct SignedFileTests {
    private static let content = Bytes.pattern(count: 100_000)

    /// A key of minisign, and its signature of bytes.
    private func signed(_ bytes: [UInt8]) throws -> (key: SignatureKey, signature: [UInt8]) {
        let folder = try TemporaryFolder()
        _ = try folder.write(bytes, to: "file")
        try Program.run("minisign", ["-G", "-W", "-p", "pub", "-s", "sec"], in: folder.url)
        try Program.run("minisign", ["-S", "-s", "sec", "-m", "file", "-x", "sig"], in: folder.url)
        return (try SignatureKey(contentsOf: folder.file("pub")), try folder.read("sig"))
    }

    private func server(_ content: [UInt8]) throws -> FaultServer {
        let server = try FaultServer()
        server.route("/a") { .ranged(content, for: $0, etag: "\"1\"") }
        return server
    }

    @Test(
        "a file gets its name when its signature is proven, and keeps it when it is asked for again", arguments: [1, 4])
    func proven(connections: Int) async throws {
        let (key, signature) = try signed(Self.content)
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
        let (key, signature) = try signed(Self.content)
        let server = try server(Self.content.reversed())
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a")) { $0.signature = FileSignature(signature, by: key) }
        #expect(info.state == .error && info.error?.code == .checksumMismatch)
        #expect(info.error?.message.contains("its signature does not match its bytes") == true)
        #expect(!live.names.contains("a"))
    }

    @Test("an existing file that the key has not signed does not count as the result, and stays")
    func existing() async throws {
        let (key, signature) = try signed(Self.content)
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

    @Test("nothing of a list is parsed before its signature is proven, and its lock names the signer")
    func list() throws {
        let bytes = Array("https://h/a\n".utf8)
        let (key, signature) = try signed(bytes)
        var manifest = try Manifest.verified(by: key, signature: signature, parsing: bytes)
        #expect(manifest.entries.count == 1 && manifest.facts.signedBy == key.description)
        manifest.entries[0].name = "a"
        let lock = manifest.written(as: .lock).bytes
        #expect(try Manifest(parsing: lock).facts.signedBy == key.description)
        // A malformed list is refused for its signature.
        let error = #expect(throws: DownloadError.self) {
            try Manifest.verified(by: key, signature: signature, parsing: [0xff])
        }
        #expect(error?.code == .checksumMismatch)
    }
}
