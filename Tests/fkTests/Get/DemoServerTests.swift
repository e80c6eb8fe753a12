import TestSupport
import Testing

@testable import fk

@Suite("Demo files") struct DemoFileTests {
    @Test("At least 30 files of mixed size, 200 MiB in all, all different") func set() {
        let files = DemoFile.set()
        #expect(files.count >= 30)
        #expect(files.reduce(0) { $0 + $1.size } == 200 << 20)
        #expect(files.allSatisfy { $0.size >= 0 })
        #expect(Set(files.map(\.name)).count == files.count && Set(files.map(\.etag)).count == files.count)
    }

    @Test(
        "Any piece is the same as in the whole",
        arguments: [(0, 64), (1, 9), (7, 1), (13, 30), (63, 1), (8, 16), (5, 0)])
    func pieces(offset: Int, length: Int) {
        let file = DemoFile(name: "x", size: 64, seed: 42)
        #expect(bytes(file, 0, 64)[offset..<(offset + length)].elementsEqual(bytes(file, offset, length)))
    }

    @Test("The digest is the digest of the bytes") func digest() {
        let file = DemoFile(name: "x", size: 300_001, seed: 7)
        let digester = Digester(.sha256)
        bytes(file, 0, 300_001).withUnsafeBytes { digester.update($0) }
        #expect(file.digest() == digester.hex())
        #expect(file.digest() != DemoFile(name: "x", size: 300_001, seed: 8).digest())
    }

    private func bytes(_ file: DemoFile, _ offset: Int, _ length: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length)
        bytes.withUnsafeMutableBytes { file.fill($0, from: Int64(offset)) }
        return bytes
    }
}

@Suite("Demo server") struct DemoServerTests {
    private static let file = DemoFile(name: "a b.bin", size: 1_000_003, seed: 3)

    @Test(
        "Ranges and If-Range",
        arguments: [
            (nil, nil, 200, 0..<100), ("bytes=0-", nil, 206, 0..<100), ("bytes=10-19", nil, 206, 10..<20),
            ("bytes=90-900", nil, 206, 90..<100), ("bytes=-5", nil, 206, 95..<100), ("bytes=-500", nil, 206, 0..<100),
            ("bytes=100-", nil, 416, 0..<0), ("bytes=20-10", nil, 200, 0..<100), ("bytes=a-b", nil, 200, 0..<100),
            ("bytes=0-1,5-6", nil, 200, 0..<100), ("items=0-1", nil, 200, 0..<100),
            ("bytes=10-19", "same", 206, 10..<20),
            ("bytes=10-19", "\"other\"", 200, 0..<100), ("bytes=-0", nil, 200, 0..<100),
        ] as [(String?, String?, Int, Range<Int64>)])
    func ranges(range: String?, condition: String?, status: Int, expected: Range<Int64>) throws {
        let file = DemoFile(name: "x", size: 100, seed: 1)
        var head = "GET /x HTTP/1.1\r\n"
        if let range { head += "Range: \(range)\r\n" }
        if let condition { head += "If-Range: \(condition == "same" ? file.etag : condition)\r\n" }
        let answer = DemoAnswer(try #require(DemoRequest(head + "\r\n")), file)
        #expect(answer.status == status && answer.range == expected)
    }

    @Test(
        "What is not a request is refused",
        arguments: [
            "", "GET\r\n", "GET / HTTP/2\r\n", "GET x HTTP/1.1\r\n", "GET /%zz HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nnonsense\r\n",
        ])
    func badRequests(head: String) {
        #expect(DemoRequest(head) == nil)
    }

    @Test("Keep-alive is the protocol's default") func keepAlive() {
        #expect(DemoRequest("GET /a HTTP/1.1\r\n\r\n")?.keepsAlive == true)
        #expect(DemoRequest("GET /a HTTP/1.1\r\nConnection: Close\r\n\r\n")?.keepsAlive == false)
        #expect(DemoRequest("GET /a HTTP/1.0\r\n\r\n")?.keepsAlive == false)
    }

    @Test("Files arrive whole and in pieces, and what was sent is counted") func serving()
        async throws
    {
        let server = try DemoServer(files: [Self.file])
        defer { server.stop() }
        let url = try #require(URL(string: server.url(of: Self.file)))
        let (whole, response) = try await URLSession.shared.data(from: url)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(whole.count == 1_000_003)
        let digester = Digester(.sha256)
        whole.withUnsafeBytes { digester.update($0) }
        #expect(digester.hex() == Self.file.digest())

        var request = URLRequest(url: url)
        request.setValue("bytes=999000-", forHTTPHeaderField: "Range")
        request.setValue(Self.file.etag, forHTTPHeaderField: "If-Range")
        let (piece, answer) = try await URLSession.shared.data(for: request)
        #expect((answer as? HTTPURLResponse)?.statusCode == 206)
        #expect(
            (answer as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Range") == "bytes 999000-1000002/1000003")
        #expect(piece == whole[999_000...])
        #expect(server.requests == 2)
    }

    @Test("A file that is not there is 404; HEAD has no body") func others() async throws {
        let server = try DemoServer(files: [Self.file])
        defer { server.stop() }
        let missing = try #require(URL(string: "http://127.0.0.1:\(server.port)/nothing"))
        #expect((try await URLSession.shared.data(from: missing).1 as? HTTPURLResponse)?.statusCode == 404)
        var head = URLRequest(url: try #require(URL(string: server.url(of: Self.file))))
        head.httpMethod = "HEAD"
        let (body, response) = try await URLSession.shared.data(for: head)
        #expect(body.isEmpty)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Length") == "1000003")
        #expect(server.bytesSent == 0)
    }

    @Test("Stopping ends connections that are being served") func stopping() async throws {
        let server = try DemoServer(files: [Self.file], bytesPerSecond: 10_000)
        let url = try #require(URL(string: server.url(of: Self.file)))
        let transfer = Task { try await URLSession.shared.data(from: url).0 }
        while server.requests == 0 { await Task.yield() }
        server.stop()
        server.stop()
        await #expect(throws: (any Error).self) { try await transfer.value }
        #expect(server.bytesSent < Self.file.size)
    }
}
