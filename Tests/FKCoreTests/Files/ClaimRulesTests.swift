import TestSupport
import Testing

@testable import FKStore

@Suite("Whose file is at a place, and what each verb may do to it")
struct ClaimRulesTests {
    private static let id = TaskID(url: "http://h.example/a", destination: nil)
    private static let owner = FileOwner(workPath: "w")
    private static let second: Int64 = 1_000_000_000
    private static let time = 1_700_000_000 * second + 123

    /// What is at the place, compared with a file of inode 7, 1,000 bytes, written at `time` and born a second before.
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var isThere = true
        var isRegular = true
        var inode: UInt64 = 7
        var length: Int64 = 1_000
        var later: Int64 = 0
        var born: Int64? = -1
        var mark = FileOwner.Mark.none
        var isForeign = false
        var hasIdentity = true
        var claim: FileClaim
        var testDescription: String { name }
    }

    private static func mark(_ id: TaskID = id, of workPath: String = "w", inode: Int = 7, later: Int64 = 0)
        -> FileOwner.Mark
    {
        .text("\(id.short) \(workPath) \(inode) \(time + later)")
    }
    private static let other = TaskID(url: "http://h.example/b", destination: nil)

    static let rows = [
        Row(name: "nothing", isThere: false, claim: .gone),
        Row(name: "nothing, where a file only counted as the result", isThere: false, isForeign: true, claim: .gone),
        Row(name: "a symlink", isRegular: false, claim: .foreign),
        Row(name: "a file that only counts as the result", isForeign: true, claim: .foreign),
        Row(name: "the file as it was left", claim: .ours),
        Row(name: "the same, marked", mark: mark(), claim: .ours),
        Row(name: "the same, without attributes", mark: .unknown, claim: .ours),
        Row(name: "the same, of unknown birth", born: nil, claim: .ours),
        Row(name: "the same with another task's mark", mark: mark(other), claim: .foreign),
        Row(name: "the same with the mark of another work path", mark: mark(of: "v"), claim: .foreign),
        Row(name: "appended to", length: 1_001, later: 5, claim: .oursEdited),
        Row(name: "cut", length: 10, later: 5, claim: .oursEdited),
        Row(name: "written to", later: 5, claim: .oursEdited),
        Row(name: "of another length at the same time", length: 1_001, claim: .oursEdited),
        Row(name: "written to and marked, of unknown birth", later: 5, born: nil, mark: mark(), claim: .oursEdited),
        Row(name: "shortened by a power cut", length: 10, mark: mark(), claim: .ours),
        Row(name: "inode and length of ours, born later", later: 5, born: 4, claim: .foreign),
        Row(name: "inode, length and time of ours, born later", born: 4, claim: .foreign),
        Row(name: "inode and length of ours, of unknown birth, without mark", later: 5, born: nil, claim: .foreign),
        Row(name: "another inode", inode: 8, claim: .foreign),
        Row(name: "another inode with a copied mark", inode: 8, mark: mark(), claim: .foreign),
        Row(name: "no identity: length and time", hasIdentity: false, claim: .ours),
        Row(name: "no identity: another length", length: 9, hasIdentity: false, claim: .foreign),
        Row(
            name: "no identity: another length, marked", length: 9, mark: mark(), hasIdentity: false, claim: .oursEdited
        ),
        Row(name: "no identity: another time", later: 60 * second, hasIdentity: false, claim: .foreign),
        Row(
            name: "no identity: another time, marked", later: 60 * second, mark: mark(), hasIdentity: false,
            claim: .oursEdited),
    ]

    @Test("the claim", arguments: rows)
    func claim(_ row: Row) {
        let seconds = Double(Self.time) / 1e9
        let record = FileClaim.Record(
            id: Self.id,
            written: row.hasIdentity
                ? FileIdentity(inode: 7, length: 1_000, time: Self.time, born: Self.time - Self.second) : nil,
            expected: 1_000, work: seconds - 10...seconds + 2, isForeign: row.isForeign)
        let found = FileClaim.Found(
            isRegular: row.isRegular,
            identity: FileIdentity(
                inode: row.inode, length: row.length, time: Self.time + row.later,
                born: row.born.map { Self.time + $0 * Self.second }),
            mark: row.mark)
        #expect(FileClaim.judge(row.isThere ? found : nil, record, Self.owner) == row.claim)
    }

    /// For ours, edited, foreign and gone.
    private static func acts(_ deed: FileClaim.Deed) -> [FileClaim.Act] {
        switch deed {
        case .publish: [.leave, .leave, .leave, .take]
        case .overwrite: [.replace, .replace, .replace, .take]
        case .refresh, .repair: [.replace, .keepAside, .leave, .take]
        case .forget: [.leave, .leave, .leave, .leave]
        case .trash, .cancel, .recovery: [.remove, .leave, .leave, .leave]
        case .unpublish, .reject: [.move, .leave, .leave, .leave]
        case .reuse, .proof: [.read, .leave, .leave, .leave]
        case .removeSetAside, .removeLeftBehind: [.remove, .leave, .leave, .leave]
        }
    }

    @Test("what each verb may do", arguments: FileClaim.Deed.allCases)
    func table(_ deed: FileClaim.Deed) {
        #expect([FileClaim.ours, .oursEdited, .foreign, .gone].map { $0.act(deed) } == Self.acts(deed))
    }

    @Test("a file that is removed and made again at the same inode is not the old one")
    func birth() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a").path
        try Data([1, 2, 3]).write(to: folder.file("a"))
        let old = try #require(FileIdentity(path: path))
        #expect(old.matches(old))
        let handle = try FileHandle(forUpdating: folder.file("a"))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data([4]))
        try handle.close()
        let edited = try #require(FileIdentity(path: path))
        #expect(edited.isOne(with: old) == (old.born == nil ? nil : true))
        for number in 0..<64 { try Data([9, 9, 9]).write(to: folder.file("b\(number)")) }
        #expect(unlink(path) == 0)
        try Data([4, 5, 6]).write(to: folder.file("a"))
        let new = try #require(FileIdentity(path: path))
        if old.born != nil { #expect(new.isOne(with: old) == false && !new.matches(old)) }
    }
}
