import TestSupport
import Testing

@testable import FKEngine

/// The bytes that a receiver keeps to itself until the transport waits.
@Suite("Receiver of a range: small pieces are written together")
struct RangeReceiverTests {
    private static let piece = 16 << 10

    /// A receiver without an engine, and the part file that it writes.
    private struct Scene {
        let folder: TemporaryFolder
        let part: PartFile
        let counters = LiveCounters()
        let receiver: RangeReceiver
        let content: [UInt8]

        init(count: Int, start: Int64 = 0) throws {
            folder = try TemporaryFolder()
            content = Bytes.pattern(count: count)
            part = try PartFile(in: Folder(path: folder.path), name: "part")
            var known = ResumeRules.Known()
            var ask = RangeAsk()
            if start > 0 {
                known = ResumeRules.Known(length: Int64(count), validator: Validator(etag: "\"a\""))
                ask = RangeAsk(start: start, ifRange: "\"a\"", usesRange: true)
            }
            receiver = RangeReceiver(
                plan: .init(
                    ask: ask, known: known, index: 0, segments: 1, part: part, counters: counters,
                    limits: LimiterSet(), digest: nil, inlineLimit: .max, wantsPiece: true, clock: ManualClock(),
                    echo: EchoMasking(request: URLRequest(url: URL(string: "http://test/")!), secretHeaders: [])),
                onGate: { $0.openGate() }, onEnd: { _ in })
            var head = ResponseHead(
                status: 200, fields: [.init("Content-Length", "\(count)")], url: "http://test/")
            if start > 0 {
                head = ResponseHead(
                    status: 206,
                    fields: [
                        .init("Content-Length", "\(Int64(count) - start)"), .init("ETag", "\"a\""),
                        .init("Content-Range", "bytes \(start)-\(count - 1)/\(count)"),
                    ], url: "http://test/")
            }
            try receiver.transport(didReceive: head)
        }

        @discardableResult
        func receive(_ range: Range<Int>) -> BodyVerdict {
            content[range].withUnsafeBytes { receiver.transport(didReceive: $0) }
        }

        /// True if the part file has exactly the first bytes of the content.
        func hasWritten(_ count: Int) -> Bool { (try? folder.read("part")) == Array(content[..<count]) }
    }

    @Test("without an announced wait every piece is written at once")
    func unannounced() throws {
        let scene = try Scene(count: 1 << 20)
        scene.receive(0..<Self.piece)
        #expect(scene.hasWritten(Self.piece))
    }

    @Test("full pieces are kept until the transport waits; then they are in the file, and only then counted")
    func gathered() throws {
        let scene = try Scene(count: 1 << 20)
        try scene.receiver.transportWillWait()
        scene.receive(0..<Self.piece)
        scene.receive(Self.piece..<2 * Self.piece)
        scene.receive(2 * Self.piece..<2 * Self.piece + 100)
        #expect(scene.hasWritten(0) && scene.counters.value(0) == 0 && scene.receiver.position == 0)
        try scene.receiver.transportWillWait()
        #expect(scene.hasWritten(2 * Self.piece + 100))
        #expect(scene.counters.value(0) == Int64(2 * Self.piece + 100))
        scene.receive(2 * Self.piece + 100..<2 * Self.piece + 200)
        #expect(scene.counters.value(0) == Int64(2 * Self.piece + 200), "a short piece alone has nothing to wait for")
    }

    @Test("a full buffer is written up to a multiple of its size in the file")
    func aligned() throws {
        let scene = try Scene(count: 1 << 20)
        try scene.receiver.transportWillWait()
        scene.receive(0..<100)
        #expect(scene.counters.value(0) == 100)
        var position = 100
        while position + Self.piece <= GatherBuffer.capacity + Self.piece {
            scene.receive(position..<position + Self.piece)
            position += Self.piece
        }
        #expect(scene.counters.value(0) == Int64(GatherBuffer.capacity))
        #expect(scene.hasWritten(GatherBuffer.capacity))
        try scene.receiver.transportWillWait()
        #expect(scene.hasWritten(position))
    }

    @Test("the last piece is written with those before it, and the checksums are those of the whole")
    func last() throws {
        let count = (1 << 20) + 5 * Self.piece + 7
        let scene = try Scene(count: count)
        try scene.receiver.transportWillWait()
        for start in stride(from: 0, to: count, by: Self.piece) {
            scene.receive(start..<min(start + Self.piece, count))
        }
        #expect(scene.hasWritten(count) && scene.counters.value(0) == Int64(count))
        let checksum = scene.content.withUnsafeBytes { CRC32C.checksum($0) }
        #expect(scene.receiver.piece == PieceChecksum(start: 0, end: Int64(count), crc32c: checksum))
    }

    @Test("bytes that arrived before an error are written", arguments: [true, false])
    func ended(cleanly: Bool) throws {
        let scene = try Scene(count: 1 << 20)
        try scene.receiver.transportWillWait()
        scene.receive(0..<Self.piece)
        scene.receiver.transportDidFinish(
            cleanly
                ? .success(TransportSummary(bodyBytes: Int64(Self.piece), lengthVerified: true))
                : .failure(DownloadError(.connectionLost, "test")))
        #expect(scene.hasWritten(Self.piece) && scene.receiver.position == Int64(Self.piece))
    }

    @Test("a range whose end was moved meanwhile is not written beyond it")
    func moved() throws {
        let scene = try Scene(count: 1 << 20)
        try scene.receiver.transportWillWait()
        for index in 0..<3 { scene.receive(index * Self.piece..<(index + 1) * Self.piece) }
        scene.receiver.setLimit(Int64(2 * Self.piece) + 5)
        try scene.receiver.transportWillWait()
        #expect(scene.hasWritten(2 * Self.piece + 5))
        guard case .enough = scene.receive(3 * Self.piece..<4 * Self.piece) else {
            return unexpected("the connection continues")
        }
        #expect(scene.receiver.position == Int64(2 * Self.piece) + 5)
    }

    @Test("a resumed range is gathered from its own start")
    func resumed() throws {
        let scene = try Scene(count: 1 << 20, start: 1_000)
        try scene.content[..<1_000].withUnsafeBytes { try scene.part.write($0, at: 0) }
        try scene.receiver.transportWillWait()
        scene.receive(1_000..<1_000 + Self.piece)
        #expect(scene.hasWritten(1_000))
        try scene.receiver.transportWillWait()
        #expect(scene.hasWritten(1_000 + Self.piece))
    }
}
