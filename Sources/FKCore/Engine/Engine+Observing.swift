import FKMiddleware
import Foundation

/// What others see of the engine: snapshots, polled reports, state changes.
extension Engine {
    // MARK: Snapshots

    /// A task as it is now.
    func info(_ entry: TaskEntry) -> DownloadInfo {
        takeInlineHead(of: entry)
        var info = DownloadInfo(entry.record)
        info.count.received = entry.received
        info.bytesPerSecond = info.state == .action ? entry.work.speed.bytesPerSecond : 0
        if let waiting = waiting(of: entry) {
            info.waiting = waiting.reason.rawValue
            info.waitingUntil = waiting.until
            info.waitingHost = waiting.host
            info.waitingLimit = waiting.limit
        }
        return info
    }

    /// The tasks that can still run, in the order of submission.
    package func openIDs() throws -> [TaskID] {
        try find(.all).compactMap { $0.record.state.isSettled ? nil : $0.id }
    }

    package func infos(_ ids: some Sequence<TaskID> & Sendable) throws -> [DownloadInfo] {
        try ids.compactMap { try find($0) }.filter(\.isThere).map { info($0) }
    }

    package func infos(_ selector: TaskSelector) throws -> [DownloadInfo] {
        try find(selector).filter(\.isThere).map { info($0) }
    }

    package func record(_ id: TaskID) throws -> TaskRecord? { try find(id)?.record }

    /// The tasks that hold a slot now, in the order in which they were submitted, with fresh speeds.
    package func runningInfos() -> [DownloadInfo] {
        running.values.sorted { $0.record.number < $1.record.number }.map { entry in
            sample(entry)
            return info(entry)
        }
    }

    /// Some of the tasks that wait for their next attempt, at most `limit`.
    package func retryingInfos(_ limit: Int) -> [DownloadInfo] {
        alarms.wakes.first(limit).compactMap { tasks[$0].map { info($0) } }
    }

    /// How many tasks are in memory, running and still open.
    package var load: (known: Int, running: Int, open: Int) { (tasks.count, running.count, openCount) }

    // MARK: Changes

    /// Tells everybody that a task is in another state.
    func stateChanged(_ entry: TaskEntry) {
        account(entry)
        let state = entry.record.state
        let middlewares = chains.download.ordered
        if !middlewares.isEmpty, let context = entry.context {
            let error = state == .error ? entry.record.error : nil
            let count = state.isSettled ? countForMiddlewares(entry) : ByteCount()
            callbacks.async {
                for middleware in middlewares {
                    if state.isSettled, state != .unknown { middleware.download(context, didReceive: count) }
                    middleware.download(context, didChangeTo: state, error: error)
                }
            }
        }
        tell(entry)
        let states = observers.states
        if !states.isEmpty {
            let info = info(entry)
            callbacks.async { for callback in states.values { callback(info) } }
        }
        if state.isSettled {
            observers.settled(entry.id)
            endSequences(of: entry)
        }
        if state == .action { armReports() }
        // A barrel's listeners also hear of members that never run: suspended, cancelled or trashed while they waited.
        if !observers.barrels.isEmpty, !entry.record.barrels.isEmpty { armReports(whileIdle: true) }
    }

    private func tell(_ entry: TaskEntry) {
        guard observers.wantsReports else { return }
        for target in [Observers.Target.url(entry.record.task.url), .id(entry.id)] {
            for listener in observers.tasks[target] ?? [] { tell(listener, entry) }
        }
    }

    private func tell(_ listener: Observers.TaskListener, _ entry: TaskEntry) {
        var info = info(entry)
        info.count.previousReceived = listener.told.previous(of: entry.id, now: info.count.received)
        if info.state == .unknown { listener.told.forget(entry.id) }
        callbacks.async { [info, callback = listener.callback] in callback(info) }
    }

    /// What download middlewares are told, all of them at once.
    private func countForMiddlewares(_ entry: TaskEntry) -> ByteCount {
        let received = entry.received
        defer { entry.reported = received }
        return ByteCount(received: received, previousReceived: entry.reported, expected: entry.record.expected)
    }

