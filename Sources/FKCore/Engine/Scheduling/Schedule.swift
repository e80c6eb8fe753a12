import FKMiddleware
import Foundation

/// Decides which tasks run, and records what the others wait for and the time of the next check. Confined to the
/// engine.
///
/// ```text
/// enqueue -> ready queue ------> next -> running -> release
///        \-> wakes (retry) -> due -^       (slots, groups, hosts)
/// ```
///
/// It starts no task. The engine calls `next` until it returns nil.
final class Schedule {
    let clock: any EngineClock
    private let executor: EngineExecutor
    /// Runs when a deadline is reached.
    var onDeadline: (@Sendable () -> Void)?
    var configure: Configure
    /// True once the timer runs and tasks may start.
    var isActive = false

    var ready: ReadyQueue
    private(set) var running: [TaskID: TaskEntry] = [:]
    /// The running tasks that wait for a middleware and hold no slot.
    private var resting: Set<TaskID> = []
    /// The number of taken slots.
    var taken: Int { running.count - resting.count }
    var descriptors = DescriptorBudget()
    var hosts: HostBudget
    var groups = CommandGroups()
    var alarms: Alarms
    /// The number of admitted tasks that can still run: idle or in action.
    private(set) var openCount = 0
    /// The number of attempts that this engine has begun.
    private var startCount: UInt64 = 0
    /// Hosts that were full when one of their tasks was next.
    private var fullHosts: [String] = []
    private var hasPauseNews = false

    init(_ configure: Configure, clock: any EngineClock, executor: EngineExecutor) {
        self.configure = configure
        self.clock = clock
        self.executor = executor
        ready = ReadyQueue(order: configure.order)
        hosts = HostBudget(limit: configure.maxConnectionsPerHost)
        alarms = Alarms(now: clock.now)
    }

    /// An engine that nobody holds any more may leave runs behind: a run and its task hold each other.
    deinit {
        for entry in running.values { entry.run = nil }
    }

    /// Applies a changed configuration.
    func update(_ configure: Configure) {
        if configure.order != self.configure.order { ready.setOrder(configure.order) }
        self.configure = configure
        hosts.limit = configure.maxConnectionsPerHost
    }

    // MARK: Waiting

    /// Adds an idle task to the ready queue, or to the wakes if its retry is not due.
    ///
    /// - Parameter host: `HostName.site` of the URL that is tried next.
    func enqueue(_ entry: TaskEntry, host: @autoclosure () -> String) {
        // A task that is being stopped is queued when that has ended.
        guard entry.run == nil else { return }
        watchDeadline(of: entry)
        if let until = entry.record.waiting?.until,
            let due = clock.deadline(
                of: until,
                atMost: RetryRules.longestDelay(
                    after: entry.record.error, attempt: entry.record.attempts, policy: configure.retry,
                    mirrors: entry.record.plan.count - 1))
        {
            alarms.wakes.push(entry.id, due: due)
            return
        }
        entry.host = host()
        ready.push(element(of: entry))
    }

    /// Lets a task start in this engine.
    ///
    /// - Parameter host: as for `enqueue`.
    func admit(_ entry: TaskEntry, host: @autoclosure () -> String) {
        guard !entry.isAdmitted else { return }
        entry.admit()
        if entry.record.state == .idle { enqueue(entry, host: host()) }
    }

    /// Removes a task from every queue.
    func withdraw(_ id: TaskID) {
        ready.remove(id)
        alarms.wakes.remove(id)
        alarms.expiries.remove(id)
    }

    /// The task's element for the ready queue.
    func element(of entry: TaskEntry) -> ReadyQueue.Element {
        .init(
            id: entry.id, priority: entry.record.task.priority, number: entry.record.number, host: entry.host,
            group: entry.group)
    }

    // MARK: Slots

