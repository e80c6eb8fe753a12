import FKEngine
import FKMiddleware

/// Adds up the infos of the tasks of one run. A value type without side effects.
package struct RunTracker: Sendable {
    /// The last share of a task, in 16 bytes, because there may be a million.
    private struct Last {
        private var received: Int64 = 0
        /// The length, or -1, and in the lowest 8 bits the state.
        private var facts: Int64 = -1

        private static let states = DownloadState.allCases
        private static let longest = Int64.max >> 8

        init() {}

        init(_ share: TaskTotals.Share, in state: DownloadState) {
            received = share.received
            facts = min(share.expected ?? -1, Self.longest) << 8 | Int64(state.index)
        }

        /// nil for a target without an info so far.
        var state: DownloadState? {
            let index = Int(facts & 0xff)
            return index < Self.states.count ? Self.states[index] : nil
        }
        var share: TaskTotals.Share {
            TaskTotals.Share(received: received, expected: facts < 0 ? nil : facts >> 8, state: state)
        }
        var isSettled: Bool { state?.isSettled ?? false }
    }

    private var known = TaskIDTable(reusesNumbers: false)
    /// Indexed by the numbers of the ids.
    private var last: [Last] = []
    /// The places of the last infos among the states of their tasks, indexed in the same way.
    private var orders: [ChangeOrder] = []
    /// `DownloadInfo.besides` of the last infos, where it is not 0.
    private var besides: [Int: Int64] = [:]
    /// The number of tasks that count and are not settled.
    package private(set) var openCount = 0
    /// The sums over the tasks of which an info came.
    private var totals = TaskTotals()
    private var highestFraction: Double?
    /// The bytes that were received before this run.
    package private(set) var atStart: Int64 = 0
    /// The bytes that arrived during this run, also those of a file that was started again.
    package private(set) var fetched: Int64 = 0
    /// True if only targets count.
    package private(set) var isTargeted: Bool
    private var targetCount = 0

    /// Creates a tracker.
    ///
    /// - Parameter targets: the tasks that count; nil, the default, counts every task.
    package init(targets: Set<TaskID>? = nil) {
        isTargeted = targets != nil
        if let targets { target(targets) }
    }

    /// Adds targets. From the first call on, only targets count.
    package mutating func target(_ ids: some Sequence<TaskID>) {
        isTargeted = true
        // Reserved for the first portion only: a list is added in portions, and each further reservation would copy the earlier
        // ones.
        if last.isEmpty {
            known.reserveCapacity(ids.underestimatedCount)
            last.reserveCapacity(ids.underestimatedCount)
            orders.reserveCapacity(ids.underestimatedCount)
        }
        for id in ids {
            let count = last.count
            if place(of: id) == count { targetCount += 1 }
        }
    }

    /// Removes targets of which nothing was heard.
    mutating func untarget(_ ids: some Sequence<TaskID>) { leave(ids.filter { isUnheard($0) }) }

    /// Removes targets. They count no more, whatever is heard of them.
    package mutating func leave(_ ids: [TaskID]) {
        for id in ids {
            guard let place = known.remove(id).map({ Int($0) }) else { continue }
            if !last[place].isSettled { openCount -= 1 }
            totals.replace(last[place].share, by: TaskTotals.Share())
            // The place stays empty.
            last[place] = Last(TaskTotals.Share(), in: .unknown)
            targetCount -= 1
        }
    }

    private mutating func place(of id: TaskID) -> Int {
        let place = Int(known.insert(id))
        if place == last.count {
            last.append(Last())
            orders.append(.unknown)
            openCount += 1
        }
        return place
    }

    package func counts(_ id: TaskID) -> Bool { !isTargeted || known.contains(id) }
    /// The tasks that count and are known by now.
    package var ids: [TaskID] { known.all.map(\.id) }

    /// The number of tasks that count.
    package var total: Int { max(totals.count, targetCount) }
    /// The tasks that count and are not settled.
    package var openIDs: Set<TaskID> {
        openCount == 0 ? [] : Set(known.all.lazy.filter { !last[Int($0.number)].isSettled }.map(\.id))
    }
    /// The tasks that count and are suspended.
    package var suspendedIDs: [TaskID] {
        count(.suspend) == 0 ? [] : known.all.filter { last[Int($0.number)].state == .suspend }.map(\.id)
    }
    /// The next tasks that count and meet a condition, in the order in which they became known.
    ///
    /// - Parameters:
    ///   - place: where the search begins, 0 at first. It ends where the next one begins.
    ///   - isUnheard: true for tasks without an info so far, false for all that are not settled.
    /// - Returns: at most `limit` tasks; none at the end.
    func next(_ place: inout Int, atMost limit: Int, isUnheard: Bool) -> [TaskID] {
        var ids: [TaskID] = []
        while place < last.count, ids.count < limit {
            let state = last[place].state
            if isUnheard ? state == nil : state?.isSettled != true { ids.append(known.id(of: Int32(place))) }
            place += 1
        }
        return ids
    }

    /// True if the task counts and is settled.
    func hasSettled(_ id: TaskID) -> Bool { known.number(of: id).map { last[Int($0)].isSettled } ?? false }

    /// True if the task counts and is complete.
    func isComplete(_ id: TaskID) -> Bool { known.number(of: id).map { last[Int($0)].state == .complete } ?? false }

    /// True if the task counts and has not been reported.
    func isUnheard(_ id: TaskID) -> Bool { known.number(of: id).map { last[Int($0)].state == nil } ?? false }

    /// Some of the tasks that wait, spread evenly over all of them.
    package func waitingIDs(atMost limit: Int) -> [TaskID] {
        let count = count(.idle)
        guard count > 0, limit > 0 else { return [] }
        let step = max(1, count / limit)
        var ids: [TaskID] = []
        var seen = 0
        for (id, number) in known.all {
            let state = last[Int(number)].state
            guard state == .idle else { continue }
            if seen % step == 0 { ids.append(id) }
            if ids.count == limit { break }
            seen += 1
        }
        return ids
    }
    package var received: Int64 { totals.received }
    /// The sum of the known lengths. A task of unknown length counts with its received bytes.
    package var expected: Int64 { totals.expected }
    /// The known bytes that are still to come in this run. Those of failed and suspended tasks are not.
    package var rest: Int64 {
        let open = totals.where { !$0.isSettled }
        return open.expected &- open.received
    }
    /// The bytes of all tasks: their lengths, those of failed and suspended ones too, and of cancelled ones what they have received. It
    /// is a lower bound while the length of a task that may still run, or that is suspended, is unknown.
    package var goal: ByteCount {
        let gone = totals.where { $0 == .cancel || $0 == .unknown }
        return ByteCount(
            received: received, expected: max(received, expected &- (gone.expected &- gone.received)),
            isLowerBound: totals.where { !$0.isOver }.unknownLengths > 0 || totals.count < total || total == 0)
    }
    /// The share of `goal` that is received, in 0...1. It never decreases (`ProgressFraction`). It is 1 if all that is wanted is
    /// complete.
    package var fraction: Double? {
        let wanted = total - count(.cancel) - count(.unknown)
        return isSettled && total > 0 && count(.complete) == wanted ? 1 : highestFraction
    }
    /// True if the length of every task is known, in whichever state.
    package var isExpectedKnown: Bool { totals.count == total && totals.isExpectedKnown }

    package func count(_ state: DownloadState) -> Int { totals.count(state) }
    package var isSettled: Bool { openCount == 0 }

    /// Records an info. An info that is older than the last one is ignored: the changes of another process's tasks and their
    /// info files are read one after the other, so one of them may be ahead.
    ///
    /// - Returns: true if the task's state has changed.
    package mutating func update(_ info: DownloadInfo) -> Bool {
        let known = known.number(of: info.id)
        if known == nil, isTargeted { return false }
        let place = known.map(Int.init) ?? place(of: info.id)
        guard !info.order.isBefore(orders[place]) else { return false }
        orders[place] = info.order.later(than: orders[place])
        let new = TaskTotals.Share(info)
        let old = last[place].share
        last[place] = Last(new, in: info.state)
        if old.state == nil {
            atStart &+= new.received
        } else if info.isForeign {
            atStart &+= max(0, new.received &- old.received)
        } else {
            fetched &+= max(0, info.sent &- old.received &- (besides[place] ?? 0))
        }
        if info.besides != 0 || !besides.isEmpty { besides[place] = info.besides == 0 ? nil : info.besides }
        totals.replace(old, by: new)
        openCount += (info.state.isSettled ? 0 : 1) - (old.state?.isSettled == true ? 0 : 1)
        highestFraction = ProgressFraction.next(after: highestFraction, of: goal, isComplete: false)
        return old.state != info.state
    }
}
