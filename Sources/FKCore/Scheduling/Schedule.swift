import FKMiddleware
import Foundation

/// Which tasks run, which wait for what, and when somebody has to look again. Confined to the engine.
///
/// ```text
/// enqueue -> ready queue ------> next -> running -> release
///        \-> wakes (retry) -> due -^       (slots, groups, hosts)
/// ```
///
/// It starts nothing itself: the engine takes `next` for as long as there is one.
final class Schedule {
    let clock: any EngineClock
    private let executor: EngineExecutor
    /// What runs when a deadline is reached.
    var onDeadline: (@Sendable () -> Void)?
    var configure: Configure
    /// The polling timer runs: tasks may start.
    var isActive = false

    var ready: ReadyQueue
    private(set) var running: [TaskID: TaskEntry] = [:]
    var descriptors = DescriptorBudget()
    var hosts: HostBudget
    var groups = CommandGroups()
    var alarms: Alarms
    /// Admitted tasks that can still run: idle or in action.
    private(set) var openCount = 0
    /// Attempts begun by this engine.
    private var startCount: UInt64 = 0
    /// Hosts that were full while one of their tasks was next.
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

    /// Takes over changed settings.
    func update(_ configure: Configure) {
        if configure.order != self.configure.order { ready.setOrder(configure.order) }
        self.configure = configure
        hosts.limit = configure.maxConnectionsPerHost
    }

    // MARK: Waiting

    /// An idle task waits in the ready queue, or among the wakes while its retry is not due.
    ///
    /// - Parameter host: `HostName.site` of the URL that is tried next.
    func enqueue(_ entry: TaskEntry, host: @autoclosure () -> String) {
        // A task that is still being stopped comes back here when that has ended.
        guard entry.run == nil else { return }
        if let until = entry.record.waiting?.until,
            let due = clock.deadline(
                of: until,
                atMost: RetryRules.longestDelay(
                    after: entry.record.error, attempt: entry.record.attempts, policy: configure.retry,
                    mirrors: entry.record.task.mirrors.count))
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
        entry.isAdmitted = true
        if entry.record.state == .idle { enqueue(entry, host: host()) }
    }

    /// Takes a task out of every queue.
    func withdraw(_ id: TaskID) {
        ready.remove(id)
        alarms.wakes.remove(id)
    }

    /// The task as the ready queue sees it.
    func element(of entry: TaskEntry) -> ReadyQueue.Element {
        .init(
            id: entry.id, priority: entry.record.task.priority, number: entry.record.number, host: entry.host,
            group: entry.group)
    }

    // MARK: Slots

    /// The slots of that group, where all of them are taken; nil while one is free.
    func takenSlots(_ group: Int32) -> Int? {
        if running.count >= descriptors.slots { return descriptors.slots }
        if groups.hasSlot(group, shared: configure.maxAction) { return nil }
        return groups.maxAction(of: group) ?? configure.maxAction
    }

    /// Takes the task out of the queue that starts now; nil while no slot or no host is free.
    func next() -> (id: TaskID, group: Int32)? {
        guard running.count < descriptors.slots else { return nil }
        let now = clock.now
        let next = ready.popNext { host, group in
            guard takenSlots(group) == nil else { return false }
            let obstacle = hosts.obstacle(host, now: now)
            if case .full = obstacle { fullHosts.append(host) }
            return obstacle == nil
        }
        return next.map { ($0.id, $0.group) }
    }

    /// Hosts that were full while a task waited for them, since the last call.
    func takeFullHosts() -> [String] {
        defer { if !fullHosts.isEmpty { fullHosts = [] } }
        return fullHosts
    }

    /// Gives a task its slot.
    ///
    /// - Returns: how many attempts have begun, this one among them.
    func take(_ entry: TaskEntry) -> UInt64 {
        running[entry.id] = entry
        entry.slotGroup = entry.group
        groups.began(entry.group)
        startCount += 1
        return startCount
    }

    /// Gives the slot of a task back. False when it had none.
    func release(_ entry: TaskEntry, _ permit: consuming HostPermit?) -> Bool {
        guard running.removeValue(forKey: entry.id) != nil else { return false }
        groups.ended(entry.slotGroup)
        if let permit { hosts.release(permit) }
        return true
    }

    // MARK: Counting

    /// Follows whether a task can still run. Returns true when it was the last one.
    func count(_ group: Int32, open difference: Int) -> Bool {
        groups.count(group, open: difference)
        openCount += difference
        return openCount == 0
    }

    // MARK: Groups

