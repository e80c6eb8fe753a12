import TestSupport
import Testing

@testable import FKEngine

@Suite("Pieces with digests from a list") struct PieceLedgerTests {
    /// 5 pieces of 10 bytes, the last with 3.
    private static let digests = PieceDigests(.md5, length: 10, bytes: (0..<80).map { UInt8($0) })!

    private func ledger() throws -> PieceLedger { try #require(PieceLedger(Self.digests, length: 43)) }

    @Test("a piece is due once all of its bytes are there, from whichever ranges, and until it was compared")
    func due() throws {
        var ledger = try ledger()
        let ranges = [
            SavedRange(start: 0, end: 15, position: 15), SavedRange(start: 30, end: 43, position: 43),
            SavedRange(start: 15, end: 30, position: 20),
        ]
        #expect(ledger.due(ranges, bytes: 1_000) == [0, 1, 3, 4])
        #expect(ledger.due(ranges, bytes: 1) == [0] && ledger.due(ranges, bytes: 20) == [0, 1])
        for index in [0, 3] { ledger.pass(index) }
        #expect(ledger.due(ranges, bytes: 1_000) == [1, 4] && !ledger.isDone)
        for index in [1, 2, 4, 4] { ledger.pass(index) }
        #expect(ledger.isDone && ledger.due(ranges, bytes: 1_000).isEmpty)
        ledger.restart()
        #expect(!ledger.isDone && ledger.rightCount == 0)
    }

    @Test(
        "only a file with as many pieces",
        arguments: [(40, false), (41, true), (43, true), (50, true), (51, false), (0, false)])
    func fits(_ length: Int64, _ fits: Bool) { #expect((PieceLedger(Self.digests, length: length) != nil) == fits) }

    @Test("the source of a piece is the newest response that has all of it, or all those that have a part")
    func sources() throws {
        var ledger = try ledger()
        ledger.record(0..<25, from: "a")
        ledger.record(25..<43, from: "b")
        #expect(ledger.sources(of: 0, []) == ["a"] && ledger.sources(of: 2, []) == ["b", "a"])
        #expect(ledger.sources(of: 0, [(0..<10, "c")]) == ["c"])
        ledger.record(20..<30, from: "c")
        #expect(ledger.sources(of: 2, []) == ["c"])
    }

    @Test(
        "a wrong piece is asked of the source that has lied least, and given up after two lies of each, three of a single one"
    )
    func blame() throws {
        var ledger = try ledger()
        let sources = ["a", "b"]
        #expect(ledger.blame(2, ["a"], usable: 2) == .again && ledger.isFetchedAgain(25) && !ledger.isFetchedAgain(30))
        #expect(ledger.source(for: 20, among: sources) == "b")
        #expect(ledger.blame(2, ["b"], usable: 2) == .again)
        #expect(ledger.source(for: 20, among: sources) == "a")
        #expect(ledger.blame(2, ["a"], usable: 2) == .again)
        #expect(ledger.blame(2, ["b"], usable: 2) == .givenUp(fetches: 4))
        #expect(ledger.wrongOf == ["a": 2, "b": 2])
        #expect(ledger.blame(0, ["a"], usable: 1) == .again && ledger.blame(0, ["a"], usable: 1) == .again)
        #expect(ledger.blame(0, [], usable: 1) == .givenUp(fetches: 3))
        ledger.pass(2)
        #expect(!ledger.isFetchedAgain(20))
    }

    @Test("a hole in the ranges: those behind it keep their numbers, and every other byte stays")
    func reopened() {
        let ranges = [SavedRange(start: 0, end: 100, position: 60, synced: 50), SavedRange(start: 100, end: 200)]
        #expect(
            SegmentPlanner.reopen(ranges, 20..<30) == [
                SavedRange(start: 30, end: 100, position: 60, synced: 50), SavedRange(start: 100, end: 200),
                SavedRange(start: 0, end: 20, position: 20, synced: 20), SavedRange(start: 20, end: 30),
            ])
        #expect(
            SegmentPlanner.reopen(ranges, 0..<60) == [
                SavedRange(start: 60, end: 100), SavedRange(start: 100, end: 200), SavedRange(start: 0, end: 60),
            ])
        let full = [SavedRange(start: 0, end: 10, position: 10), SavedRange(start: 10, end: 20, position: 20)]
        #expect(SegmentPlanner.reopen(full, 0..<20) == [SavedRange(start: 0, end: 10), SavedRange(start: 10, end: 20)])
        #expect(SegmentPlanner.reopen(ranges, 120..<130) == ranges)
    }

