import FKMiddleware

/// Adds up what is known of the tasks of one run. A pure value, fed with infos from whichever side.
package struct RunTracker: Sendable {
    private struct Last {
        var received: Int64
        var expected: Int64
        var state: DownloadState
    }

    private var last: [TaskID: Last] = [:]
    private var open: Set<TaskID> = []
    private(set) var received: Int64 = 0
    private(set) var expected: Int64 = 0
    /// What had been received before this run began.
    private(set) var atStart: Int64 = 0
    private var states: [DownloadState: Int] = [:]
    /// Only these tasks count; nil counts every task it is told of.
    package let targets: Set<TaskID>?

    package init(targets: Set<TaskID>? = nil) {
        self.targets = targets
        open = targets ?? []
    }

    package var total: Int { max(last.count, targets?.count ?? 0) }
    package var openIDs: Set<TaskID> { open }
    package func count(_ state: DownloadState) -> Int { states[state] ?? 0 }
    /// Bytes that arrived during this run.
    package var fetched: Int64 { max(0, received - atStart) }
    package var isSettled: Bool { open.isEmpty }

    /// Returns true when the task's state is another one than before.
    package mutating func update(_ info: DownloadInfo) -> Bool {
        guard targets?.contains(info.id) ?? true else { return false }
        let new = Last(
            received: info.count.received, expected: max(info.count.expected ?? 0, info.count.received),
            state: info.state)
        let old = last.updateValue(new, forKey: info.id)
        if old == nil { atStart += new.received }
        received += new.received - (old?.received ?? 0)
        expected += new.expected - (old?.expected ?? 0)
        if info.state.isSettled { open.remove(info.id) } else { open.insert(info.id) }
        guard old?.state != new.state else { return false }
        if let state = old?.state { states[state, default: 1] -= 1 }
        states[new.state, default: 0] += 1
        return true
    }
}
