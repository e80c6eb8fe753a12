import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("Whose part file is at a name, and what may be done to it")
struct PartClaimTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var name: String
        var fault: String?
        var owner = FileOwner.PartOwner.unknown
        var isEmpty = false
        var isLocked = false
        var isOpenHere = false
        var isAsRecorded = false
        var claim: PartClaim
        var testDescription: String { name }
    }

    static let rows = [
        Row(name: "a symlink with our mark", fault: "is a symlink", owner: .us, claim: .foreign("is a symlink")),
        Row(
            name: "a file with two names that is open here", fault: "has 2 names", isOpenHere: true,
            claim: .foreign("has 2 names")),
        Row(name: "open here", owner: .us, isOpenHere: true, claim: .ours),
        Row(name: "open here, without a mark", isOpenHere: true, claim: .ours),
        Row(name: "our mark", owner: .us, claim: .left),
        Row(name: "our mark, and written to since", owner: .us, isAsRecorded: false, claim: .left),
        Row(name: "our mark, open elsewhere", owner: .us, isLocked: true, isAsRecorded: true, claim: .living),
        Row(name: "another's mark", owner: .another, claim: .idle),
        Row(name: "another's mark and an empty file", owner: .another, isEmpty: true, claim: .idle),
        Row(name: "another's mark and the recorded time", owner: .another, isAsRecorded: true, claim: .idle),
        Row(name: "another's mark, open", owner: .another, isLocked: true, claim: .living),
        Row(
            name: "a moved or copied work path's mark, and the recorded time", owner: .relative, isAsRecorded: true,
            claim: .left),
        Row(name: "a moved or copied work path's mark", owner: .relative, claim: .idle),
        Row(
            name: "a moved or copied work path's mark, without a byte", owner: .relative, isEmpty: true, claim: .left),
        Row(
            name: "a moved or copied work path's mark, open", owner: .relative, isLocked: true, isAsRecorded: true,
            claim: .living),
        Row(name: "no mark, and the recorded time", isAsRecorded: true, claim: .left),
        Row(name: "no mark, empty", isEmpty: true, claim: .left),
        Row(name: "no mark, empty, open", isEmpty: true, isLocked: true, claim: .living),
        Row(name: "no mark", claim: .unmarked),
        Row(name: "no mark, open", isLocked: true, isAsRecorded: true, claim: .living),
    ]

    @Test("the table of claims", arguments: rows)
    func claim(_ row: Row) {
        let found = PartClaim.Found(
            fault: row.fault, owner: row.owner, isEmpty: row.isEmpty, isLocked: row.isLocked,
            isOpenHere: row.isOpenHere, isAsRecorded: row.isAsRecorded)
        #expect(PartClaim.judge(found) == row.claim)
        #expect(PartClaim.judge(nil) == .gone)
    }

    @Test("the table of deeds")
    func deeds() {
        let table: [(PartClaim, Set<PartClaim.Deed>)] = [
            (.gone, []), (.ours, [.write, .publish, .shorten, .remove, .setAside]),
            (.left, [.adopt, .shorten, .remove, .setAside]), (.unmarked, [.setAside]), (.living, []), (.idle, []),
            (.foreign("is a symlink"), []),
        ]
        for (claim, deeds) in table {
            #expect(Set(PartClaim.Deed.allCases.filter(claim.allows)) == deeds, "\(claim)")
            #expect((claim.reason == nil) == [.gone, .ours, .left].contains(claim))
        }
    }

    @Test("the mark of a part, and the work path in a name where there is none")
    func marks() {
        let id = TaskID(url: "http://h.example/a", destination: nil)
        let other = TaskID(url: "http://h.example/b", destination: nil)
        let owner = FileOwner(workPath: "w", inode: 7)
        let name = FileNameRules.partName(for: "a", id: id)
        let own = FileNameRules.partName(for: "a", id: id, workPath: owner.digits)
        let others = FileNameRules.partName(for: "a", id: id, workPath: FileOwner(workPath: "v", inode: 7).digits)
        let table: [(FileOwner.Mark, String, FileOwner.PartOwner)] = [
            (.text("\(id.short) w 7 part"), name, .us), (.text("\(id.short) w 7 part"), others, .us),
            (.text("\(id.short) w 8 part"), name, .relative), (.text("\(id.short) v 7 part"), own, .another),
            (.text("\(other.short) w 7 part"), name, .another), (.text("\(id.short) w 3 5"), name, .us),
            (.text("\(id.short) v 3 5"), name, .another), (.text(id.short), name, .unknown),
            (.none, name, .unknown), (.unknown, name, .unknown), (.none, own, .us), (.unknown, own, .us),
            (.none, others, .another), (.unknown, others, .another),
        ]
        for (mark, name, expected) in table {
            #expect(owner.owner(ofPart: mark, name, id) == expected, "\(mark) \(name)")
        }
        #expect(FileNameRules.workPath(inPartName: ".wp0a1b2c3d-a.fkpart") == "0a1b2c3d")
        #expect(FileNameRules.workPath(inPartName: ".wp0A1b2c3d-a.fkpart") == nil)
        #expect(FileNameRules.workPath(inPartName: ".wp0a1b2c3") == nil)
    }

    // MARK: Two work paths

    private static let content = Bytes.pattern(count: 400_000)

    /// A work path of its own with the task, and a destination and a folder of parts that it shares with another one.
    private struct Player {
        let bench: Bench
        let gate: TestGate
        let id: TaskID

        /// Returns once it has 100,000 bytes, and no more come until `gate` is open.
        init(_ out: TemporaryFolder, _ parts: TemporaryFolder?) async throws {
            let gate = TestGate()
            self.gate = gate
            bench = try await Bench(settings: { $0.partsFolder = parts?.url }) { request, _ in
                .file(PartClaimTests.content, to: request, gate: gate, pauseAt: 100_000)
            }
            id = try await bench.add("a") { $0.directory = out.path }
            await gate.reached()
        }

        /// Its file is complete, and has the server's bytes.
        func expectRight() async throws {
            let info = try #require(await bench.finished(id))
            #expect(info.state == .complete, "\(String(describing: info.error))")
            let path = try #require(info.path)
            #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) == PartClaimTests.content)
        }
    }

    @Test(
        "two work paths, one URL and one folder: each has a part of its own, and both files are right",
        arguments: [false, true])
    func together(_ hasPartsFolder: Bool) async throws {
        let (out, parts) = (try TemporaryFolder(), hasPartsFolder ? try TemporaryFolder() : nil)
        let first = try await Player(out, parts)
        let second = try await Player(out, parts)
        #expect((parts ?? out).names.filter { $0.hasSuffix(".fkpart") }.count == 2)
        second.gate.open()
        try await second.expectRight()
        first.gate.open()
        try await first.expectRight()
        #expect(out.names == ["a", "a.1"] && parts?.names ?? [] == [])
    }

    @Test("one stops, the other begins, the first goes on: neither has the other's part", arguments: [false, true])
    func byTurns(_ hasPartsFolder: Bool) async throws {
        let (out, parts) = (try TemporaryFolder(), hasPartsFolder ? try TemporaryFolder() : nil)
        let first = try await Player(out, parts)
        _ = try await first.bench.control.suspend(.id(first.id))
        let second = try await Player(out, parts)
        first.gate.open()
        _ = try await first.bench.control.resume(.id(first.id))
        try await first.expectRight()
        #expect(first.bench.transport.requests.count == 2)
        #expect(first.bench.transport.requests.last?.urlRequest.value(forHTTPHeaderField: "Range") == "bytes=100000-")
        second.gate.open()
        try await second.expectRight()
        #expect(second.bench.transport.requests.count == 1)
        #expect(out.names == ["a", "a.1"] && parts?.names ?? [] == [])
    }

    @Test(
        "another work path has a part under the recorded name: it is not adopted, shortened or removed",
        arguments: [true, false], [Verb.resume, .cancel, .trash])
    func taken(_ isLiving: Bool, _ verb: Verb) async throws {
        let out = try TemporaryFolder()
        let first = try await Player(out, nil)
        _ = try await first.bench.control.suspend(.id(first.id))
        let part = out.file(try #require(out.names.first)).path
        #expect(unlink(part) == 0)
        let second = try await Player(out, nil)
        #expect(out.names == [part.lastPathPart])
        if !isLiving { _ = try await second.bench.control.suspend(.id(second.id)) }
        let before = try #require(FileIdentity(path: part))
        first.gate.open()
        switch verb {
        case .cancel: _ = try await first.bench.control.cancel(.id(first.id))
        case .trash: _ = try await first.bench.control.trash(.id(first.id))
        default:
            _ = try await first.bench.control.resume(.id(first.id))
            try await first.expectRight()
        }
        #expect(FileIdentity(path: part) == before)
        second.gate.open()
        if !isLiving { _ = try await second.bench.control.resume(.id(second.id)) }
        try await second.expectRight()
        #expect(second.bench.transport.requests.count == (isLiving ? 1 : 2))
    }

    @Test("another work path has a part under the name of a complete task's: the task stays complete")
    func complete() async throws {
        let out = try TemporaryFolder()
        let first = try await Player(out, nil)
        first.gate.open()
        try await first.expectRight()
        let folder = first.bench.folder
        await first.bench.downloader.close()
        #expect(try first.bench.stored(first.id).partName != nil)
        let second = try await Player(out, nil)
        #expect(try StoreReader(first.bench.workPath).record(first.id).state == .complete)
        let again = try await Bench(in: folder, content: Self.content)
        #expect(await again.state(first.id) == .complete && again.transport.requests.isEmpty)
        second.gate.open()
        try await second.expectRight()
        #expect(out.names == ["a", "a.1"])
    }

    @Test("a folder in the place of the part stays and is named, and the file is fetched")
    func folderInPlace() async throws {
        let bench = try await Bench(content: Self.content)
        let part = FileNameRules.partName(for: "a.bin", id: bench.task("a.bin").id)
        try FileManager.default.createDirectory(atPath: "\(bench.out)/\(part)", withIntermediateDirectories: true)
        try await bench.completed("a.bin")
        #expect(bench.names.sorted() == [part, "a.bin"])
        let problems = await bench.downloader.takeProblems()
        #expect(
            problems.map(\.message) == [
                "\(bench.out)/\(part) is not a regular file: it stays, and the unfinished file has another name."
            ])
    }

    @Test("a folder whose files cannot have marks: the names of parts say whose they are")
    func withoutMarks() async throws {
        let folder = try TemporaryFolder()
        let open = try Folder(path: folder.path)
        let id = TaskID(url: "http://h.example/a", destination: nil)
        let key = PartKey(id: id, owner: FileOwner(workPath: nil, inode: 3))
        let usual = FileNameRules.partName(for: "a", id: id)
        #expect(open.takesMarks)
        #expect(try PartFile.made(in: open, name: usual, key) == nil)
        #expect(!open.takesMarks && folder.names == [])
        let own = FileNameRules.partName(for: "a", id: id, workPath: key.owner.digits)
        let part = try #require(try PartFile.made(in: open, name: own, key))
        try Self.content.withUnsafeBytes { try part.write($0, at: 0) }
        #expect(open.claim(ofPart: own, key) == .living)
        part.close()
        #expect(open.claim(ofPart: own, key) == .left)
        let other = PartKey(id: id, owner: FileOwner(workPath: nil, inode: 4))
        #expect(open.claim(ofPart: own, other) == .idle)
        open.removePart(own, other)
        #expect(folder.names == [own])
        open.removePart(own, key)
        #expect(folder.names == [])
    }
}
