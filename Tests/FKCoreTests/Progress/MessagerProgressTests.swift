import TestSupport
import Testing

@testable import FKCore

@Suite("Foundation's Progress")
struct MessagerProgressTests {
    static let content = Bytes.pattern(count: 400_000)

    /// Everything is read where it is changed.
    private let queue = DispatchQueue(label: "test.progress")

    /// Returns once the condition holds on the queue. A `Progress` cannot be observed on Linux.
    private func wait(_ what: Comment = "", _ condition: @escaping @Sendable () -> Bool) async throws {
        let queue = queue
        #expect(try await eventually { queue.sync { condition() } ? true : nil } == true, what)
    }

    /// The same while reports come: the first one may be of a moment in which not all bytes had come.
    private func wait(reporting bench: Bench, _ condition: @escaping @Sendable () -> Bool) async throws {
        try await bench.advance(by: 1) {
            await flush(bench)
            return queue.sync { condition() }
        }
    }

    /// Returns once every progress knows what the engine has told so far: who resumes before it knows that its task is
    /// suspended is overtaken by that news.
    private func flush(_ bench: Bench) async {
        await bench.engine.callbacks.drained()
        queue.sync {}
    }

    private func paused() async throws -> (Bench, TaskID, TestGate, Progress) {
        let (bench, id, gate) = try await Bench.held(Self.content, at: 100_000)
        await bench.sync()
        return (bench, id, gate, try await bench.messager.progress(.id(id), on: queue))
    }

