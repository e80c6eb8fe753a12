import FKCompatibility
import FKCore
import FKMiddleware
import Foundation
import Observation
import Testing

@Suite("Models for views")
@MainActor
struct PublicModelTests {
    private let bench: PublicBench
    private var downloader: Downloader { bench.downloader }
    private var folder: URL { bench.folder.appendingPathComponent("files") }

    init() throws {
        bench = try PublicBench { $0.distributeSpeed = 1 }
        bench.files.serve("/held", PublicBench.pattern(400_000), hold: 100_000)
    }

    /// Waits until what is observed is as wanted, by the means that a view has.
    private func until(_ isTrue: @MainActor @Sendable () -> Bool) async {
        while true {
            let changed = Heard<Void>()
            let isOver = withObservationTracking {
                isTrue()
            } onChange: {
                changed.add(())
            }
            if isOver { return }
            _ = await changed.until { true }
            // The change itself comes after its announcement, on this actor.
            await Task.yield()
        }
    }

    @Test("a model shows the task from its first byte to its end, and what is done to it elsewhere")
    func task() async throws {
        let task = try await downloader.add(PublicBench.url("/held"), to: folder)
        let model = TaskModel(task)
        await until { model.info?.count.received == 100_000 }
        #expect(model.state == .action && model.info?.fraction == 0.25 && model.canSuspend && !model.canStart)
        #expect(model.name == "held" && model.info?.fileURL == nil)
        try await task.suspend()
        await until { model.state == .suspend }
        bench.files.release("/held")
        model.start()
        await until { model.state == .complete }
        #expect(model.info?.fraction == 1 && model.info?.fileURL?.lastPathComponent == "held" && model.verbError == nil)
    }

    @Test("verbs of a model take effect in order; a failed task that is queued again is followed further")
    func verbs() async throws {
        let task = try await downloader.add(PublicBench.url("/later"), to: folder)
        let model = TaskModel(task)
        await until { model.state == .error }
        #expect(model.info?.error?.status == 404 && model.canStart)
        bench.files.serve("/later", [1, 2, 3])
        model.start()
        await until { model.state == .complete }
        model.forget()
        await until { model.state == .unknown }
        model.suspend()
        await until { model.verbError?.code == .notFound }
    }

    @Test("a barrel's model: sum, members, failures")
    func barrel() async throws {
        bench.files.serve("/a", PublicBench.pattern(10_000))
        let barrel = try await downloader.barrel("b")
        let model = BarrelModel(barrel)
        var isRunning: Bool { model.info?.states.contains { !$0.key.isSettled && $0.value > 0 } ?? false }
        await until { model.info != nil }
        #expect(model.info?.total == 0 && model.info?.isComplete == false && !isRunning)
        _ = try await barrel.add(["/a", "/held", "/later"].map(PublicBench.url), to: folder)
        await until { model.info?.total == 3 && model.info?.states[.complete] == 1 && model.failures.count == 1 }
        #expect(model.members.count == 3 && isRunning)
        model.suspend()
        await until { !isRunning }
        bench.files.release("/held")
        bench.files.serve("/later", [1, 2, 3])
        model.start()
        await until { model.info?.isComplete == true }
        #expect(model.info?.fraction == 1 && model.info?.count.received == 410_003 && model.failures.isEmpty)
    }

    @Test("a barrel's model shows members that join and leave while no task runs")
    func members() async throws {
        let barrel = try await downloader.barrel("b")
        let model = BarrelModel(barrel)
        let builders = try ["/a", "/b"].map { path in
            var builder = try bench.builder(path)
            builder.startsSuspended = true
            return builder
        }
        let tasks = try await barrel.add(builders).map { try $0.get() }
        await until { model.members == tasks }
        try await barrel.remove(tasks[0])
        await until { model.members == [tasks[1]] }
        try await barrel.join(tasks[0])
        await until { model.members == [tasks[1], tasks[0]] }
        _ = try await barrel.set([])
        await until { model.members.isEmpty }
    }

    @Test("a model that is released is gone, and follows no more")
    func released() async throws {
        let task = try await downloader.add(PublicBench.url("/held"), to: folder)
        weak var weakly: TaskModel?
        do {
            let model = TaskModel(task)
            await until { (model.info?.count.received ?? 0) > 0 }
            weakly = model
        }
        // The following Swift task lets go of it when it is cancelled.
        while weakly != nil { await Task.yield() }
    }

    @Test("all tasks: rows in three orders, the total, the failures, and all of them again")
    func downloads() async throws {
        bench.files.serve("/b", [1, 2])
        let model = DownloadsModel(downloader)
        for name in ["b", "missing", "a"] { try await downloader.add(PublicBench.url("/\(name)"), to: folder) }
        await until { model.rows.map(\.state) == [.complete, .error, .error] }
        #expect(model.failures.compactMap(\.error?.status) == [404, 404])
        model.order = .name
        #expect(model.rows.map(\.fileName) == ["a", "b", "missing"])
        model.order = .state
        #expect(model.rows.map(\.fileName) == ["missing", "a", "b"])
        for name in ["a", "missing"] { bench.files.serve("/\(name)", [3]) }
        model.retryAll()
        await until { model.failures.isEmpty && model.rows.allSatisfy { $0.state == .complete } }
        await until { model.total?.states == [.complete: 3] }
        #expect(model.verbError == nil)
        let later = try await downloader.add(PublicBench.url("/held"), to: folder)
        #expect(TaskModel(later).name == "held", "before the first report")
        await until { model.rows.count == 4 }
        try await later.trash()
        await until { model.rows.count == 3 }
    }
}