    /// - Throws: `.invalidArgument` for limits outside their ranges.
    func group(of limits: OwnLimits?) throws(DownloadError) -> Int32? {
        guard let limits else { return nil }
        if let fault = limits.fault { throw DownloadError(.invalidArgument, "The request is refused: \(fault).") }
        return groups.number(for: limits, now: clock.now)
    }

    /// The task is that command's from now on. Returns false when it was already.
    func join(_ entry: TaskEntry, group: Int32) -> Bool {
        guard entry.group != group else { return false }
        if entry.isOpen {
            groups.count(group, open: 1)
            groups.count(entry.group, open: -1)
        }
        entry.group = group
        // Its place in the queue is among its group's.
        if ready.contains(entry.id) { ready.push(element(of: entry)) }
        return true
    }

    // MARK: Deadlines

    /// Has the engine look again when the first of all deadlines is reached.
    func setDeadline() {
        guard isActive, let onDeadline else { return }
        executor.setDeadline(min(alarms.next, hosts.nextEnd ?? .max), onDeadline)
    }

    // MARK: Pauses

    /// The server has failed a request and asked to be left alone: no task asks it before that time.
    ///
    /// - Parameter seconds: as long as the server asked for, or as `Configure.retry` allows.
    /// - Returns: the host, for a person.
    func pauseHost(_ site: String, seconds: Double) -> String {
        if hosts.pause(site, seconds: seconds, now: clock.now, date: clock.date) {
            hasPauseNews = true
            setDeadline()
        }
        return HostName.shown(site)
    }

    /// True once for pauses that nobody has told others of.
    func takePauseNews() -> Bool {
        defer { hasPauseNews = false }
        return hasPauseNews
    }

    /// The same for a further connection's failure, where it asks for anything.
    func notePause(_ error: DownloadError, from url: String) {
        guard let seconds = RetryRules.asked(by: error, configure.retry) else { return }
        _ = pauseHost(HostName.site(of: error, from: url), seconds: seconds)
    }

    // MARK: Why tasks wait

    /// Why an idle task is not running, as far as is known.
    func waiting(of entry: TaskEntry) -> Waiting? {
        guard entry.record.state == .idle else { return nil }
        let obstacle = hosts.obstacle(entry.host, now: clock.now)
        if let waiting = entry.record.waiting {
            // Its own delay may be shorter than what the host asked others for.
            if case .paused(let pause) = obstacle, let until = waiting.until, pause.date > until {
                return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
            }
            return waiting
        }
        guard isActive, entry.isAdmitted else { return Waiting(.queue) }
        switch obstacle {
        case .paused(let pause): return Waiting(.host, until: pause.date, host: HostName.shown(entry.host))
        case .full(let limit) where takenSlots(entry.group) == nil:
            return Waiting(.host, host: HostName.shown(entry.host), limit: limit)
        default: return Waiting(.slot, limit: takenSlots(entry.group))
        }
    }

    /// Why tasks wait, for other processes and for the next engine.
    ///
    /// - Parameter isClosing: only the pauses stay.
    func notice(isClosing: Bool) -> WaitNotice {
        var notice = WaitNotice()
        for (site, pause) in hosts.pauses { notice.hosts[site] = .init(until: pause.date) }
        guard !ready.isEmpty, !isClosing else { return notice }
        for (site, count) in hosts.connections where count >= hosts.limit {
            notice.hosts[site, default: .init()].limit = hosts.limit
        }
        notice.slots =
            running.count >= descriptors.slots
            ? descriptors.slots : groups.taken(shared: configure.maxAction, open: openCount)
        return notice
    }

    // MARK: The waiting list

    /// The queued tasks in the order in which they would start now: first those in the ready queue, those of hosts that
    /// may not be asked last, then those whose next attempt is due later.
    func waitingOrder() -> [TaskID] {
        var queue = ready
        // Queued again while it was being stopped: it is in the queue once that has ended.
        for entry in running.values where entry.record.state == .idle && entry.isAdmitted {
            queue.push(element(of: entry))
        }
        let now = clock.now
        var free = descriptors.slots - running.count
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
            // It would take one of the slots that are free.
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
    /// The server that an error is of: after redirects it is not the one that was asked.
    static func site(of error: DownloadError, from url: String) -> String {
        site(unnormalized: error.url ?? url)
    }
}

extension HostBudget {
    /// Takes over the pauses that an earlier engine noted.
    ///
    /// - Parameter longest: seconds; a wall clock that was set back must not make anybody wait for hours.
    mutating func restorePauses(_ notice: WaitNotice, at clock: any EngineClock, atMost longest: Double) {
        for (site, host) in notice.hosts {
            guard let until = host.until else { continue }
            let seconds = until.timeIntervalSince(clock.date)
            pause(site, seconds: min(seconds, longest), now: clock.now, date: clock.date)
        }
    }
}