    /// Brings the sums of the barrels and the number of open tasks up to date with one task.
    func account(_ entry: TaskEntry) {
        let old = entry.accounted
        let new = entry.account
        if old != new {
            entry.accounted = new
            barrels.replace(old, by: new, in: entry.record.barrels)
        }
        let isOpen = entry.isAdmitted && !entry.record.state.isSettled
        guard isOpen != entry.isOpen else { return }
        entry.isOpen = isOpen
        groups.count(entry.group, open: isOpen ? 1 : -1)
        countOpen(isOpen ? 1 : -1)
    }

    func countOpen(_ difference: Int) {
        openCount += difference
        if openCount == 0 {
            let drained = observers.queueDrained()
            callbacks.async { drained.forEach { $0() } }
        }
    }

    func sample(_ entry: TaskEntry) {
        entry.work.speed.add(time: clock.now, bytes: entry.received)
    }

    // MARK: Polled reports

    func armReports(whileIdle: Bool = false) {
        guard !alarms.hasReport, whileIdle || !running.isEmpty, observers.wantsReports || !chains.download.isEmpty
        else { return }
        alarms.setReport(clock.now + Int64(configure.distributeInterval * 1e9))
        setDeadline()
    }

    /// The polled callbacks, every `distributeSpeed` x 0.2 s while something runs.
    func report() {
        let middlewares = chains.download.ordered
        for entry in running.values {
            takeInlineHead(of: entry)
            sample(entry)
            account(entry)
            tell(entry)
            tellAttempt(entry, .progressed(ByteCount()))
            guard !middlewares.isEmpty, entry.received != entry.reported, let context = entry.context else { continue }
            let count = countForMiddlewares(entry)
            callbacks.async { for middleware in middlewares { middleware.download(context, didReceive: count) } }
        }
        reportBarrels()
        armReports()
    }

    func reportBarrels() {
        for listener in observers.barrels { tell(listener, try? barrelInfo(listener.name)) }
        for listener in observers.barrels { endBarrelSequences(listener.name) }
    }

    /// - Parameter info: the sum now; one that was told already is not told again.
    func tell(_ listener: Observers.BarrelListener, _ info: BarrelInfo?) {
        guard var info else { return }
        info.count.previousReceived = listener.last?.count.received ?? 0
        if let last = listener.last, last.count.received == info.count.received, last.states == info.states,
            last.total == info.total
        {
            return
        }
        listener.last = info
        callbacks.async { [info, callback = listener.callback] in callback(info) }
    }

    // MARK: Registering

    /// Registers a polled callback and calls it once at once, if the task is known.
    ///
    /// - Parameter end: for a sequence: called once, behind the last info, when the task is gone or can run no more.
    package func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) throws -> UInt64 {
        try checkOpen()
        let target = try Observers.Target(selector)
        let listener = Observers.TaskListener(number: observers.number(), callback: callback)
        observers.add(listener, for: target, end: end)
        if let entry = try find(selector).first(where: \.isThere) { tell(listener, entry) }
        if end != nil { endInfoSequences(target) }
        armReports()
        return listener.number
    }

    package func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) throws -> UInt64 {
        try checkOpen()
        let info = try barrelInfo(name)
        let listener = Observers.BarrelListener(number: observers.number(), name: name, callback: callback)
        observers.add(listener, end: end)
        tell(listener, info)
        endBarrelSequences(name)
        armReports()
        return listener.number
    }

    /// Every change of state of every task, on the callback queue.
    package func observeStates(_ callback: @escaping @Sendable (DownloadInfo) -> Void) -> UInt64 {
        observers.addStates(callback)
    }

    /// Called each time the last open task has settled.
    package func observeDrained(_ callback: @escaping @Sendable () -> Void) -> UInt64 {
        observers.addDrained(callback)
    }

    package func stopObserving(_ number: UInt64) { observers.remove(number) }

    package func stopObserving(_ selector: TaskSelector) {
        switch selector {
        case .url(let text):
            if let url = try? URLNormalizer.normalize(text) { endListeners(observers.removeAll(.url(url))) }
        case .id(let id): endListeners(observers.removeAll(.id(id)))
        case .barrel(let name): endListeners(observers.removeBarrel(name))
        case .all: break
        }
    }
}
