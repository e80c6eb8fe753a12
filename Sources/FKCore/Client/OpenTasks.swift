import FKEngine
import FKMiddleware

/// The tasks of a work path that can still run, and whether their end was reported.
struct OpenTasks {
    private var ids: TaskIDTable
    private var isReported: Bool

    /// - Parameter ids: the tasks that can run now. Without any, there is no end to report.
    init(_ ids: TaskIDTable) {
        self.ids = ids
        isReported = ids.isEmpty
    }

    /// True while no task can run.
    var isEmpty: Bool { ids.isEmpty }

    /// Replaces the tasks by those that the info files have now.
    mutating func count(_ ids: TaskIDTable) {
        self.ids = ids
        if !ids.isEmpty { isReported = false }
    }

    mutating func absorb(_ info: DownloadInfo) {
        if info.state.isSettled {
            ids.remove(info.id)
        } else {
            ids.insert(info.id)
            isReported = false
        }
    }

    /// True once each time the last task has settled.
    mutating func hasDrained() -> Bool {
        guard ids.isEmpty, !isReported else { return false }
        isReported = true
        return true
    }
}
