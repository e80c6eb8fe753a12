import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("Whose file a refresh or repair finds")
struct RenewalTests {
    static let old = Bytes.pattern(count: 300_000)
    static let new = Bytes.pattern(count: 300_001, seed: 2)

    /// The verb that meets a task whose finished file was to be fetched again.
    enum Moment: CaseIterable {
        case failed, suspended, running, killed
    }

    /// A complete task, whose server has another version since.
    private func bench(
        answer: Int = 200, gate: TestGate? = nil, _ change: (inout TaskDescription) -> Void = { _ in }
    ) async throws -> (Bench, TaskID) {
        let isNew = Locked(false)
        let bench = try await Bench { request, _ in
            guard isNew.withLock(\.self) else { return .file(Self.old, to: request) }
            if answer != 200 { return .status(answer) }
            return .file(Self.new, etag: "\"2\"", to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await bench.completed("a", change)
        isNew.withLock { $0 = true }
        return (bench, id)
    }

    /// Refreshes the file of `a` up to that moment.
    private func interrupted(_ moment: Moment) async throws -> (Bench, TaskID, TestGate) {
        let gate = TestGate()
        let (bench, id) = try await bench(answer: moment == .failed ? 404 : 200, gate: gate)
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        guard moment != .failed else {
            #expect(await bench.finished(id)?.state == .error)
            return (bench, id, gate)
        }
        await gate.reached()
        if moment == .suspended { try await bench.control.suspend(.id(id)) }
        guard moment == .killed else { return (bench, id, gate) }
        await bench.downloader.close()
        let next = try await Bench(in: bench.folder) { request, _ in
            .file(Self.new, etag: "\"2\"", to: request, gate: gate, pauseAt: 200_000)
        }
        return (next, id, gate)
    }

    @Test(
        "forget after a refresh that has not ended keeps the finished file, and nothing else",
        arguments: Moment.allCases)
    func forget(_ moment: Moment) async throws {
        let (bench, id, gate) = try await interrupted(moment)
        let result = try #require(try await bench.control.forget(.id(id)).first)
        #expect(result.applied && result.note == "forgotten, kept \(bench.out)/a")
        gate.open()
        #expect(try bench.out("a") == Self.old && bench.names == ["a"])
        #expect([.none, .unknown].contains(FileOwner.mark(of: "\(bench.out)/a")))
    }

    @Test(
        "a failed or suspended refresh whose file is right after all is complete again",
        arguments: [Moment.failed, .suspended])
    func restored(_ moment: Moment) async throws {
        let (bench, id, gate) = try await interrupted(moment)
        gate.open()
        _ = await bench.engine.answer(.renew([.restoring(id)]))
        let record = try #require(StoreReader(bench.workPath).records([id]).first)
        #expect(record.state == .complete && record.error == nil && record.former == nil)
        #expect(record.received == Int64(Self.old.count) && record.path == "\(bench.out)/a")
        #expect(try bench.out("a") == Self.old && bench.names == ["a"])
    }

    @Test("a repair that was decided before another command's repair ended fetches nothing")
    func decidedBefore() async throws {
        let (bench, id) = try await bench()
        var late = Renewal(id)
        late.seen = StoreReader(bench.workPath).records([id]).first?.written
        #expect(late.seen != nil)
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        #expect(await bench.finished(id)?.state == .complete)
        let count = bench.sent("Range").count
        #expect(await bench.engine.answer(.renew([late])) == .count(0))
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range").count == count)
    }

    @Test(
        "a suspended or waiting refresh that is asked for again continues, and replaces the file",
        arguments: [Moment.suspended, .running])
    func askedForAgain(_ moment: Moment) async throws {
        let (bench, id, gate) = try await interrupted(moment)
        if moment == .running {
            try await bench.downloader.pause()
            _ = try await eventually { StoreReader(bench.workPath).records([id]).first?.state == .idle ? true : nil }
        }
        gate.open()
        #expect(StoreReader(bench.workPath).records([id]).filter(\.mayRenew).map(\.id) == [id])
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        if moment == .running { try await bench.downloader.resume() }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == Self.new && bench.names == ["a"])
        #expect(bench.sent("Range").last == "bytes=100000-")
    }

    @Test("trash after a refresh that has not ended deletes the finished file and names it", arguments: Moment.allCases)
    func trash(_ moment: Moment) async throws {
        let (bench, id, gate) = try await interrupted(moment)
        let result = try #require(try await bench.control.trash(.id(id)).first)
        #expect(result.note == "forgotten, deleted \(bench.out)/a")
        gate.open()
        #expect(bench.names == [])
    }

    @Test("trash after a refresh that has failed leaves the finished file that somebody has edited, and names it")
    func trashEdited() async throws {
        let (bench, id, _) = try await interrupted(.failed)
        try Meddling.editedInPlace.meddle(with: bench.out + "/a")
        let result = try #require(try await bench.control.trash(.id(id)).first)
        #expect(result.note.contains("\(bench.out)/a stays"))
        #expect(bench.names == ["a"])
    }

    @Test("the permission to overwrite was for the first download: a file that somebody put there since stays")
    func overwrite() async throws {
        let (bench, id) = try await bench { $0.options.existing = .overwrite }
        try #require(unlink(bench.out + "/a") == 0)
        try bench.folder.write([7], to: "out/a")
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete && info.path == bench.out + "/a.1")
        #expect(try bench.out("a") == [7] && bench.out("a.1") == Self.new)
    }

    @Test("a finished file that somebody has edited is kept under another name, which is reported")
    func edited() async throws {
        let (bench, id) = try await bench()
        let mine = try #require(try Meddling.editedInPlace.meddle(with: bench.out + "/a"))
        _ = await bench.engine.answer(.renew([Renewal(id)]))
        #expect(await bench.finished(id)?.path == bench.out + "/a")
        #expect(try bench.out("a") == Self.new && bench.out("a.1") == mine)
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains("kept as \(bench.out)/a.1") })
    }

    @Test(
        "a file of somebody else with the inode number and length of the finished one stays", arguments: [true, false])
    func inodeUsedAgain(isRepair: Bool) async throws {
        let (first, id) = try await bench()
        await first.downloader.close()
        let mine = try #require(try Meddling.replaced.meddle(with: first.out + "/a"))
        let foreign = try #require(FileIdentity(path: first.out + "/a"))
        try first.workPath.change(id) { record in
            let written = record.written
            record.written = written.map {
                FileIdentity(inode: foreign.inode, length: $0.length, time: $0.time, born: $0.born)
            }
        }
        let next = try await Bench(in: first.folder) { request, _ in .file(Self.new, etag: "\"2\"", to: request) }
        let damaged = isRepair ? [Int64(0)..<100] : []
        _ = await next.engine.answer(.renew([Renewal(id, damaged: damaged)]))
        #expect(await next.finished(id)?.path == next.out + "/a.1")
        #expect(try next.out("a") == mine && next.out("a.1") == Self.new)
    }
}
