import TestSupport
import Testing

/// A task has half of its file, and its digest is taken away.
@Suite("A digest that is taken away")
struct TakenDigestTests {
    private static let content = Bytes.pattern(count: 400_000)
    private static let changed = otherVersion(of: content)
    private static let a = "http://a.example/f"
    private static let b = "http://b.example/f"
    private static let sum = try? Checksum(.sha256, hex: Bytes.sha256(content))

    /// Another version of the same length, which differs in its first and last byte.
    private static func otherVersion(of content: [UInt8]) -> [UInt8] {
        var other = content
        other[0] ^= 1
        other[other.count - 1] ^= 1
        return other
    }

    enum Way: CaseIterable, Sendable {
        case askedAgain, changed, changedInAnotherEngine
    }

    @Test("the bytes that it vouched for are dropped, and the file is fetched from byte 0", arguments: Way.allCases)
    func dropped(_ way: Way) async throws {
        // B has another version. Only the digest shows it.
        let gate = TestGate()
        let first = try await Bench { request, number in
            request.urlRequest.url?.host == "b.example"
                ? .file(Self.changed, etag: "\"b\"", to: request, gate: gate, pauseAt: 50_000)
                : .file(Self.content, etag: "\"a\"", to: request, cut: 200_000)
        }
        let id = try await first.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.checksum = Self.sum
        }
        await first.transport.started(2)
        await first.settle()
        try await first.control.suspend(.id(id))
        gate.open()
        let held = try first.stored(id)
        #expect(held.received > 200_000 && held.needsDigest == true)

        var bench = first
        if way == .changedInAnotherEngine {
            await first.downloader.close()
            bench = try await Bench(in: first.folder) { request, _ in
                request.urlRequest.url?.host == "b.example"
                    ? .file(Self.changed, etag: "\"b\"", to: request)
                    : .file(Self.content, etag: "\"a\"", to: request)
            }
        }
        if way == .askedAgain {
            try await bench.add(Self.a) {
                $0.mirrors = [Self.b]
                $0.words.insert(.dropsDigests)
            }
        } else {
            var change = TaskChange(id)
            change.options = TaskOptions()
            try await bench.control.change([change])
            try await bench.control.resume(.id(id))
        }
        if way != .changedInAnotherEngine { await bench.advance(60) }
        #expect(await bench.finished(id)?.state == .complete)
        #expect([Self.content, Self.changed].contains(try bench.out("f")))
        let record = try bench.stored(id)
        #expect(record.needsDigest == nil)
        #expect(record.history.contains { $0.by == "resume" && $0.what.contains("taken away") })
    }

    @Test("the bytes stay where a strong entity tag proves the same")
    func kept() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(
                Self.content, etag: "\"1\"", to: request, cut: number == 1 ? 200_000 : nil,
                gate: number == 2 ? gate : nil, pauseAt: 50_000)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.checksum = Self.sum
        }
        await bench.transport.started(2)
        await bench.settle()
        try await bench.control.suspend(.id(id))
        gate.open()
        #expect(try bench.stored(id).needsDigest == nil)
        let held = try bench.stored(id).received
        try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range").last == "bytes=\(held - 4096)-")
        #expect(try bench.out("f") == Self.content)
    }

    @Test("a running task that uses a mirror beside its server begins again")
    func running() async throws {
        let large = Bytes.pattern(count: 8 << 20)
        let other = Self.otherVersion(of: large)
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(4) }) { request, _ in
            let isB = request.urlRequest.url?.host == "b.example"
            return .file(
                isB ? other : large, etag: isB ? "\"b\"" : "\"a\"", to: request, gate: gate, pauseAt: 300_000)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(large))
        }
        try await bench.advance(by: LaneGrowth.intervals.upperBound) {
            bench.transport.requests.count { $0.urlRequest.url?.host == "b.example" } > 1
        }
        #expect(try await bench.record(id).needsDigest == true)
        try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        gate.open()
        try await bench.expect("f", large, of: id)
    }

    @Test("the digest that a mirror sends with its sample is compared with the bytes of both")
    func digestOfMirror() async throws {
        let large = Bytes.pattern(count: 8 << 20)
        let other = Self.otherVersion(of: large)
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(4) }) { request, _ in
            guard request.urlRequest.url?.host == "b.example" else {
                return .file(large, etag: "\"a\"", to: request, gate: gate, pauseAt: 300_000)
            }
            let digest = "sha-256=:\(Bytes.base64(.sha256, other)):"
            return .file(other, etag: "\"b\"", to: request, fields: [.init("Repr-Digest", digest)])
        }
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await bench.advance(by: LaneGrowth.intervals.upperBound) {
            bench.transport.requests.count { $0.urlRequest.url?.host == "b.example" } > 1
        }
        gate.open()
        for _ in 0..<5 { await bench.advance(60) }
        #expect(await bench.finished(id)?.state == .complete)
        #expect([large, other].contains(try bench.out("f")))
    }
}
