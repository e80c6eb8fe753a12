import TestSupport
import Testing

@Suite("Digests, lengths and limits")
struct VerifyTests {
    @Test("a right digest, computed while writing", arguments: Checksum.Algorithm.allCases, [0, 10, 400_000])
    func right(_ algorithm: Checksum.Algorithm, _ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let bench = try await Bench(content: content)
        try await bench.completed("a.bin") { $0.options.checksum = try? checksum(algorithm, content) }
        #expect(try bench.out("a.bin") == content)
    }

    private func checksum(_ algorithm: Checksum.Algorithm, _ content: [UInt8]) throws -> Checksum {
        let digester = Digester(algorithm, length: Int64(content.count))
        content.withUnsafeBytes { digester.update($0) }
        return try Checksum(algorithm, hex: digester.hex())
    }

    @Test("a wrong digest: error, no final name, set aside; a mirror may do better")
    func wrong() async throws {
        let bad = Bytes.pattern(count: 1_000)
        let good = Bytes.pattern(count: 1_000, seed: 2)
        let bench = try await Bench { request, _ in
            .file(request.urlRequest.url?.host == "good.example" ? good : bad, to: request)
        }
        let expected = try Checksum(.sha256, hex: Bytes.sha256(good))
        let id = try await bench.add("a.bin") { $0.options.checksum = expected }
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error && info.error?.code == .checksumMismatch)
        #expect(info.error?.message.contains(Bytes.sha256(bad)) == true)
        let aside = FileNameRules.rejectedName(for: "a.bin", id: id)
        #expect(bench.names == [aside])
        #expect(try bench.out(aside) == bad)
        #expect(try bench.stored(id).received == 0)

        try await bench.completed("b.bin") {
            $0.options.checksum = expected
            $0.mirrors = ["http://good.example/b.bin"]
        }
        #expect(try bench.out("b.bin") == good)
        #expect(bench.sent("Range") == ["-", "-", "-"])
        let trashed = try await bench.control.trash(.id(id))
        #expect(trashed.map(\.note) == ["forgotten, deleted \(bench.out)/\(aside)"])
    }

    @Test(
        "after a resume the digest is read back; a wrong one is an error after one more try", arguments: [true, false])
    func readBack(_ isRight: Bool) async throws {
        let content = Bytes.pattern(count: 400_000)
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? 100_000 : nil)
        }
        let id = try await bench.add("a.bin") {
            $0.options.checksum = try? Checksum(.sha256, hex: isRight ? Bytes.sha256(content) : Bytes.sha256([1]))
        }
        await bench.reached("a.bin", .idle, times: 2)
        await bench.advance(1)
        if !isRight {
            await bench.reached("a.bin", .idle, times: 3)
            await bench.advance(60)
        }
        #expect(await bench.finished(id)?.state == (isRight ? .complete : .error))
        #expect(bench.names.contains("a.bin") == isRight)
        #expect(bench.transport.requests.count == (isRight ? 2 : 3))
    }

    @Test("somebody changed a held byte: only the digest can tell, and the file is fetched again from 0")
    func tampered() async throws {
        let content = Bytes.pattern(count: 10_000)
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? 5_000 : nil)
        }
        let id = try await bench.add("a.bin") {
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content))
        }
        await bench.reached("a.bin", .idle, times: 2)
        let part = try #require(bench.names.first)
        var held = try bench.out(part)
        held[100] ^= 1
        let file = try FileHandle(forWritingTo: bench.folder.file("out/\(part)"))
        try file.write(contentsOf: held)
        try file.close()
        await bench.advance(1)
        await bench.reached("a.bin", .idle, times: 3)
        #expect(try bench.stored(id).error?.code == .checksumMismatch)
        #expect(!bench.names.contains("a.bin"))
        await bench.advance(60)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=5000-", "-"])
        #expect(bench.names == ["a.bin"])
        #expect(try bench.out("a.bin") == content)
    }

    @Test("maxSize: refused by the head, or by counting where the head says nothing", arguments: [true, false])
    func maxSize(_ hasLength: Bool) async throws {
        let bench = try await Bench { request, _ in
            hasLength
                ? .file(Bytes.pattern(count: 1_001), to: request)
                : Bench.Answer([
                    .head(ResponseHead(status: 200, url: "http://h.example/a")), .bytes(Bytes.pattern(count: 600)),
                    .bytes(Bytes.pattern(count: 600)),
                ])
        }
        let id = try await bench.add("a") { $0.options.maxSize = 1_000 }
        let info = try #require(await bench.finished(id))
        #expect(info.error?.code == .tooLarge && info.attempts == 1)
        #expect(!bench.names.contains("a"))
        try await bench.completed("b") { $0.options.maxSize = 1_200 }
    }

    @Test("no length and a clean end: complete, and marked as unverified", arguments: [10, 400_000])
    func unknownLength(_ size: Int) async throws {
        let content = Bytes.pattern(count: size)
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            Bench.Answer([
                .head(ResponseHead(status: 200, url: "http://h.example/a")), .bytes(Array(content.prefix(size / 2))),
                .wait(gate), .bytes(Array(content.dropFirst(size / 2))), .finish(lengthVerified: false),
            ])
        }
        let id = try await bench.add("a")
        await gate.reached()
        let half = try #require(await bench.messager.info(.id(id)))
        #expect(half.count.received == Int64(size / 2) && half.count.expected == nil)
        gate.open()
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete && info.count.expected == Int64(size))
        #expect(try bench.stored(id).lengthVerified == false)
        #expect(try bench.out("a") == content)
    }
}
