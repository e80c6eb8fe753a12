import FKMiddleware
import Foundation

/// Decides which tasks run, and records the waiting reasons of the others and the time of the next check. Confined to the
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
    /// Requests that are prepared and wait for their turn, in order.
    private(set) var heldRequests: [HeldRequest] = []
    /// The hosts whose tasks wait for their turn.
    private(set) var pacedHosts: [String: HostBudget.Turn] = [:]
    /// When the first host may be asked again.
    private var nextTurn = Int64.max

    init(_ configure: Configure, clock: any EngineClock, executor: EngineExecutor) {
        self.configure = configure
        self.clock = clock
        self.executor = executor
        ready = ReadyQueue(order: configure.order)
        hosts = HostBudget(
            limit: configure.maxConnectionsPerHost,
            turns: HostTurns(WorkPath(configure.workPath)) { [clock] in clock.now })
        hosts.policies = HostPolicies(configure.hosts)
        alarms = Alarms(now: clock.now)
    }

    /// A run and its task retain each other. This breaks the cycle if an engine is released without a close.
    deinit {
        for entry in running.values { entry.run = nil }
    }

    /// Applies a changed configuration. A pause stays as it is.
    func update(_ configure: Configure) {
        if configure.order != self.configure.order { ready.setOrder(configure.order) }
        let isPaused = isPaused
        self.configure = configure
        self.isPaused = isPaused
        hosts.limit = configure.maxConnectionsPerHost
        hosts.policies = HostPolicies(configure.hosts + storedPolicies)
    }

    /// True while the whole queue is paused.
    var isPaused: Bool {
        get { configure.isPaused }
        set { configure.isPaused = newValue }
    }

    /// The policies of the work path's file.
    private(set) var storedPolicies: [HostPolicy] = []

    /// Applies the policies of the work path's file.
    func use(_ policies: [HostPolicy]) {
        storedPolicies = policies
        hosts.policies = HostPolicies(configure.hosts + policies)
    }

    /// Applies the policies that another process has written since. An unreadable file leaves them as they are.
    ///
    /// - Returns: false if there are no others.
    func hasNewPolicies(in workPath: WorkPath) -> Bool {
        guard let policies = try? HostPolicy.all(in: workPath), policies != storedPolicies else { return false }
        use(policies)
        return true
    }

    // MARK: Waiting

    /// Adds an idle task to the ready queue, or to the wakes if its retry is not due.
    ///
    /// - Parameter host: `site` of the URL that is tried next.
    func enqueue(_ entry: TaskEntry, host: @autoclosure () -> String) {
        // A task that is being stopped is queued when that has ended.
        guard entry.run == nil else { return }
        watchDeadline(of: entry)
        if let until = entry.record.waiting?.until,
            let due = clock.deadline(
                of: until,
                atMost: RetryRules.longestDelay(
                    after: entry.record.error, attempt: entry.record.countedAttempts, policy: configure.retry,
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
        hosts.endAdmission()
        let now = clock.now
        let next = ready.popNext { host, group in
            guard takenSlots(group) == nil, !isHeld(host, group) else { return false }
            let obstacle = hosts.admit(host, for: groups.asker(group), now: now)
            if case .full = obstacle { fullHosts.append(host) }
            if case .paced(let turn) = obstacle { record(turn, of: host) }
            return obstacle == nil
        }
        return next.map { ($0.id, $0.group) }
    }

    // MARK: Turns

    /// A prepared request that waits for its turn.
    struct HeldRequest {
        var id: TaskID
        /// `Lane.number`
        var lane: Int
        var host: String
        var asker: HostAsker
    }

    /// Counts a request that is about to be sent. Returns false if it has to wait for its turn; `dueRequests` returns it
    /// then.
    func acquireTurn(_ request: HeldRequest) -> Bool {
        // Those that wait already are first.
        if !isHeld(request.host, request.asker.group) {
            guard mustWait(request) else { return true }
            setDeadline()
        }
        heldRequests.append(request)
        return false
    }

    private func isHeld(_ host: String, _ group: Int32) -> Bool {
        heldRequests.contains { $0.host == host && $0.asker.group == group }
    }

    /// Counts a request if it may be sent now, else notes the time of its turn.
    private func mustWait(_ request: HeldRequest) -> Bool {
        guard let turn = hosts.acquireTurn(request.host, for: request.asker, now: clock.now) else { return false }
        record(turn, of: request.host)
        return true
    }

    private func record(_ turn: HostBudget.Turn, of host: String) {
        pacedHosts[host] = turn
        nextTurn = min(nextTurn, turn.until)
    }

    /// Removes and returns the waiting requests whose turn has come.
    func dueRequests() -> [HeldRequest] {
        nextTurn = .max
        pacedHosts = [:]
        guard !heldRequests.isEmpty else { return [] }
        var due: [HeldRequest] = []
        var closed: Set<String> = []
        heldRequests.removeAll { request in
            let key = "\(request.asker.group) \(request.host)"
            guard !closed.contains(key), !mustWait(request) else {
                closed.insert(key)
                return false
            }
            due.append(request)
            return true
        }
        return due
    }

    /// A waiting request is not needed any more.
    func dropHeld(_ id: TaskID, lane: Int) { heldRequests.removeAll { $0.id == id && $0.lane == lane } }

    /// Records what an answer says about the requests that its server still allows.
    func record(_ fields: RateLimitFields, of host: String, for entry: TaskEntry) {
        guard !fields.limits.isEmpty || hosts.quotas[host] != nil else { return }
        let inFlight = running.values.reduce(0) { $0 + ($1.run?.unanswered(of: host) ?? 0) }
        hosts.record(
            fields.limits, of: host, for: groups.asker(entry.group), inFlight: inFlight, now: clock.now,
            longest: configure.retry.maxRetryAfterSeconds)
    }

    /// Returns and clears the hosts that were full while a task waited for them.
    func drainFullHosts() -> [String] {
        defer { if !fullHosts.isEmpty { fullHosts = [] } }
        return fullHosts
    }

    /// Acquires a slot for a task.
    ///
    /// - Returns: the number of attempts begun so far, including this one.
    func occupy(_ entry: TaskEntry) -> UInt64 {
        running[entry.id] = entry
        entry.slotGroup = entry.group
        groups.began(entry.group)
        startCount += 1
        return startCount
    }

    /// Releases the slot of a task and its connection while it waits for a middleware. It stays a running task.
    func park(_ entry: TaskEntry, _ permit: consuming HostPermit?) {
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

    /// True if a host may be asked again at a certain time.
    var hasTurn: Bool { nextTurn < .max }

    /// Sets the engine's timer to the earliest deadline.
    func setDeadline() {
        guard isActive, let onDeadline else { return }
        executor.setDeadline(min(alarms.next, hosts.nextEnd ?? .max, nextTurn), onDeadline)
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
        return site.shownSite
    }

    /// Returns true once after new pauses, so that other processes learn of them.
    func drainPauseNews() -> Bool {
        defer { hasPauseNews = false }
        return hasPauseNews
    }

    /// Pauses the server after the failure of another connection, if its answer asks for a pause.
    func recordPause(_ error: DownloadError, from url: String) {
        guard error.status != 202, let seconds = RetryRules.asked(by: error, configure.retry) else { return }
        _ = pauseHost(error.site(from: url), seconds: seconds)
    }
}
