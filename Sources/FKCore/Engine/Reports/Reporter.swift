import FKMiddleware
import Foundation

/// Reports tasks to others: snapshots, sums, changes of state, polled reports. It owns every listener and every
/// "previous" value, and changes no task. Confined to the engine.
final class Reporter {
    let book: TaskBook
    let schedule: Schedule
    let chains: MiddlewareChains
    /// Runs download middlewares.
    let callbacks: CallbackQueue
    /// Tells other processes.
    let changes: ChangeJournal
    let observers: Observers
    /// The tasks with polled callbacks that have left the state `action` since the last report. They are reported once more,
    /// so that `received - previousReceived` becomes 0.
    private var stopped: Set<TaskID> = []
    /// Called with each task whose state has changed.
    var onState: ((TaskRecord) -> Void)?

    var barrels: Barrels { book.barrels }
    var clock: any EngineClock { schedule.clock }

    init(_ book: TaskBook, _ schedule: Schedule, callbacks: CallbackQueue, observers: Observers) {
        self.book = book
        self.schedule = schedule
        self.callbacks = callbacks
        self.observers = observers
        chains = book.chains
        changes = ChangeJournal(book.workPath)
    }

    // MARK: Snapshots

    /// The present state of a task.
    func info(_ entry: TaskEntry) -> DownloadInfo {
        entry.refresh()
        var info = DownloadInfo(entry.record)
        info.order = ChangeOrder(number: entry.record.number, generation: entry.info.generation, isInMemory: true)
        info.count.received = entry.received
        info.besides = entry.besides
        if let counters = entry.run?.counters { info.received = counters.applied(to: entry.record.ranges).received }
        info.bytesPerSecond = info.state == .action ? entry.bytesPerSecond : 0
        info.wait = schedule.waiting(of: entry) ?? info.wait
        info.maxAttempts =
            info.maxAttempts
            ?? max(schedule.configure.retry.maxAttempts + entry.record.attemptsBeforeProgress, entry.record.planCount)
        if let run = entry.run {
            info.wait = run.systemWait ?? info.wait
            info.lastByteAt = run.pace.lastByte
            info.connections = run.connections
        }
        return info
    }

    /// The present state of a task, with a fresh speed.
    func freshInfo(_ entry: TaskEntry) -> DownloadInfo {
        sample(entry)
        return info(entry)
    }

    private func sample(_ entry: TaskEntry) {
        entry.run?.pace.sample(entry.received, at: clock.now)
    }

    /// The present sum over a barrel's members.
    ///
    /// - Throws: `.notFound` if there is no such barrel, or an error if a file cannot be read.
    func barrelInfo(_ name: String) throws -> BarrelInfo {
        var barrel = try barrels.open(name, creating: false)
        if !barrel.sum.isCounted {
            let shares = try barrel.ids.map { id in
                let isInMemory = book[id] != nil
                defer { if !isInMemory { book.unload(id) } }
                return try book.find(id)?.accounted ?? TaskTotals.Share(state: .unknown)
            }
            barrel.count(shares)
            barrels.book.count(name, shares)
        }
        var first = 0.0
        for entry in schedule.running.values where entry.record.barrels.containsExactly(name) {
            entry.refresh()
            account(entry)
            first += entry.bytesPerSecond
        }
        // A closed engine has no open barrels and counts the records on disk.
        return book.ownership.mayWrite ? barrels.book.info(name, now: clock.now, first: first) : barrel.info()
    }

    // MARK: Sums

    /// Updates the sums of barrels and the number of open tasks for one task.
    func account(_ entry: TaskEntry) {
        let old = entry.accounted
        let new = entry.share
        if old != new {
            entry.accounted = new
            barrels.book.replace(old, by: new, in: entry.record.barrels)
        }
        let isOpen = entry.isAdmitted && !entry.record.state.isSettled
        guard isOpen != entry.isOpen else { return }
        entry.isOpen = isOpen
        count(entry.group, open: isOpen ? 1 : -1)
    }

