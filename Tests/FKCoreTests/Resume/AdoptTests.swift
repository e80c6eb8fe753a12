import Foundation
import TestSupport
import Testing

@testable import FKEngine

@Suite("Partial files of other programs")
struct AdoptTests {
    private static let content = Bytes.pattern(count: 400_000)

    /// A task that adopts a file with these bytes.
    private func fetched(
        _ bytes: [UInt8], control: [UInt8]? = nil, checksum: Checksum? = nil, at place: String = "partial",
        from content: [UInt8] = AdoptTests.content, named name: String = "a"
    ) async throws -> (bench: Bench, id: TaskID, history: [String]) {
        let bench = try await Bench(content: content) { $0.retry.baseDelay = .zero }
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        let path = bench.folder.path + "/" + place
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        if let control { try Data(control).write(to: URL(fileURLWithPath: path + ".aria2")) }
        let id = try await bench.add("a") {
            $0.options.adopts = URL(fileURLWithPath: path)
            $0.options.checksum = checksum
        }
        try await bench.expect(name, content, of: id)
        if place != "out/a" || name != "a" {
            #expect(try bench.folder.read(place) == bytes, "the file is never changed")
        }
        return (bench, id, try await bench.record(id).history.map(\.what))
    }

    private static func sum(_ content: [UInt8]) throws -> Checksum {
        try Checksum(.sha256, hex: Bytes.sha256(content))
    }

    @Test("the rest is fetched where the server has the same last bytes", arguments: [300_000, 5_000, 2, 400_000])
    func continued(_ count: Int) async throws {
        let (bench, _, history) = try await fetched(Array(Self.content.prefix(count)))
        let start = count - 1 - min(4_096, count - 1)
        #expect(bench.sent("Range") == ["bytes=\(start)-"])
        #expect(history.contains { $0.contains("its first \(count - 1) byte") }, "\(history)")
    }

    @Test("other bytes at the end, and a longer file, are not taken", arguments: [true, false])
    func refuted(isLonger: Bool) async throws {
        var bytes = Array(Self.content.prefix(300_000))
        if isLonger { bytes = Self.content + Bytes.pattern(count: 9_000) } else { bytes[299_990] ^= 1 }
        let (bench, _, _) = try await fetched(bytes)
        #expect(bench.sent("Range").last == "-" && bench.transport.requests.count == 2)
    }

    @Test("a file one byte longer than the server's is not taken for the whole one") func oneLonger() async throws {
        let (bench, _, _) = try await fetched(Self.content.map { ~$0 } + [0])
        #expect(bench.sent("Range").last == "-")
    }

    @Test("what a digest refutes is fetched again, from the beginning, and the file is not taken twice")
    func digest() async throws {
        var bytes = Array(Self.content.prefix(300_000))
        bytes[10] ^= 1
        let (bench, _, history) = try await fetched(bytes, checksum: Self.sum(Self.content))
        #expect(bench.sent("Range").last == "-")
        #expect(history.count { $0.contains("count if the digest proves") } == 1, "\(history)")
    }

    @Test("an end of zeros proves nothing: what is before it counts; zeros alone are not taken") func zeros()
        async throws
    {
        let bytes = Self.content.prefix(200_000) + [UInt8](repeating: 0, count: 100_000)
        let (bench, _, _) = try await fetched(Array(bytes))
        let last = try #require(Self.content.prefix(200_000).lastIndex { $0 != 0 })
        #expect(bench.sent("Range") == ["bytes=\(last + 1 - 4_096)-"])
        let (other, _, _) = try await fetched([UInt8](repeating: 0, count: 300_000))
        #expect(other.sent("Range") == ["-"])
    }

    // MARK: The name

    @Test(
        "a proven file replaces the partial one of its name; another file gets the next free name",
        arguments: [true, false])
    func name(isProven: Bool) async throws {
        var bytes = Array(Self.content.prefix(300_000))
        if !isProven { bytes[299_990] ^= 1 }
        let (bench, _, _) = try await fetched(bytes, at: "out/a", named: isProven ? "a" : "a.1")
        #expect(try bench.out("a") == (isProven ? Self.content : bytes))
        #expect(FileManager.default.fileExists(atPath: bench.out + "/a.1") == !isProven)
    }