    /// The number of slots of the group, if all of them are taken; nil while one is free.
    func takenSlots(_ group: Int32) -> Int? {
        if taken >= descriptors.slots { return descriptors.slots }
        if groups.hasSlot(group, shared: configure.maxAction) { return nil }
        return groups.maxAction(of: group) ?? configure.maxAction
    }

    /// Removes and returns the next task to start; nil while no slot or no host is free.
    func next() -> (id: TaskID, group: Int32)? {
        guard taken < descriptors.slots, !configure.isPaused else { return nil }
        let now = clock.now
        let next = ready.popNext { host, group in
            guard takenSlots(group) == nil else { return false }
            let obstacle = hosts.obstacle(host, now: now)
            if case .full = obstacle { fullHosts.append(host) }
            return obstacle == nil
        }
        return next.map { ($0.id, $0.group) }
    }

    /// Returns and clears the hosts that were full while a task waited for them.
    func takeFullHosts() -> [String] {
        defer { if !fullHosts.isEmpty { fullHosts = [] } }
        return fullHosts
    }

    /// Acquires a slot for a task.
    ///
    /// - Returns: the number of attempts begun so far, including this one.
    func take(_ entry: TaskEntry) -> UInt64 {
        running[entry.id] = entry
        entry.slotGroup = entry.group
        groups.began(entry.group)
        startCount += 1
        return startCount
    }

    /// Releases the slot of a task and its connection while it waits for a middleware. It stays a running task.
    func rest(_ entry: TaskEntry, _ permit: consuming HostPermit?) {
        guard running[entry.id] != nil, resting.insert(entry.id).inserted else { return }
        groups.ended(entry.slotGroup)
        if let permit { hosts.release(permit) }
    }

    /// Releases the slot of a task and its connection. Returns false if it had no slot.
    func release(_ entry: TaskEntry, _ permit: consuming HostPermit?) -> Bool {
        guard running.removeValue(forKey: entry.id) != nil else { return false }
        if entry.record.state.isSettled { alarms.expiries.remove(entry.id) }
        if resting.remove(entry.id) == nil { groups.ended(entry.slotGroup) }
        if let permit { hosts.release(permit) }
        return true
    }

    // MARK: Counting

    /// Changes the number of tasks that can still run. Returns true if it is 0 now.
    func count(_ group: Int32, open difference: Int) -> Bool {
        groups.count(group, open: difference)
        openCount += difference
        return openCount == 0
    }

    // MARK: Groups

    /// Returns the group for a command's limits; nil for nil.
    ///
    /// - Throws: `.invalidArgument` for limits outside their ranges.
    func group(of limits: OwnLimits?) throws(DownloadError) -> Int32? {
        guard let limits else { return nil }
        if let fault = limits.fault { throw DownloadError(.invalidArgument, "The request is refused: \(fault).") }
        return groups.number(for: limits, now: clock.now)
    }

    /// Moves a task into the group of a command. Returns false if it is in it already.
    func join(_ entry: TaskEntry, group: Int32) -> Bool {
        guard entry.group != group else { return false }
        if entry.isOpen {
            groups.count(group, open: 1)
            groups.count(entry.group, open: -1)
        }
        entry.group = group
        // The queue orders tasks by host and group.
        if ready.contains(entry.id) { ready.push(element(of: entry)) }
        return true
    }

    // MARK: Deadlines

    /// Sets the engine's timer to the earliest deadline.
    func setDeadline() {
        guard isActive, let onDeadline else { return }
        executor.setDeadline(min(alarms.next, hosts.nextEnd ?? .max), onDeadline)
    }

    // MARK: Pauses

    /// Pauses all requests to a server that failed a request and asked for a pause.
    ///
    /// - Parameter seconds: the pause that the server asked for, limited by `Configure.retry`.
    /// - Returns: the host, for display.
    func pauseHost(_ site: String, seconds: Double) -> String {
        if hosts.pause(site, seconds: seconds, now: clock.now, date: clock.date) {
            hasPauseNews = true
            setDeadline()
        }
        return HostName.shown(site)
    }

