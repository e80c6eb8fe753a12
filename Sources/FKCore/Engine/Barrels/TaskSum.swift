import FKMiddleware

/// The sum over several tasks, those of a barrel or all of a work path. It is counted once, and then updated by the difference for each
/// change of a task.
package struct TaskSum {
    private(set) var isCounted = false
    package private(set) var totals = TaskTotals()
    /// The highest fraction that was reported.
    private var shownFraction: Double?
    /// The bytes that arrived for the tasks since the sum was counted, also for those that have ended since.
    private var fetched: Int64 = 0
    private var speed = SpeedMeter()

    /// Creates an uncounted sum.
    package init() {}

    /// The sum to count again, with what was reported so far.
    var uncounted: TaskSum {
        var sum = self
        sum.isCounted = false
        return sum
    }

    /// A task joins. The progress of tasks that were all complete begins at 0 again.
    package mutating func joined() { if shownFraction == 1 { shownFraction = nil } }

    /// Counts all tasks.
    package mutating func count(_ shares: some Sequence<TaskTotals.Share>) {
        totals = TaskTotals()
        isCounted = true
        for share in shares { totals.add(share) }
    }

    /// Updates the sum for a change of one task.
    package mutating func replace(_ old: TaskTotals.Share, by new: TaskTotals.Share) {
        guard isCounted else { return }
        // The bytes that a task brings along when it joins did not arrive now.
        if old.state != nil, new.state != nil { fetched &+= max(0, new.received &- old.received) }
        totals.replace(old, by: new)
    }

    /// The present sums. The returned fraction counts as reported and does not decrease later. The speed is that of all bytes
    /// since earlier calls, so small files that begin and end between two calls count as well.
    ///
    /// - Parameters:
    ///   - now: the time of the monotonic clock; nil, the default, measures no speed.
    ///   - first: the speed at the first call, which has nothing to compare with; the default is 0.
    package mutating func info(_ name: String, total: Int, now: Int64? = nil, first: Double = 0) -> BarrelInfo {
        let open = totals.where { !$0.isOver }.unknownLengths
        var info = BarrelInfo(name: name, states: totals.states, total: total)
        info.count = totals.bytes
        info.unknownLengths = open
        // A member that has failed may never get a length. The fraction is that of the others.
        var shown = info.count
        shown.isLowerBound = open > 0 || info.total == 0
        shownFraction = ProgressFraction.next(after: shownFraction, of: shown, isComplete: info.isComplete)
        info.fraction = shownFraction
        if let now { speed.add(time: now, bytes: fetched) }
        info.bytesPerSecond = totals.count(.action) == 0 ? 0 : speed.isMeasured ? speed.bytesPerSecond : first
        return info
    }
}

/// The progress of several files as a number that never decreases.
package enum ProgressFraction {
    /// The fraction to report after `last`; nil if there was none and the total is unknown.
    ///
    /// - Parameter isComplete: true if all files are complete. Until then, one byte is held back.
    package static func next(after last: Double?, of count: ByteCount, isComplete: Bool) -> Double? {
        if isComplete { return 1 }
        // A barrel that is no longer complete begins at 0 again.
        let last = last == 1 ? nil : last
        guard let expected = count.expected, !count.isLowerBound else { return last }
        let whole = Double(max(1, expected))
        return max(last ?? 0, max(0, min(Double(count.received), whole - 1)) / whole)
    }
}
