import TestSupport
import Testing

@Suite("Digests that stores send")
struct StoreDigestTests {
    private static func answer(
        _ body: [UInt8], _ fields: [HeaderField], to request: TransportRequest, cut: Int? = nil
    ) -> Bench.Answer {
        .file(body, to: request, cut: cut, fields: fields)
    }

    private static func field(_ body: [UInt8], _ algorithm: Checksum.Algorithm) -> HeaderField {
        .init("x-goog-hash", "\(algorithm.plainName)=\(Bytes.base64(algorithm, body))")
    }

    private static func damaged(_ body: [UInt8]) -> [UInt8] {
        var body = body
        body[body.count / 2] ^= 1
        return body
    }

    @Test(
        "an object that arrives damaged is tried again once from byte 0, then it fails", arguments: [1_000, 9 << 20],
        [Checksum.Algorithm.crc32c, .md5])
    func tried(_ length: Int, _ algorithm: Checksum.Algorithm) async throws {
        let body = Bytes.pattern(count: length)
        let sum = Self.field(body, algorithm)
        for damages in [1, 9] {
            let bench = try await Bench(settings: { $0.connections = .fixed(1) }) { request, number in
                Self.answer(number <= damages ? Self.damaged(body) : body, [sum], to: request)
            }
            let id = try await bench.add("a")
            await bench.retried("a", after: 60)
            let info = await bench.finished(id)
            #expect(bench.sent("Range").allSatisfy { $0 == "-" } && bench.transport.requests.count == 2)
            if damages == 1 {
                #expect(info?.state == .complete)
                #expect(try bench.out("a") == body)
            } else {
                #expect(info?.state == .error && info?.error?.code == .checksumMismatch)
                #expect(info?.error?.message.contains("as the server tells") == true)
            }
        }
    }

    @Test("the CRC-32C of a file that was resumed comes from the sums of its pieces", arguments: [false, true])
    func resumed(_ isDamaged: Bool) async throws {
        let body = Bytes.pattern(count: 9 << 20)
        let sum = Self.field(body, .crc32c)
        let bench = try await Bench(settings: { $0.connections = .fixed(1) }) { request, number in
            Self.answer(
                isDamaged && number == 1 ? Self.damaged(body) : body, [sum], to: request,
                cut: number == 1 ? 6 << 20 : nil)
        }
        let id = try await bench.add("a")
        for attempt in 2...(isDamaged ? 3 : 2) {
            await bench.reached("a", .idle, times: attempt)
            await bench.advance(60)
        }
        try await bench.expect("a", body, of: id)
        #expect(bench.transport.requests.count == (isDamaged ? 3 : 2))
        #expect(try bench.stored(id).validator?.digest?.algorithm == .crc32c)
    }

    @Test("verify compares a small object's file with the digest of the store")
    func verified() async throws {
        let body = Bytes.pattern(count: 1_000)
        let sum = Self.field(body, .crc32c)
        let bench = try await Bench { request, _ in Self.answer(body, [sum], to: request) }
        let path = try #require(await bench.finished(try await bench.completed("a"))?.path)
        var results: [VerifiedFile.Result] = []
        for content in [body, Self.damaged(body)] {
            let time = try #require(FileIdentity(path: path)).time
            try overwrite(path, with: content)
            try setTime(time, of: path)
            for try await file in bench.messager.verify(.all) { results.append(file.result) }
        }
        #expect(results == [.right, .damaged])
    }

    @Test("equal CRCs prove nothing about two versions; different ones refute")
    func proof() {
        func version(_ hex: String) -> FileVersion {
            FileVersion(source: hex, length: 9, validator: Validator(digest: try? Checksum(.crc32c, hex: hex)))
        }
        #expect(version("00000001").joins(version("00000002")) == .refuted(by: .digest))
        #expect(version("00000001").joins(version("00000001")) != .proven(by: .digest))
    }
}