    private func count(_ group: Int32, open difference: Int) {
        guard schedule.count(group, open: difference) else { return }
        observers.queueDrained()
    }

    /// Tells what was deleted to make room.
    func trimmed(_ files: TrimmedFiles) { observers.tell(files) }

    /// Counts a queued task whose info file has disappeared as gone.
    func lost(_ id: TaskID, group: Int32) {
        count(group, open: -1)
        observers.waits.settled(id)
    }

    // MARK: Changes

    /// Changes the state of a task. All changes of state go through here, so counts, observers and middlewares
    /// receive each one once.
    func change(_ entry: TaskEntry, to state: DownloadState) {
        if entry.set(state) { stateChanged(entry) }
    }

    /// Reports the new state of a task to counts, observers and middlewares.
    func stateChanged(_ entry: TaskEntry) {
        account(entry)
        entry.feed?.wake()
        onState?(entry.record)
        tellMiddlewares(entry)
        if tell(entry), entry.record.state != .action, entry.isThere {
            stopped.insert(entry.id)
            armReports(whileIdle: true)
        }
        if !observers.states.isEmpty { observers.tell(info(entry)) }
        if changes.isOpen { writeState(entry) }
        if entry.record.state.isSettled {
            observers.waits.settled(entry.id)
            endSequences(of: entry)
        }
        if entry.record.state == .action {
            // The first report has a speed, because the meter begins here.
            sample(entry)
            armReports()
        }
        // Listeners of a barrel also receive changes of members that never run: suspended, cancelled or trashed while
        // they waited.
        if !entry.record.barrels.isEmpty { membersChanged() }
    }

    /// Reports the sums of barrels soon, even if no task runs: a member has joined, left or changed its state.
    func membersChanged() { if !observers.barrels.isEmpty { armReports(whileIdle: true) } }

    /// A member has joined or left a barrel.
    func membersChanged(of name: String) {
        for listener in observers.barrels where listener.name.isExactly(name) { listener.hasOtherMembers = true }
        membersChanged()
    }

    private func tellMiddlewares(_ entry: TaskEntry) {
        let middlewares = entry.middlewares(of: chains.download)
        guard !middlewares.isEmpty else { return }
        let context = entry.context
        let state = entry.record.state
        let error = state == .error ? entry.record.error : nil
        let count = state.isSettled ? countForMiddlewares(entry) : ByteCount()
        callbacks.async {
            if state.isSettled, state != .unknown {
                for middleware in middlewares { middleware.download(context, didReceive: count) }
            }
            for middleware in middlewares { middleware.download(context, didChangeTo: state, error: error) }
        }
    }

    /// The counts for download middlewares. All of them receive the same.
    private func countForMiddlewares(_ entry: TaskEntry) -> ByteCount {
        let received = entry.received
        defer { entry.reported = received }
        return ByteCount(received: received, previousReceived: entry.reported, expected: entry.record.expected)
    }

    /// Returns true if there are listeners.
    @discardableResult
    private func tell(_ entry: TaskEntry) -> Bool {
        !observers.tasks.isEmpty && observers.tell(entry.id, url: entry.record.task.url, info(entry))
    }

    // MARK: Polled reports

    /// Sets the time of the next polled reports, if there are listeners or download middlewares and a task runs.
    ///
    /// - Parameter whileIdle: true sets it even if no task runs; the default is false.
    func armReports(whileIdle: Bool = false) {
        guard !schedule.alarms.hasReport, whileIdle || !schedule.running.isEmpty,
            observers.wantsReports || !chains.download.isEmpty
        else { return }
        schedule.alarms.setReport(clock.now + Int64(schedule.configure.progressInterval.inSeconds * 1e9))
        schedule.setDeadline()
    }

