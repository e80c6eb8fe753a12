import FKMiddleware

/// Adds up what is known of the tasks of one run. A pure value, fed with infos from whichever side.
package struct RunTracker: Sendable {
    private struct Last {
        var received: Int64
        var expected: Int64?
        var state: DownloadState

        /// Its length is unknown and may still become known.
        var isLengthMissing: Bool { expected == nil && !state.isSettled }
        /// What is known to exist and will not come.
        var lost: Int64 { state.isSettled && state != .complete ? max(0, (expected ?? received) - received) : 0 }
    }

    private var last: [TaskID: Last] = [:]
    private var open: Set<TaskID> = []
    package private(set) var received: Int64 = 0
    /// The sum of the lengths that are known; a task of unknown length counts with what it has received.
    package private(set) var expected: Int64 = 0
    private var unknownLengths = 0
    /// What will not come: of tasks that ended without being complete.
    private var lost: Int64 = 0
    /// What had been received before this run began.
    package private(set) var atStart: Int64 = 0
    private var states: [DownloadState: Int] = [:]
    /// Only tasks that were named count.
    package private(set) var isTargeted: Bool
    private var targetCount = 0

    /// - Parameter targets: nil counts every task it is told of.
    package init(targets: Set<TaskID>? = nil) {
        isTargeted = targets != nil
        open = targets ?? []
        targetCount = open.count
    }

    /// These tasks count as well, and from the first call on no others.
    package mutating func target(_ ids: some Sequence<TaskID>) {
        isTargeted = true
        for id in ids where last[id] == nil && open.insert(id).inserted { targetCount += 1 }
    }

    package func counts(_ id: TaskID) -> Bool { !isTargeted || open.contains(id) || last[id] != nil }
    /// The tasks that count and are known by now.
    package var ids: Set<TaskID> { open.union(last.keys) }

    package var total: Int { max(last.count, targetCount) }
    package var openIDs: Set<TaskID> { open }
    /// What all tasks together will probably have: unknown lengths count as the average of the known ones, and of tasks
    /// that ended without being complete only what is there. Nil while nothing is known.
    package var estimate: Int64? {
        let unknown = unknownLengths + total - last.count
        let known = total - unknown
        guard known > 0 else { return total == 0 ? 0 : nil }
        return max(received, expected &- lost &+ expected / Int64(known) &* Int64(unknown))
    }

    package func count(_ state: DownloadState) -> Int { states[state] ?? 0 }
    /// Bytes that arrived during this run.
    package var fetched: Int64 { max(0, received &- atStart) }
    package var isSettled: Bool { open.isEmpty }

    /// Returns true when the task's state is another one than before.
    package mutating func update(_ info: DownloadInfo) -> Bool {
        guard counts(info.id) else { return false }
        let new = Last(
            received: info.count.received, expected: info.count.expected, state: info.state)
        let old = last.updateValue(new, forKey: info.id)
        if old == nil { atStart &+= new.received }
        // Lengths are what servers say: two of them may be more than a sum can hold, and then it is wrong and harmless.
        received &+= new.received &- (old?.received ?? 0)
        expected &+= (new.expected ?? new.received) &- (old.map { $0.expected ?? $0.received } ?? 0)
        unknownLengths += (new.isLengthMissing ? 1 : 0) - (old?.isLengthMissing == true ? 1 : 0)
        lost &+= new.lost &- (old?.lost ?? 0)
        if info.state.isSettled { open.remove(info.id) } else { open.insert(info.id) }
        guard old?.state != new.state else { return false }
        if let state = old?.state { states[state, default: 1] -= 1 }
        states[new.state, default: 0] += 1
        return true
    }
}
