import FKCore
import FKMiddleware
import Foundation

/// What `fk watch` knows of tasks and of the process that runs them. Events change it. A value without clock and engine.
struct WatchedTasks: Sendable {
    struct Task: Sendable {
        var info: DownloadInfo
        /// The position in the order of submission.
        var number: Int
    }

    struct Change {
        /// True if a task is shown differently.
        var isAny = false
        /// True if a task has come or gone, or has another place in the order by state.
        var isOfOrder = false
    }

    private(set) var tasks: [TaskID: Task] = [:]
    private(set) var counts: [DownloadState: Int] = [:]
    private(set) var meters = RunMeters()
    /// The bytes that arrived in each second, oldest first.
    private(set) var rates: [Double] = []
    /// nil until it is known, then the process or nil for none.
    private(set) var owner: Int32??
    private(set) var silentEngine: String?
    private(set) var limit: Int64?
    private(set) var isLoaded = false

    private var nextNumber = 0
    /// When the first of the waits with a time ends.
    private var nextEnd = Date.distantFuture
    /// The bytes of each running task when they were last counted.
    private var counted: [TaskID: Int64] = [:]
    private var fetched: Int64 = 0
    private var lastSecond: (time: Int64, fetched: Int64)?
    /// The most seconds of the graph.
    static let graphLength = 600

    mutating func apply(_ event: WatchSession.Event, time: Int64) -> Change {
        var change = Change()
        switch event {
        case .all(let infos):
            var old = tasks
            tasks = [:]
            counts = [:]
            isLoaded = true
            // What was known before stays in its place.
            for info in infos { insert(info, number: old.removeValue(forKey: info.id)?.number, &change) }
            // What arrived unseen would count as the bytes of one moment.
            counted = [:]
            change = Change(isAny: true, isOfOrder: true)
        case .changed(let infos):
            for info in infos {
                if info.state == .unknown {
                    remove(info.id, &change)
                } else {
                    let old = tasks[info.id]
                    insert(info, number: old?.number, &change)
                    count(info, since: old?.info)
                }
            }
        case .progress(let running): progress(running, time: time, &change)
        case .owner(let pid):
            owner = pid
            silentEngine = nil
            guard pid == nil else { break }
            meters = RunMeters()
            counted = [:]
            for task in tasks.values where task.info.state == .action {
                insert(task.info, number: task.number, &change)
            }
        case .engineNews(let news, let pid):
            meters = RunMeters()
            meters.isStill = news == .silent
            silentEngine =
                news == .silent ? "Process \(pid) shows no sign of life: kill -CONT \(pid) may continue it." : nil
        case .limit(let rate): limit = rate
        case .members, .joined, .left, .problem: break
        }
        return change
    }

    private mutating func progress(_ running: [DownloadInfo], time: Int64, _ change: inout Change) {
        guard owner != .some(nil) else { return }
        for info in running where tasks[info.id] != nil {
            insert(info, number: tasks[info.id]?.number, &change)
            count(info, since: nil)
        }
        meters.look(running, fetched: fetched, time: time)
        guard let last = lastSecond else {
            lastSecond = (time, fetched)
            return
        }
        guard time - last.time >= 1_000_000_000 else { return }
        rates.append(Double(fetched - last.fetched) * 1e9 / Double(time - last.time))
        if rates.count > Self.graphLength { rates.removeFirst(rates.count - Self.graphLength) }
        lastSecond = (time, fetched)
    }

    /// Counts the bytes of a running task since it was last seen, and the last ones of a task that stopped.
    ///
    /// - Parameter old: what was known of it; a small file may begin and end unseen. nil if nothing was.
    private mutating func count(_ info: DownloadInfo, since old: DownloadInfo?) {
        let last =
            counted.removeValue(forKey: info.id)
            ?? old.flatMap { $0.state.isSettled || $0.state == .suspend ? nil : $0.count.received }
        if info.state == .action { counted[info.id] = info.count.received }
        if let last { fetched += max(0, info.count.received - last) }
    }

    private mutating func insert(_ info: DownloadInfo, number: Int?, _ change: inout Change) {
        var info = info
        // The record of a process that was killed says that its tasks run.
        if info.state == .action, owner == .some(nil) { info.state = .idle }
        change.isAny = true
        if let old = tasks[info.id] {
            counts[old.info.state, default: 1] -= 1
            // An event of the journal does not have it.
            info.maxAttempts = info.maxAttempts ?? old.info.maxAttempts
            info.priority = info.priority ?? old.info.priority
            if Self.rank(old.info) != Self.rank(info) || old.info.priority != info.priority { change.isOfOrder = true }
        } else {
            change.isOfOrder = true
        }
        if info.state == .idle, let until = info.waitingUntil { nextEnd = min(nextEnd, until) }
        counts[info.state, default: 0] += 1
        tasks[info.id] = Task(info: info, number: number ?? nextNumber)
        if number == nil { nextNumber += 1 }
    }

    private mutating func remove(_ id: TaskID, _ change: inout Change) {
        guard let old = tasks.removeValue(forKey: id) else { return }
        counts[old.info.state, default: 1] -= 1
        counted[id] = nil
        change = Change(isAny: true, isOfOrder: true)
    }

    /// Removes the waits that ended before `now`: no event reports the end, and the task may then wait for a slot.
    ///
    /// - Returns: true if a task has another place in the order by state.
    mutating func endWaits(at now: Date) -> Bool {
        guard nextEnd <= now else { return false }
        nextEnd = .distantFuture
        var isAny = false
        for (id, task) in tasks where task.info.state == .idle {
            guard let until = task.info.waitingUntil else { continue }
            if until > now {
                nextEnd = min(nextEnd, until)
            } else {
                tasks[id]?.info.wait = nil
                isAny = true
            }
        }
        return isAny
    }

    // MARK: The order by state

    /// Running tasks first, then those that a person may act on, the queue, and ended ones.
    static func rank(_ info: DownloadInfo) -> Int {
        switch info.state {
        case .action: 0
        case .suspend: 1
        case .error: 2
        case .idle: info.wait?.until != nil ? 3 : 4
        case .cancel: 5
        case .complete: 6
        case .unknown: 7
        }
    }

    /// True for a task that waits for its turn alone.
    static func isQueued(_ info: DownloadInfo) -> Bool { info.state == .idle && info.wait?.until == nil }

    /// The priorities with which a task takes the place of another one in the queue; nil if one of them is not queued. They are in
    /// effect here at once.
    mutating func moveInQueue(_ id: TaskID, to other: TaskID) -> [TaskChange]? {
        let queue = tasks.filter { Self.isQueued($0.value.info) }.map { id, task in
            QueueMove.Element(id: id, priority: task.info.priority ?? 0, number: UInt64(task.number))
        }.sorted { ($1.priority, $0.number) < ($0.priority, $1.number) }
        guard let from = queue.firstIndex(where: { $0.id == id }), let to = queue.firstIndex(where: { $0.id == other })
        else { return nil }
        return QueueMove.priorities(queue, from: from, to: to).map { id, priority in
            tasks[id]?.info.priority = priority
            var change = TaskChange(id)
            change.priority = priority
            return change
        }
    }
}
