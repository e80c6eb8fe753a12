import TestSupport
import Testing

@testable import FKEngine

/// A list has given SHA-256 digests of pieces of 256 KiB.
@Suite("Pieces with digests from a list")
struct PieceTests {
    static let piece = 256 << 10
    static let content = Bytes.pattern(count: (3 << 20) + 77)
    static let a = "http://a.example/f"
    static let b = "http://b.example/f"
    /// In piece 6 of 13.
    static let offset = 5 * piece + 1_000
    static let range = "bytes=\(5 * piece)-\(6 * piece - 1)"

    static var digests: PieceDigests { digests(of: content, piece) }

    static func digests(of content: [UInt8], _ length: Int) -> PieceDigests {
        let bytes = stride(from: 0, to: content.count, by: length).flatMap { start in
            Bytes.digest(.sha256, Array(content[start..<min(start + length, content.count)]))
        }
        return PieceDigests(.sha256, length: Int64(length), bytes: bytes)!
    }

    static func wrong(at offsets: Int...) -> [UInt8] {
        var wrong = content
        for offset in offsets { wrong[offset] = ~wrong[offset] }
        return wrong
    }

    private func isB(_ request: TransportRequest) -> Bool { request.urlRequest.url?.host == "b.example" }

    private func ranges(_ bench: Bench, ofB: Bool) -> [String] {
        bench.transport.requests.filter { isB($0) == ofB }
            .map { $0.urlRequest.value(forHTTPHeaderField: "Range") ?? "-" }
    }