    /// Returns true once after new pauses, so that other processes learn of them.
    func takePauseNews() -> Bool {
        defer { hasPauseNews = false }
        return hasPauseNews
    }

    /// Pauses the server after the failure of another connection, if its answer asks for a pause.
    func notePause(_ error: DownloadError, from url: String) {
        guard let seconds = RetryRules.asked(by: error, configure.retry) else { return }
        _ = pauseHost(HostName.site(of: error, from: url), seconds: seconds)
    }

    // MARK: Why tasks wait

    /// The reason why an idle task does not run, as far as is known.
    func waiting(of entry: TaskEntry) -> Waiting? {
        guard entry.record.state == .idle else { return nil }
        let obstacle = hosts.obstacle(entry.host, now: clock.now)
        if let waiting = entry.record.waiting {
            // The task's own delay may be shorter than the host's pause.
            if case .paused(let pause) = obstacle, let until = waiting.until, pause.date > until {
                return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
            }
            return waiting
        }
        guard isActive, entry.isAdmitted, !configure.isPaused else { return Waiting(.queue) }
        switch obstacle {
        case .paused(let pause): return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
        case .full(let limit) where takenSlots(entry.group) == nil:
            return Waiting(.host, host: HostName.shown(entry.host), limit: limit)
        default: return Waiting(.slot, limit: takenSlots(entry.group))
        }
    }

    /// The reasons for waiting, for other processes and the next engine.
    ///
    /// - Parameter isClosing: true keeps only the pauses.
    func notice(isClosing: Bool) -> WaitNotice {
        var notice = WaitNotice()
        for (site, pause) in hosts.pauses { notice.hosts[site] = .init(until: pause.date, seconds: pause.seconds) }
        guard !ready.isEmpty, !isClosing else { return notice }
        for (site, count) in hosts.connections where count >= hosts.limit {
            notice.hosts[site, default: .init()].limit = hosts.limit
        }
        notice.slots =
            taken >= descriptors.slots
            ? descriptors.slots : groups.taken(shared: configure.maxAction, open: openCount)
        return notice
    }

    // MARK: The waiting list

    /// The queued tasks in the order in which they would start now. Tasks in the ready queue come first, with those
    /// of hosts that accept no request last. Tasks with a later attempt follow.
    func waitingOrder() -> [TaskID] {
        var queue = ready
        // A task that was queued again while it is being stopped enters the queue when that has ended.
        for entry in running.values where entry.record.state == .idle && entry.isAdmitted {
            queue.push(element(of: entry))
        }
        let now = clock.now
        var free = descriptors.slots - taken
        var groups = groups
        var more: [String: Int] = [:]
        var open: [TaskID] = []
        var closed: [TaskID] = []
        for element in queue.sorted() {
            guard hosts.obstacle(element.host, now: now, more: more[element.host, default: 0]) == nil else {
                closed.append(element.id)
                continue
            }
            open.append(element.id)
            // The task would take a free slot.
            if free > 0, groups.hasSlot(element.group, shared: configure.maxAction) {
                groups.began(element.group)
                more[element.host, default: 0] += 1
                free -= 1
            }
        }
        return open + closed + alarms.wakes.sorted()
    }
}

extension HostName {
    /// The server that an error concerns. After redirects it is not the requested one.
    package static func site(of error: DownloadError, from url: String) -> String {
        site(unnormalized: error.url ?? url)
    }
}

extension HostBudget {
    /// Restores the pauses of an earlier engine, each for its length at most: the wall clock may have been set back.
    ///
    /// - Parameter longest: the maximum in seconds, also for a pause without a length.
    mutating func restorePauses(_ notice: WaitNotice, at clock: any EngineClock, atMost longest: Double) {
        for (site, host) in notice.hosts {
            guard let until = host.until else { continue }
            let seconds = until.timeIntervalSince(clock.date)
            pause(site, seconds: min(seconds, host.seconds ?? longest, longest), now: clock.now, date: clock.date)
        }
    }
}
