import TestSupport
import Testing

@Suite("Receipts")
struct MessagerReceiptTests {
    static let content = Bytes.pattern(count: 400_000)

    @Test("a receipt of a running, a finished and a restarted task, with its speed")
    func course() async throws {
        let gate = TestGate()
        let first = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 100_000) }
        let id = try await first.add("dir/name.zip")
        await gate.reached()
        await first.advance(2)
        let running = try #require(await first.messager.record(.id(id)))
        #expect(running.state == .action && running.received == 100_000 && running.size == 400_000)
        #expect(running.fraction == 0.25 && running.path == nil && running.name == "name.zip")
        let part = try #require(running.partPath)
        #expect(FileManager.default.contents(atPath: part)?.prefix(100_000) == Data(Self.content.prefix(100_000)))
        #expect(running.bytesPerSecond == 50_000, "no report has been asked for: the average so far")
        #expect(running.created == first.clock.date - 2 && running.finished == nil)
        first.clock.advance(seconds: 2)
        gate.open()
        _ = await first.finished(id)
        let done = try #require(await first.messager.record("http://h.example/dir/name.zip"))
        #expect(
            done.state == .complete && done.fraction == 1 && done.path == first.out + "/name.zip"
                && done.partPath == nil)
        #expect(done.bytesPerSecond == 100_000)
        #expect(done.finished == first.clock.date)
        #expect(try first.stored(id).bytesPerSecond == 100_000)
        // Another process reads it while the engine runs.
        let work = first.folder.file("work")
        #expect(try RecordReader(workPath: work).records().records == [done])
        #expect(try JSONDecoder().decode(DownloadRecord.self, from: try JSONEncoder().encode(done)) == done)
        await first.downloader.close()
        let second = try await Bench(in: first.folder, content: Self.content)
        #expect(try await second.messager.records().records == [done])
    }

    @Test("a suspended task keeps the average of its attempt; a resumed one counts only the bytes of its own")
    func average() async throws {
        let gates = [TestGate(), TestGate()]
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: gates[number - 1], pauseAt: 100_000)
        }
        let id = try await bench.add("a")
        await gates[0].reached()
        await bench.advance(10)
        try await bench.control.suspend(.id(id))
        #expect(try bench.stored(id).bytesPerSecond == 10_000)
        try await bench.control.resume(.id(id))
        await gates[1].reached()
        bench.clock.advance(seconds: 30)
        gates[1].open()
        _ = await bench.finished(id)
        #expect(await bench.messager.record(.id(id))?.bytesPerSecond == 10_000)
        gates[0].open()
    }

    @Test("a failed task has a receipt with its error; an unknown one none")
    func others() async throws {
        let bench = try await Bench { _, _ in .status(404) }
        let id = try await bench.add("a", barrel: "set")
        _ = await bench.finished(id)
        let receipt = try #require(await bench.messager.record(.id(id)))
        #expect(receipt.state == .error && receipt.error?.status == 404 && receipt.fraction == nil)
        #expect(await bench.messager.record("http://h.example/none") == nil)
        // Per receipt verbs.
        #expect(try await bench.control.retry(.id(receipt.id)).map(\.applied) == [true])
    }

    @Test("a file that was there already has no speed")
    func foreign() async throws {
        let bench = try await Bench(content: Self.content)
        try bench.folder.write(Self.content, to: "out/a")
        let id = try await bench.completed("a") { $0.options.existing = .skip }
        #expect(try bench.stored(id).bytesPerSecond == nil)
    }
}

@Suite("Names by digest")
struct DigestNameTests {
    private static let long = String(repeating: "x", count: 30)

    @Test(
        "the digest of the whole URL and the extension of its last part",
        arguments: [
            ("http://h/a.zip", ".zip"), ("http://h/a", ""), ("http://h/", ""), ("http://h", ""),
            ("http://h/a.zip?name=b.png", ".zip"), ("http://h/a?name=b.png", ""), ("http://h/a.tar.gz", ".tar.gz"),
            ("http://h/a.\(long)", ""), ("http://h/a%2ep%6eg", ".png"), ("http://h/.hidden", ""),
            ("http://h/d.x/a", ""), ("http://h/a.b%2F..%2Fc", ""),
        ])
    func table(_ url: String, _ suffix: String) {
        let name = FileNameRules.digestName(url: url, .md5)
        #expect(name == Digester.hex(Digester.bytes(of: url, .md5)) + suffix)
        #expect(FileNameRules.clean(name) == name)
    }

    @Test("a builder takes it as the file's name, percent-encoded URL and all")
    func builder() throws {
        var builder = try Builder("http://h.example/图.png")
        builder.useURLDigestAsFileName()
        #expect(builder.fileName == Digester.hex(Digester.bytes(of: builder.url, .md5)) + ".png")
        builder.useURLDigestAsFileName(.sha256)
        #expect(builder.fileName?.utf8.count == 68)
        try builder.setFileName(builder.fileName)
    }
}