    @Test("bytes, kind, speed and time to go while it runs; finished with the file's URL at the end")
    func course() async throws {
        let (bench, id, gate, progress) = try await paused()
        queue.sync {
            #expect(progress.kind == .file)
            #expect(
                progress.userInfo[.fileOperationKindKey] as? Progress.FileOperationKind == .downloading)
            #expect(progress.completedUnitCount == 100_000 && progress.totalUnitCount == 400_000)
            #expect(progress.fractionCompleted == 0.25 && !progress.isIndeterminate)
            #expect(progress.isPausable && progress.isCancellable && !progress.isPaused && !progress.isFinished)
        }
        gate.open()
        _ = await bench.finished(id)
        try await wait { progress.isFinished }
        queue.sync {
            #expect(progress.completedUnitCount == 400_000 && progress.fractionCompleted == 1)
            #expect((progress.userInfo[.fileURLKey] as? URL)?.path == bench.out + "/a")
            #expect(progress.userInfo[.throughputKey] == nil && !progress.isCancellable)
        }
        try await bench.unobserved()
    }

    @Test("a rate and the time to go, and no finished progress before the file is complete")
    func units() {
        var info = DownloadInfo(
            id: TaskID(url: "u"), url: "u", state: .action, count: ByteCount(received: 300, expected: 400))
        info.bytesPerSecond = 50
        #expect(ProgressSnapshot(info).remainingTime == 2)
        #expect(ProgressSnapshot(info).units == (300, 400))
        info.count.received = 400
        #expect(ProgressSnapshot(info).units == (399, 400))
        info.count = ByteCount(received: 7)
        #expect(ProgressSnapshot(info).units == (7, -1))
        info.count = ByteCount(received: 0, expected: 0)
        #expect(ProgressSnapshot(info).units == (0, 1))
        info.state = .complete
        #expect(ProgressSnapshot(info).units == (1, 1))
    }

    @Test("indeterminate while the length is unknown; an empty file is finished too", arguments: [0, 1_000])
    func unknownLength(_ count: Int) async throws {
        let gate = TestGate()
        let body = Bytes.pattern(count: count)
        let bench = try await Bench { request, _ in
            Bench.Answer([
                .wait(gate), .head(ResponseHead(status: 200, fields: [], url: "http://h.example/a")), .bytes(body),
            ])
        }
        let id = try await bench.add("a")
        let progress = try await bench.messager.progress(.id(id), on: queue)
        queue.sync { #expect(progress.isIndeterminate && progress.totalUnitCount == -1 && !progress.isFinished) }
        gate.open()
        _ = await bench.finished(id)
        try await wait { progress.isFinished && progress.fractionCompleted == 1 }
        queue.sync { #expect(progress.totalUnitCount == Int64(max(1, count)) && !progress.isIndeterminate) }
        let late = try await bench.messager.progress(.id(id), on: queue)
        queue.sync { #expect(late.isFinished && late.fractionCompleted == 1) }
    }

    @Test("pause, resume and cancel act on the task")
    func steering() async throws {
        let (bench, id, gate, progress) = try await paused()
        queue.sync { progress.pause() }
        await bench.reached("a", .suspend)
        try await wait { progress.isPaused }
        await flush(bench)
        queue.sync { progress.resume() }
        await bench.reached("a", .action, times: 2)
        try await wait { !progress.isPaused }
        queue.sync { progress.cancel() }
        await bench.reached("a", .cancel)
        while await bench.messager.info(.id(id))?.count.received != 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
        try await bench.unobserved()
        gate.open()
    }

    @Test("pause and resume in one breath leave the task running")
    func flicker() async throws {
        let (bench, id, gate, progress) = try await paused()
        queue.sync {
            for _ in 0..<20 {
                progress.pause()
                progress.resume()
            }
        }
        gate.open()
        #expect(await bench.finished(id)?.state != .cancel)
        try await bench.control.resumeAll()
        await bench.engine.waitUntilDrained()
        try await wait { progress.isFinished && !progress.isPaused }
    }

    @Test("what Control does shows in the progress, and comes back as no verb")
    func control() async throws {
        let (bench, id, gate, progress) = try await paused()
        try await bench.control.suspend(.id(id))
        try await wait { progress.isPaused }
        try await bench.control.resume(.id(id))
        try await wait { !progress.isPaused }
        await bench.reached("a", .action, times: 2)
        try await bench.control.cancel(.id(id))
        try await wait { progress.isCancelled }
        #expect(bench.log.value.count { $0 == "a:suspend" } == 1)
        // Suspended, cancelled and trashed tasks are so from the first moment.
        try await bench.control.retry(.id(id))
        try await bench.control.suspend(.id(id))
        let suspended = try await bench.messager.progress(.id(id), on: queue)
        queue.sync { #expect(suspended.isPaused) }
        try await bench.control.trash(.id(id))
        try await wait { suspended.isCancelled }
        await #expect(throws: DownloadError.self) { try await bench.messager.progress(.id(id)) }
        gate.open()
    }

    @Test("a pause that does not apply is taken back: a failed task can be queued again")
    func refused() async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(404) : .file(Self.content, to: request)
        }
        let id = try await bench.add("a")
        _ = await bench.finished(id)
        let progress = try await bench.messager.progress(.id(id), on: queue)
        queue.sync { progress.pause() }
        try await wait { !progress.isPaused }
        try await bench.control.retry(.id(id))
        try await wait { progress.isFinished }
    }

    @Test("a parent sums two tasks and steers both")
    func parent() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 100_000) }
        let queue = queue
        let parent = queue.sync { Progress.discreteProgress(totalUnitCount: 10) }
        for (name, share) in [("a", Int64(8)), ("b", 2)] {
            let id = try await bench.add(name)
            await bench.transport.started(name == "a" ? 1 : 2)
            let child = try await bench.messager.progress(.id(id), on: queue)
            queue.sync { parent.addChild(child, withPendingUnitCount: share) }
        }
        await gate.reached()
        try await wait(reporting: bench) { abs(parent.fractionCompleted - 0.25) < 0.001 }
        queue.sync { parent.pause() }
        await bench.reached("a", .suspend)
        await bench.reached("b", .suspend)
        await flush(bench)
        gate.open()
        queue.sync { parent.resume() }
        for name in ["a", "b"] { await bench.reached(name, .complete) }
        await bench.engine.waitUntilDrained()
        try await wait { parent.isFinished && parent.completedUnitCount == 10 }
    }

    @Test("a progress nobody holds leaves no listener; one that is held does not hold the engine")
    func lifetime() async throws {
        weak var engine: Engine?
        var progress: Progress?
        do {
            let (bench, id, gate, first) = try await paused()
            progress = try await bench.messager.progress(.id(id), on: queue)
            engine = bench.engine
            _ = first
            gate.open()
            _ = await bench.finished(id)
            await bench.downloader.close()
        }
        #expect(try await eventually { engine == nil ? true : nil } == true)
        #expect(progress != nil)
        let (bench, id, gate, running) = try await paused()
        weak let dropped: Progress? = running
        do { _ = consume running }
        #expect(try await eventually { dropped == nil ? true : nil } == true)
        try await bench.unobserved()
        #expect(await bench.state(id) == .action)
        gate.open()
    }

    @Test("a barrel's progress: files, pause of all members, finished with the last one")
    func barrel() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 100_000) }
        for name in ["a", "b"] { _ = try await bench.add(name, barrel: "set") }
        await bench.transport.started(2)
        await gate.reached()
        let progress = try await bench.messager.progress(.barrel("set"), on: queue)
        try await wait(reporting: bench) {
            progress.completedUnitCount == 200_000 && progress.totalUnitCount == 800_000
        }
        queue.sync { progress.pause() }
        for name in ["a", "b"] { await bench.reached(name, .suspend) }
        await bench.advance(1)
        queue.sync { #expect(progress.isPaused && progress.userInfo[.fileTotalCountKey] as? Int == 2) }
        await flush(bench)
        gate.open()
        queue.sync { progress.resume() }
        // Not `finished`: they are settled until the progress has had them resumed. And the report of the last end is due a
        // second after that end: the clock must not be moved before it is.
        for name in ["a", "b"] { await bench.reached(name, .complete) }
        await bench.sync()
        await bench.advance(1)
        try await wait { progress.isFinished && progress.completedUnitCount == 800_000 }
        queue.sync { #expect(progress.userInfo[.fileCompletedCountKey] as? Int == 2) }
        try await bench.unobserved()
        await #expect(throws: DownloadError.self) { try await bench.messager.progress(.barrel("none")) }
    }

    @Test("a cancelled parent cancels the members of a barrel")
    func cancelledParent() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1_000) }
        for name in ["a", "b"] { try await bench.add(name, barrel: "set") }
        let child = try await bench.messager.progress(.barrel("set"), on: queue)
        let queue = queue
        queue.sync {
            let parent = Progress.discreteProgress(totalUnitCount: 1)
            parent.cancel()
            parent.addChild(child, withPendingUnitCount: 1)
        }
        for name in ["a", "b"] { await bench.reached(name, .cancel) }
        #expect(queue.sync { child.isCancelled })
        gate.open()
    }
}
