import TestSupport
import Testing

@testable import FKCore

@Suite("Waiting until no task can run")
struct ClientOpenTasksTests {
    private static let id = TaskID(url: "http://h.example/a")

    private static func table(_ ids: TaskID...) -> TaskIDTable {
        var table = TaskIDTable()
        for id in ids { table.insert(id) }
        return table
    }

    @Test("the end is reported once each time the last task has settled")
    func reportedOnce() {
        var open = OpenTasks(Self.table(Self.id))
        let early = open.hasDrained()
        open.absorb(DownloadInfo(id: Self.id, url: "http://h.example/a", state: .complete))
        let (first, second) = (open.hasDrained(), open.hasDrained())
        #expect(!early && first && !second && open.isEmpty)
        open.absorb(DownloadInfo(id: Self.id, url: "http://h.example/a", state: .action))
        open.absorb(DownloadInfo(id: Self.id, url: "http://h.example/a", state: .error))
        let again = open.hasDrained()
        #expect(again)
    }

    @Test("tasks that were found by counting again have an end as well")
    func counted() {
        var open = OpenTasks(TaskIDTable())
        let empty = open.hasDrained()
        open.count(Self.table(Self.id))
        let counted = open.hasDrained()
        open.count(TaskIDTable())
        let drained = open.hasDrained()
        #expect(!empty && !counted && drained)
    }

    /// The caller has seen an open task, which settled before the wait began.
    @Test("a wait that begins after the last task has settled ends with the next look")
    func lateWait() async throws {
        let bench = try await Bench { request, _ in .file([1, 2, 3], to: request) }
        try await bench.add("a")
        await bench.reached("a", .complete)
        let follower = Follower(bench.workPath)
        await withCheckedContinuation { continuation in
            follower.wait(for: nil, 1, continuation)
            follower.look(withProgress: false)
        }
        #expect(try follower.openIDs().isEmpty)
    }

    @Test("the info file of a trashed task that still runs says nothing; that of the task that was added again does")
    func trashed() {
        func info(_ state: DownloadState, number: UInt64, isInMemory: Bool) -> DownloadInfo {
            var info = DownloadInfo(id: Self.id, url: "http://h.example/a", state: state)
            info.order = ChangeOrder(number: number, generation: 4, isInMemory: isInMemory)
            return info
        }
        var active = ActiveTasks()
        let file = info(.action, number: 7, isInMemory: false)
        _ = active.absorb(info(.action, number: 7, isInMemory: true))
        #expect(!active.isTrashed(file))
        _ = active.absorb(info(.unknown, number: 7, isInMemory: true))
        #expect(active.isTrashed(file))
        #expect(!active.isTrashed(info(.idle, number: 8, isInMemory: false)))
        active.forgetRunning()
        #expect(!active.isTrashed(file))
    }
}
