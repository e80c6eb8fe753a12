import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("What a file that was never synced has to show after another boot")
struct ProofRulesTests {
    private static let finished = Date(timeIntervalSince1970: 1_700_000_000)

    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var length: Int64?
        var later = 0.0
        var folder: Double? = 0
        var isComparable = true
        var isRegular = true
        var inode: UInt64 = 7
        var mark = FileOwner.Mark.none
        /// The record says when the task last wrote to the file, and to which.
        var hasIdentity = true
        var expected: Int64 = 1_000
        var proof: FileProof
        var testDescription: String { name }
    }

    static let rows = [
        Row(name: "not there, in a folder changed since", length: nil, folder: 0.1, proof: .complete),
        Row(name: "not there, in a folder not changed since", length: nil, folder: 0, proof: .torn),
        Row(name: "not there, in a folder last changed before", length: nil, folder: -60, proof: .torn),
        Row(name: "not there, with its folder", length: nil, folder: nil, proof: .complete),
        Row(name: "the length, comparable", length: 1_000, proof: .compare),
        Row(name: "the length, not comparable", length: 1_000, isComparable: false, proof: .torn),
        Row(name: "empty, as it should be", length: 0, isComparable: false, expected: 0, proof: .compare),
        Row(name: "empty instead of long", length: 0, proof: .torn),
        Row(name: "shorter", length: 999, proof: .torn),
        Row(name: "longer", length: 1_001, proof: .torn),
        Row(name: "written to since", length: 1_000, later: 0.001, proof: .anothers),
        Row(name: "a coarse clock", length: 1_000, later: -0.5, proof: .compare),
        Row(name: "an earlier write of the task", length: 500, later: -59, proof: .torn),
        Row(name: "from before the task", length: 1_000, later: -63, proof: .anothers),
        Row(name: "another inode", length: 1_000, inode: 8, proof: .anothers),
        Row(name: "another inode, where they may change", length: 1_000, inode: 8, mark: .unknown, proof: .compare),
        Row(name: "another task's mark", length: 1_000, mark: .text("000000000000 x 7 1"), proof: .anothers),
        Row(name: "a symlink", length: 1_000, isRegular: false, proof: .anothers),
        Row(name: "no identity: the length", length: 1_000, hasIdentity: false, proof: .compare),
        Row(name: "no identity: a coarse clock", length: 1_000, later: 1.9, hasIdentity: false, proof: .compare),
        Row(name: "no identity: written to long after", length: 5, later: 60, hasIdentity: false, proof: .anothers),
        Row(name: "no identity: before the task", length: 5, later: -63, hasIdentity: false, proof: .anothers),
    ]

    @Test("the table", arguments: rows)
    func table(_ row: Row) {
        var record = TaskRecord.sample()
        record.edit {
            $0.expected = row.expected
            $0.started = Self.finished - 60
            $0.finished = Self.finished
        }
        let time = Int64(Self.finished.timeIntervalSince1970) * 1_000_000_000
        if row.hasIdentity { record.edit { $0.written = FileIdentity(inode: 7, length: row.expected, time: time) } }
        let file = row.length.map { length in
            FileClaim.Found(
                isRegular: row.isRegular,
                identity: FileIdentity(
                    inode: row.inode, length: length, time: time + Int64(row.later * 1e3) * 1_000_000),
                mark: row.mark)
        }
        #expect(
            FileProof.judge(
                file, of: record, folderChanged: row.folder.map { Self.finished + $0 }, isComparable: row.isComparable)
                == row.proof)
    }

    @Test("a record needs proof in another boot only, once, and only of a file of its own")
    func needsProof() {
        var record = TaskRecord(task: TaskDescription(url: "http://h.example/a"), number: 1, created: Self.finished)
        record.bootID = "a"
        record.edit { $0.path = "/x/a" }
        #expect(!record.needsProof(bootID: "b"))
        record.state = .complete
        #expect(record.needsProof(bootID: "b") && !record.needsProof(bootID: "a"))
        record.edit { $0.isForeign = true }
        #expect(!record.needsProof(bootID: "b"))
        record.edit {
            $0.isForeign = nil
            $0.synced = true
        }
        #expect(!record.needsProof(bootID: "b"))
    }

    @Test("pieces count only where they cover the file, in whatever order they came")
    func covering() {
        let piece = { (start: Int64, end: Int64) in PieceChecksum(start: start, end: end, crc32c: 7) }
        let covering = { (pieces: [PieceChecksum]?) in PieceChecksum.covering(pieces, length: 10) }
        #expect(covering([piece(4, 10), piece(0, 4)]) == [piece(0, 4), piece(4, 10)])
        #expect(covering([piece(0, 10)]) != nil)
        #expect(covering(nil) == nil && covering([]) == nil)
        #expect(covering([piece(0, 4), piece(5, 10)]) == nil)
        #expect(covering([piece(4, 10), piece(0, 5), piece(1, 3)])?.map(\.start) == [0, 1, 4])
        #expect(covering([piece(0, 9)]) == nil && covering([piece(0, 11)]) == nil)
        #expect(covering([piece(0, 0), piece(0, 10)]) == nil)
        #expect(PieceChecksum.covering([], length: 0) == [])
    }

    @Test("files wait five seconds for their sync; those that come by the thousand are left")
    func backlog() {
        let file = { (number: Int, since: Int64) in
            SyncBacklog.File(
                id: TaskID(url: "http://h.example/\(number)", destination: nil), path: "/x/\(number)", since: since)
        }
        var backlog = SyncBacklog()
        #expect(backlog.drainDue(now: .max).isEmpty)
        #expect(backlog.add(file(1, 0)).isEmpty)
        #expect(backlog.add(file(2, 4_000_000_000)).isEmpty)
        #expect(backlog.drainDue(now: 4_999_999_999).isEmpty)
        #expect(backlog.drainDue(now: 5_000_000_000).count == 2)
        #expect(backlog.drainAll().isEmpty)
        let left = (0...SyncBacklog.limit).map { backlog.add(file($0, 0)).count }
        #expect(left.filter { $0 > 0 } == [SyncBacklog.limit + 1])
        #expect(backlog.add(file(5_000, 0)).count == 1)
        #expect(backlog.drainDue(now: 9_000_000_000).isEmpty)
        #expect(backlog.add(file(5_001, 0)).isEmpty)
        #expect(backlog.drainAll().count == 1)
    }

    @Test(
        "a flood of files goes on while as many come, and ends after a second with few",
        arguments: [(300, 0), (100, 900)])
    func flood(rate: Int, synced: Int) {
        var backlog = SyncBacklog()
        let file = { (number: Int, since: Int64) in
            SyncBacklog.File(
                id: TaskID(url: "http://h.example/\(number)", destination: nil), path: "/x/\(number)", since: since)
        }
        for number in 0...SyncBacklog.limit { _ = backlog.add(file(number, 0)) }
        // The timer looks once a second, between the files.
        var kept = 0
        for second in 0..<11 {
            kept += backlog.drainDue(now: Int64(second) * 1_000_000_000).count
            for number in 0..<rate {
                _ = backlog.add(file(number, Int64(second) * 1_000_000_000 + Int64(number * 1_000_000_000 / rate)))
            }
        }
        kept += backlog.drainAll().count
        #expect(kept == synced)
        #expect(backlog.drainDue(now: 20_000_000_000).isEmpty)
        #expect(backlog.add(file(1, 20_000_000_000)).isEmpty)
    }
}