    @Test("a partial file that is written to meanwhile is kept") func changed() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 10_000)
        }
        try FileManager.default.createDirectory(atPath: bench.out, withIntermediateDirectories: true)
        let path = bench.out + "/a"
        try Data(Self.content.prefix(300_000)).write(to: URL(fileURLWithPath: path))
        let id = try await bench.add("a") { $0.options.adopts = URL(fileURLWithPath: path) }
        await gate.reached()
        let other = Array(Self.content.prefix(310_000))
        try Data(other).write(to: URL(fileURLWithPath: path))
        gate.open()
        try await bench.expect("a.1", Self.content, of: id)
        #expect(try bench.out("a") == other)
    }

    @Test("a file that is gone is an error, nothing is fetched, and its folder is not made")
    func missing() async throws {
        let bench = try await Bench(content: Self.content)
        let folder = bench.folder.file("gone")
        let id = try await bench.add("a") { $0.options.adopts = folder.appendingPathComponent("partial") }
        #expect(await bench.finished(id)?.state == .error)
        #expect(bench.transport.requests.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    // MARK: aria2

    /// A control file of version 1 with pieces of 64 KiB, as aria2 1.36 writes it.
    private static func control(_ pieces: [Bool], total: Int = content.count, version: UInt8 = 1) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            let bytes = (0..<count).reversed().map { UInt8(value >> (8 * $0) & 0xff) }
            return version == 1 ? bytes : bytes.reversed()
        }
        var bits = [UInt8](repeating: 0, count: (pieces.count + 7) / 8)
        for (index, isThere) in pieces.enumerated() where isThere { bits[index / 8] |= 0x80 >> UInt8(index % 8) }
        return [0, version, 0, 0, 0, 0] + number(0, 4) + number(65_536, 4) + number(total, 8) + number(0, 8)
            + number(bits.count, 4) + bits + number(0, 4)
    }

    /// The pieces 0, 1 and 4 of seven; the others are zeros.
    private static let pieces = [true, true, false, false, true, false, false]
    private static var preallocated: [UInt8] {
        content.indices.map { pieces[$0 / 65_536] ? content[$0] : 0 }
    }

    @Test(
        "aria2's pieces all count where a digest proves them, else those from the beginning on", arguments: [0, 1],
        [true, false])
    func aria2(_ version: UInt8, _ isCompared: Bool) async throws {
        let (bench, _, history) = try await fetched(
            Self.preallocated, control: Self.control(Self.pieces, version: version),
            checksum: isCompared ? Self.sum(Self.content) : nil)
        let count = isCompared ? 3 * 65_536 : 2 * 65_536
        #expect(history.contains { $0.contains("\(count) bytes") }, "\(history)")
        #expect(bench.sent("Range").allSatisfy { $0 != "-" })
    }

    @Test("a control file that cannot be read is an error, and nothing is fetched")
    func damaged() async throws {
        let good = Self.control(Self.pieces)
        #expect(try Aria2Pieces(good, of: "/f").runs == [0..<131_072, 262_144..<327_680])
        for bytes in [
            [], Array(good.prefix(30)), Array(good.prefix(34)), [9, 9] + good.dropFirst(2), Self.control([], total: 0),
        ] {
            #expect(throws: DownloadError.self) { try Aria2Pieces(bytes, of: "/f") }
        }
        let bench = try await Bench(content: Self.content)
        let path = bench.folder.path + "/partial"
        try Data(Self.preallocated).write(to: URL(fileURLWithPath: path))
        try Data(good.prefix(30)).write(to: URL(fileURLWithPath: path + ".aria2"))
        let id = try await bench.add("a") { $0.options.adopts = URL(fileURLWithPath: path) }
        #expect(await bench.finished(id)?.error?.code == .invalidArgument)
        #expect(bench.transport.requests.isEmpty)
    }
}