    @Test("a wrong byte from A: that piece alone comes from B, without a trial, and the file is right")
    func otherMirror() async throws {
        let bench = try await Bench(settings: { $0.connections = .fixed(1) }) { request, _ in
            .file(isB(request) ? Self.content : Self.wrong(at: Self.offset), etag: nil, to: request)
        }
        let id = try await bench.completed(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.pieces = Self.digests
        }
        #expect(try bench.out("f") == Self.content)
        let record = try bench.stored(id)
        #expect(
            ranges(bench, ofB: false) == ["-"] && ranges(bench, ofB: true) == [Self.range],
            "\(bench.transport.requests.map { $0.urlRequest.url?.host ?? "" }) \(bench.sent("Range")) \(record.history)"
        )
        #expect(record.attempts == 1)
        #expect(
            record.history.contains {
                $0.by == "piece" && $0.what.contains("piece 6 of 13") && $0.what.contains(Self.a)
            })
        // The checksums of our own are those of the file.
        let written = try #require(record.written)
        let sums = try #require(PieceFile.read(bench.workPath.piecesPath(id), of: written)).sums
        #expect(sums[1] == Self.content[1 << 20..<2 << 20].withUnsafeBytes { CRC32C.checksum($0) })
        // The record has a summary; the digests are beside it.
        #expect(record.task.options.pieces == Self.digests.summary)
        #expect(StoreReader(bench.workPath).pieceDigests(of: record) == Self.digests)
        try await bench.control.trash(.id(id))
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.digestsPath(id)))
    }

    @Test("while A still sends, B is asked for the wrong piece at once", arguments: [2, 4])
    func atOnce(_ connections: Int) async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(connections) }) { request, _ in
            isB(request)
                ? .file(Self.content, to: request)
                : .file(Self.wrong(at: Self.offset), etag: nil, to: request, gate: gate, pauseAt: 8 * Self.piece)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.pieces = Self.digests
        }
        try await bench.advance(by: 1) { ranges(bench, ofB: true).contains(Self.range) }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test(
        "one server: the piece is fetched from it again; one that always lies ends with an error",
        arguments: [false, true])
    func oneServer(_ alwaysLies: Bool) async throws {
        let bench = try await Bench { request, number in
            .file(number == 1 || alwaysLies ? Self.wrong(at: Self.offset) : Self.content, to: request)
        }
        let id = try await bench.add(Self.a) { $0.options.pieces = Self.digests }
        let info = try #require(await bench.finished(id))
        if alwaysLies {
            #expect(bench.sent("Range") == ["-", Self.range, Self.range])
            #expect(info.state == .error && info.error?.code == .checksumMismatch && info.error?.isRetryable == false)
            #expect(info.error?.message.contains("piece 6 of 13") == true)
            #expect(info.error?.message.contains("3 attempts at its only server") == true)
            // The right pieces stay for a retry.
            #expect(try bench.stored(id).received == Int64(Self.content.count - Self.piece))
        } else {
            #expect(bench.sent("Range") == ["-", Self.range])
            #expect(info.state == .complete)
            #expect(try bench.out("f") == Self.content)
        }
    }

    @Test("another file at A: B gets the file after three wrong pieces; A and B both lie: an error")
    func anotherFile() async throws {
        let other = Bytes.pattern(count: Self.content.count, seed: 3)
        for bLies in [false, true] {
            let bench = try await Bench(settings: { $0.connections = .fixed(1) }) { request, _ in
                .file(isB(request) && !bLies ? Self.content : other, to: request)
            }
            let id = try await bench.add(Self.a) {
                $0.mirrors = [Self.b]
                $0.options.pieces = Self.digests
                $0.options.maxAttempts = 1
            }
            let info = try #require(await bench.finished(id))
            #expect(info.state == (bLies ? .error : .complete))
            #expect(!bLies || info.error?.code == .checksumMismatch)
            if !bLies { #expect(try bench.out("f") == Self.content) }
            #expect(bench.transport.requests.count < 40)
        }
    }

    @Test("suspended, and a byte of the part changes: that piece alone is fetched again")
    func resumed() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(1) }) { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 8 * Self.piece)
        }
        let id = try await bench.add(Self.a) { $0.options.pieces = Self.digests }
        try await bench.wait { try await bench.record(id).expected != nil }
        await bench.settle()
        try await bench.control.suspend(.id(id))
        gate.open()
        #expect(try bench.stored(id).received == Int64(8 * Self.piece))
        let part = try #require(bench.names.first)
        try overwrite("\(bench.out)/\(part)", with: [~Self.content[Self.offset]], at: Self.offset)
        try await bench.control.resume(.id(id))
        try await bench.expect("f", Self.content, of: id)
        #expect(bench.sent("Range") == ["-", "bytes=\(8 * Self.piece)-", Self.range])
    }

    @Test(
        "no strong validator anywhere: two sources at once all the same, because the list vouches",
        arguments: [false, true])
    func weak(_ byPieces: Bool) async throws {
        let content = Bytes.pattern(count: 8 << 20)
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(4) }) { request, _ in
            isB(request)
                ? .file(content, etag: "W/\"b\"", to: request)
                : .file(content, etag: nil, to: request, gate: gate, pauseAt: 300_000)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            if byPieces {
                $0.options.pieces = Self.digests(of: content, 1 << 20)
            } else {
                $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content))
            }
        }
        try await bench.advance(by: LaneGrowth.intervals.upperBound) { ranges(bench, ofB: true).count > 1 }
        gate.open()
        try await bench.expect("f", content, of: id)
        #expect(try bench.stored(id).attempts == 1)
    }

    @Test("the combined file has another digest: it is fetched from one source alone, and no attempt is lost")
    func alone() async throws {
        let content = Bytes.pattern(count: 8 << 20)
        var other = content
        other[7 << 20] = ~other[7 << 20]
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(2) }) { [other] request, _ in
            isB(request)
                ? .file(other, to: request)
                : .file(content, to: request, gate: gate, pauseAt: 300_000)
        }
        let id = try await bench.add(Self.a) {
            $0.mirrors = [Self.b]
            $0.options.maxAttempts = 1
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(content))
        }
        try await bench.advance(by: LaneGrowth.intervals.upperBound) { ranges(bench, ofB: true).count > 1 }
        let asked = ranges(bench, ofB: true).count
        gate.open()
        try await bench.expect("f", content, of: id)
        #expect(ranges(bench, ofB: true).count == asked)
        #expect(ranges(bench, ofB: false).filter { $0 == "-" }.count == 2)
    }

    @Test("verify and repair by the list's digests, without checksums of our own")
    func verify() async throws {
        let bench = try await Bench(content: Self.content)
        let id = try await bench.add("f") { $0.options.pieces = Self.digests }
        let path = try #require(await bench.finished(id)?.path)
        unlink(bench.workPath.piecesPath(id))
        let verifier = FileVerifier(bench.workPath)
        let right = verifier.verify(try bench.stored(id))
        #expect(right.result == .right && right.reason == "its pieces have the list's sha-256")
        try overwrite(path, with: [~Self.content[Self.offset]], at: Self.offset)
        let damaged = verifier.verify(try bench.stored(id))
        #expect(damaged.damaged == [Int64(5 * Self.piece)..<Int64(6 * Self.piece)])
        #expect(damaged.reason == "1 of 13 pieces differs from the list")
        #expect(try await bench.control.repair([damaged]) == 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", Self.range])
        #expect(try bench.out("f") == Self.content)
    }

    @Test("another number of pieces than the file has, and lost digests: an error with the reason")
    func unfit() async throws {
        let bench = try await Bench(content: Self.content)
        let short = try await bench.add("short") {
            $0.options.pieces = Self.digests(of: Array(Self.content.dropLast(78)), Self.piece)
        }
        let info = await bench.finished(short)
        #expect(info?.error?.code == .changedOnServer && info?.error?.message.contains("12 pieces of 262144") == true)
        let gate = bench.holdRequests()
        let lost = try await bench.add("lost") { $0.options.pieces = Self.digests }
        unlink(bench.workPath.digestsPath(lost))
        let whole = try await bench.add("whole") {
            $0.options.pieces = Self.digests
            $0.options.checksum = try? Checksum(.sha256, hex: Bytes.sha256(Self.content))
        }
        unlink(bench.workPath.digestsPath(whole))
        gate.open()
        #expect(await bench.finished(lost)?.error?.message.contains("add the list again") == true)
        #expect(await bench.finished(whole)?.state == .complete)
        // Added again, the task has them again.
        try await bench.add("lost") { $0.options.pieces = Self.digests }
        #expect(await bench.finished(lost)?.state == .complete)
    }

    @Test("a description from another program whose digests contradict each other is refused")
    func contradiction() async throws {
        let bench = try await Bench(content: [1])
        await #expect(throws: DownloadError.self) {
            try await bench.add("f") {
                $0.options.pieces = Self.digests
                $0.options.pieces?.count = 3
            }
        }
    }
}
