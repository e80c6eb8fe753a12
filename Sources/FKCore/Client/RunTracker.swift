import FKMiddleware

/// Adds up what is known of the tasks of one run. A pure value, fed with infos from whichever side.
package struct RunTracker: Sendable {
    /// What was last heard of a task: 24 bytes, because there may be a hundred thousand.
    private struct Last {
        var received: Int64 = 0
        private var length: Int64 = -1
        /// Nil for one that was named and not heard of yet.
        var state: DownloadState?

        init() {}

        init(_ info: DownloadInfo) {
            received = info.count.received
            length = info.count.expected ?? -1
            state = info.state
        }

        var expected: Int64? { length < 0 ? nil : length }
        var isSettled: Bool { state?.isSettled ?? false }
        /// Its length is unknown and may still become known.
        var isLengthMissing: Bool { expected == nil && state != nil && !isSettled }
        /// The same, and it may also have ended without it. What is gone has no length.
        var isLengthUnknown: Bool { expected == nil && state != nil && state != .complete && state != .unknown }
        /// What is known to exist and will not come.
        var lost: Int64 { isSettled && state != .complete ? max(0, (expected ?? received) - received) : 0 }
    }

    private var known = TaskIDTable()
    /// By the numbers of their ids.
    private var last: [Last] = []
    private var openCount = 0
    private var heardCount = 0
    package private(set) var received: Int64 = 0
    /// The sum of the lengths that are known; a task of unknown length counts with what it has received.
    package private(set) var expected: Int64 = 0
    private var missingLengths = 0
    private var unknownLengths = 0
    private var highestFraction: Double?
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
        if let targets { target(targets) }
    }

    /// These tasks count as well, and from the first call on no others.
    package mutating func target(_ ids: some Sequence<TaskID>) {
        isTargeted = true
        for id in ids where !known.contains(id) {
            _ = place(of: id)
            targetCount += 1
        }
    }

    private mutating func place(of id: TaskID) -> Int {
        let place = Int(known.insert(id))
        if place == last.count {
            last.append(Last())
            openCount += 1
        }
        return place
    }

    package func counts(_ id: TaskID) -> Bool { !isTargeted || known.contains(id) }
    /// The tasks that count and are known by now.
    package var ids: [TaskID] { known.all.map(\.id) }

    package var total: Int { max(heardCount, targetCount) }
    package var openIDs: Set<TaskID> {
        openCount == 0 ? [] : Set(known.all.lazy.filter { !last[Int($0.number)].isSettled }.map(\.id))
    }
    /// What will be there at the end: the sum of the lengths, and of tasks that ended without being complete what they
    /// have. A lower bound while the length of a task that may still come is unknown.
    package var goal: ByteCount {
        ByteCount(
            received: received, expected: max(received, expected &- lost),
            isLowerBound: missingLengths > 0 || heardCount < total || total == 0)
    }
    /// How much of `goal` is there. It never falls (`ProgressFraction`).
    package var fraction: Double? { isSettled && total > 0 ? 1 : highestFraction }
    /// The length of every task is known, in whichever state it is.
    package var isExpectedKnown: Bool { total > 0 && heardCount == total && unknownLengths == 0 }

    package func count(_ state: DownloadState) -> Int { states[state] ?? 0 }
    /// Bytes that arrived during this run.
    package var fetched: Int64 { max(0, received &- atStart) }
    package var isSettled: Bool { openCount == 0 }

    /// Returns true when the task's state is another one than before.
    package mutating func update(_ info: DownloadInfo) -> Bool {
        guard counts(info.id) else { return false }
        let place = place(of: info.id)
        let new = Last(info)
        let old = last[place]
        last[place] = new
        if old.state == nil {
            atStart &+= new.received
            heardCount += 1
        }
        // Lengths are what servers say: two of them may be more than a sum can hold, and then it is wrong and harmless.
        received &+= new.received &- old.received
        expected &+= (new.expected ?? new.received) &- (old.expected ?? old.received)
        missingLengths += (new.isLengthMissing ? 1 : 0) - (old.isLengthMissing ? 1 : 0)
        unknownLengths += (new.isLengthUnknown ? 1 : 0) - (old.isLengthUnknown ? 1 : 0)
        lost &+= new.lost &- old.lost
        openCount += (new.isSettled ? 0 : 1) - (old.isSettled ? 0 : 1)
        highestFraction = ProgressFraction.next(after: highestFraction, of: goal, isComplete: false)
        guard old.state != new.state else { return false }
        if let state = old.state { states[state, default: 1] -= 1 }
        states[info.state, default: 0] += 1
        return true
    }
}
