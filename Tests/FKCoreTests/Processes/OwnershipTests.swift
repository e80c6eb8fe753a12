import TestSupport
import Testing

/// Only the holder of the work path's lock writes in it, and only to carry something out.
@Suite("Who may write")
struct OwnershipTests {
    static let content = Bytes.pattern(count: 400_000)

    /// A task that runs, with 1,000 bytes.
    private func running(in folder: TemporaryFolder) async throws -> (Bench, TaskID, TestGate) {
        try await Bench.held(Self.content, at: 1_000, barrel: "x", in: folder)
    }

    private func file(_ id: TaskID, _ bench: Bench) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: bench.workPath.infoPath(id)))
    }

    @Test("a closed downloader tells what another engine does, and leaves its records alone", arguments: [false, true])
    func closed(_ wasActive: Bool) async throws {
        let folder = try TemporaryFolder()
        let closed = try await Bench(in: folder, isActive: wasActive) { _, _ in .status(404) }
        await closed.downloader.close()
        let (bench, id, gate) = try await running(in: folder)
        await bench.sync()
        let before = try file(id, bench)
        let messager = closed.messager
        #expect(await messager.info(.id(id))?.state == .action)
        #expect(await messager.info(.id(id))?.count.received == 1_000)
        #expect(await messager.all().map(\.state) == [.action])
        #expect(await messager.state("http://h.example/a") == .action)
        #expect(try await messager.barrelInfo("x").states == [.action: 1])
        #expect(try await messager.urls(inBarrel: "x").count == 1)
        #expect(await messager.record(.id(id))?.state == .action)
        #expect(try await messager.records().records.count == 1)
        #expect(try await messager.waiting().isEmpty)
        #expect(await closed.downloader.messager.all().count == 1)
        #expect(await closed.finished(id)?.state == .action)
        #expect(try file(id, bench) == before)
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(await closed.state(id) == .complete)
        await bench.downloader.close()
    }

    @Test("a closed downloader does not set damaged info files aside: the next engine does")
    func damaged() async throws {
        let bench = try await Bench(isActive: false) { _, _ in .status(404) }
        let id = try await bench.add("a")
        await bench.downloader.close()
        try Data(repeating: 7, count: 5_000).write(to: URL(fileURLWithPath: bench.workPath.infoPath(id)))
        #expect(await bench.messager.info(.id(id)) == nil)
        #expect(await bench.messager.all().isEmpty)
        #expect(FileManager.default.fileExists(atPath: bench.workPath.infoPath(id)))
        let next = try await Bench(in: bench.folder, content: Self.content)
        #expect(!FileManager.default.fileExists(atPath: next.workPath.infoPath(id)))
        await next.downloader.close()
    }

    @Test("before the queue is activated questions write nothing, and what an engine left running is shown as waiting")
    func notActivated() async throws {
        let (bench, id, gate) = try await running(in: try TemporaryFolder())
        let copy = try bench.snapshot()
        let next = try await Bench(in: copy, isActive: false, content: Self.content)
        let before = try file(id, next)
        #expect(await next.state(id) == .idle)
        #expect(await next.messager.all().count == 1)
        #expect(try await next.messager.barrelInfo("x").states == [.idle: 1])
        #expect(try file(id, next) == before)
        await next.engine.activate()
        #expect(await next.finished(id)?.state == .complete)
        #expect(try next.stored(id).state == .complete)
        await next.downloader.close()
        // Its files have the same destination.
        gate.open()
    }

    @Test("what a question has found in disorder is written with the next verb, and not by closing")
    func recoveredByVerb() async throws {
        let (bench, id, gate) = try await running(in: try TemporaryFolder())
        let (asked, told) = (try bench.snapshot(), try bench.snapshot())
        gate.open()
        let first = try await Bench(in: asked, isActive: false) { _, _ in .status(404) }
        let before = try file(id, first)
        #expect(await first.state(id) == .idle)
        await first.downloader.close()
        #expect(try file(id, first) == before)
        let second = try await Bench(in: told, isActive: false) { _, _ in .status(404) }
        #expect(try await !second.control.resume(.id(id))[0].applied)
        #expect(try second.stored(id).state == .idle)
        await second.downloader.close()
    }

    @Test("verbs that have begun are carried out before a closing engine releases its work path")
    func verbsBeforeClose() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1_000) }
        var ids: [TaskID] = []
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] { ids.append(try await bench.add(name)) }
        await bench.transport.started(2)
        async let results = bench.control.suspendAll()
        await bench.reached("a", .suspend)
        await bench.downloader.close()
        #expect(!EngineLock.isHeld(bench.workPath))
        let files = try ids.map { try file($0, bench) }
        #expect(try await results.count == 8)
        #expect(try ids.map { try file($0, bench) } == files)
        #expect(try ids.map { try bench.stored($0).state } == Array(repeating: .suspend, count: 8))
    }

    @Test("an engine whose lock file was replaced stops and writes nothing more")
    func lockReplaced() async throws {
        let (bench, id, gate) = try await running(in: try TemporaryFolder())
        try FileManager.default.removeItem(atPath: bench.workPath.lockPath)
        // Nobody has taken its place yet.
        await bench.advance(1)
        #expect(await bench.state(id) == .action)
        let other = try #require(try EngineLock.tryAcquire(bench.workPath))
        let before = try file(id, bench)
        await bench.advance(1)
        await bench.downloader.close()
        #expect(bench.transport.isShutDown)
        #expect(try file(id, bench) == before)
        #expect(await bench.downloader.takeProblems().contains { $0.message.contains("lock of the work path") })
        await #expect(throws: DownloadError.self) { try await bench.add("b") }
        other.release()
        gate.open()
    }
}