    @Test("holes in any ranges: no byte counts in the hole, none is lost outside", arguments: FuzzRun.shards)
    func anyHole(shard: Int) async throws {
        try await FuzzRun("holes", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var ranges: [SavedRange] = []
            var start: Int64 = 0
            while start < 200 {
                let end = min(200, start + Int64(1 + random.below(80)))
                let position = start + Int64(random.below(Int(end - start) + 1))
                ranges.append(
                    SavedRange(
                        start: start, end: end, position: position,
                        synced: start + Int64(random.below(Int(position - start) + 1))))
                start = end
            }
            if random.oneIn(2) { ranges.shuffle(using: &random) }
            let from = Int64(random.below(200))
            let hole = from..<from + 1 + Int64(random.below(Int(200 - from)))
            func held(_ ranges: [SavedRange], synced: Bool = false) -> Set<Int64> {
                ranges.reduce(into: []) { $0.formUnion($1.start..<(synced ? $1.synced : $1.position)) }
            }
            let result = SegmentPlanner.reopen(ranges, hole)
            guard held(result) == held(ranges).subtracting(hole) else { return "\(ranges) \(hole): \(result)" }
            guard held(result, synced: true).isSubset(of: held(ranges, synced: true)) else {
                return "synced: \(result)"
            }
            guard result.allSatisfy({ $0.start <= $0.synced && $0.synced <= $0.position && $0.position <= $0.end ?? 0 })
            else {
                return "no order: \(result)"
            }
            let total = result.reduce(0) { $0 + ($1.end ?? 0) - $1.start }
            guard total == 200 else { return "overlaps or gaps: \(result)" }
            for (index, range) in ranges.enumerated()
            where range.position > hole.upperBound && range.start < hole.upperBound {
                guard result[index].end == range.end, result[index].position == range.position else {
                    return "renumbered"
                }
            }
            let normal = SegmentPlanner.normalize(result, expected: 200)
            return held(normal) == held(result) ? nil : "normalized: \(normal)"
        }
    }

    @Test("files of sums and of digests: the ones that were written, or none", arguments: FuzzRun.shards)
    func files(shard: Int) async throws {
        let identity = FileIdentity(inode: 5, length: 3 << 20, time: 9)
        let sums = PieceFile(identity: identity, sums: [1, 2, 3])
        let digests = Self.digests
        try await FuzzRun("files of pieces", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let isSums = random.oneIn(2)
            let original = isSums ? sums.bytes : PieceDigestFile.bytes(digests)
            var bytes = original
            for _ in 0...random.below(3) {
                Mutation.apply(&bytes, with: isSums ? PieceDigestFile.bytes(digests) : sums.bytes, &random)
            }
            if random.oneIn(2), bytes.count >= 4 {
                // Forged: the checksum is right.
                let crc = bytes.dropLast(4).withUnsafeBytes { CRC32C.checksum($0) }
                bytes.replaceSubrange(
                    bytes.count - 4..<bytes.count, with: withUnsafeBytes(of: crc.littleEndian) { Array($0) })
                _ = PieceFile(bytes)
                for algorithm in Checksum.Algorithm.allCases {
                    guard let found = PieceDigestFile.parse(bytes, algorithm) else { continue }
                    if found.fault != nil || found.length < 1 { return "impossible digests: \(found)" }
                }
                return nil
            }
            guard bytes != original else { return nil }
            if let found = PieceFile(bytes), found != sums { return "sums that nobody wrote: \(found)" }
            guard let found = PieceDigestFile.parse(bytes, digests.algorithm), found != digests else { return nil }
            return "digests that nobody wrote: \(found)"
        }
    }

    @Test("digests have the length of their algorithm, and a limit")
    func limits() {
        #expect(PieceDigests(.sha256, length: 1, bytes: [UInt8](repeating: 0, count: 33)) == nil)
        #expect(PieceDigests(.sha256, length: 0, bytes: [UInt8](repeating: 0, count: 32)) == nil)
        #expect(PieceDigests(.md5, length: 1, bytes: [UInt8]()) == nil)
        #expect(PieceDigests(.md5, length: 1, bytes: [UInt8](repeating: 0, count: PieceDigests.maxBytes + 16)) == nil)
        var record = Self.digests.summary
        record.count = .max
        #expect(PieceDigestFile.read("/nowhere", of: record) == nil)
    }
}