    /// Calls the listeners, every `progressInterval` while tasks run.
    func report() {
        let stopped = self.stopped.subtracting(schedule.running.keys)
        self.stopped = []
        for id in stopped {
            let isInMemory = book[id] != nil
            if let entry = try? book.find(id), entry.isThere { tell(entry) }
            if !isInMemory { book.unload(id) }
        }
        for entry in schedule.running.values {
            entry.refresh()
            sample(entry)
            account(entry)
            tell(entry)
            if let run = entry.run { tellAttempt(entry, run, .progressed(ByteCount())) }
            tellReceived(entry)
        }
        reportBarrels(isPolled: true)
        armReports(whileIdle: observers.barrels.contains(where: \.isMoving))
    }

    /// Reports the received bytes of a task to download middlewares, if they have others.
    func tellReceived(_ entry: TaskEntry) {
        guard !chains.download.isEmpty, entry.received != entry.reported else { return }
        let middlewares = entry.middlewares(of: chains.download)
        guard !middlewares.isEmpty else { return }
        let (context, count) = (entry.context, countForMiddlewares(entry))
        callbacks.async { for middleware in middlewares { middleware.download(context, didReceive: count) } }
    }

    func reportBarrels(isPolled: Bool = false) {
        for listener in observers.barrels {
            if let info = try? barrelInfo(listener.name) { listener.tell(info, isPolled: isPolled) }
        }
        for listener in observers.barrels { endBarrelSequences(listener.name) }
    }

    // MARK: Ends

    /// Ends the listeners of a task that is gone.
    func forget(_ entry: TaskEntry, barrels: [String]) {
        observers.removeAll(.id(entry.id))
        for name in barrels { endBarrelSequences(name) }
    }

    /// The last sum for the listeners of a barrel that is about to be deleted; nil if there are none.
    func lastInfo(ofBarrel name: String) throws -> BarrelInfo? {
        observers.barrels.contains { $0.name.isExactly(name) } ? try barrelInfo(name) : nil
    }

    func barrelDeleted(_ name: String, _ info: BarrelInfo?) {
        if let info { observers.tell(info) }
        observers.removeBarrel(name)
    }

    /// Sends the last reports of a closing engine.
    func finish() {
        reportBarrels()
        observers.finish()
    }

    // MARK: Attempts

    /// Reports an attempt to its listeners.
    ///
    /// - Parameter phase: `.progressed` gets its counts here.
    func tellAttempt(_ entry: TaskEntry, _ run: any ActiveRun, _ phase: AttemptInfo.Phase) {
        if changes.isOpen { writeAttempt(entry, run, phase) }
        guard !observers.attempts.isEmpty else { return }
        var phase = phase
        if case .progressed = phase {
            phase = .progressed(ByteCount(received: entry.received, expected: entry.record.expected))
        }
        observers.tell(attempt(entry, run, phase), url: entry.record.task.url)
    }

    // MARK: Other processes

    /// Begins to write changes for other processes, with the tasks that run now: their info files may not say so yet.
    /// Changes are advice, so a full disk must not stop downloads.
    ///
    /// - Parameter isAsked: true for a new follower, which reads from the end of the journal: the running tasks are written
    ///   again then. The default is false.
    func openChanges(isAsked: Bool = false) {
        do {
            let isNew = try changes.open()
            guard isNew || isAsked else { return }
            for entry in schedule.running.values where entry.record.state == .action { writeState(entry) }
            changes.flush()
        } catch {
            book.problems.append("Other processes cannot follow this work path: \(error)")
        }
    }

    private func writeState(_ entry: TaskEntry) {
        let info = info(entry)
        changes.append(.state(info, order: info.order))
    }

    /// Other processes measure progress themselves.
    private func writeAttempt(_ entry: TaskEntry, _ run: any ActiveRun, _ phase: AttemptInfo.Phase) {
        if case .progressed = phase { return }
        changes.append(.attempt(attempt(entry, run, phase), url: entry.record.task.url))
    }

    private func attempt(_ entry: TaskEntry, _ run: any ActiveRun, _ phase: AttemptInfo.Phase) -> AttemptInfo {
        AttemptInfo(
            id: entry.id, url: run.attempt.shownURL, number: run.attempt.number, phase: phase, kept: entry.received,
            dropReason: run.attempt.receivedBefore > 0 ? run.attempt.dropReason : nil)
    }
}
