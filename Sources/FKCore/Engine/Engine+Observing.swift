import FKMiddleware
import Foundation

/// What others see of the engine: snapshots, polled reports, state changes.
extension Engine {
    // MARK: Snapshots

    /// A task as it is now.
    func info(_ entry: TaskEntry, previous: Int64 = 0) -> DownloadInfo {
        var info = DownloadInfo(entry.record)
        info.count.received = entry.received
        info.count.previousReceived = previous
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
        try ids.compactMap { try find($0).map { info($0) } }
    }

    package func infos(_ selector: TaskSelector) throws -> [DownloadInfo] {
        try find(selector).map { info($0) }
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
            let count = ByteCount(
                received: entry.received, previousReceived: entry.work.reported, expected: entry.record.expected)
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
        if state.isSettled { observers.settled(entry.id) }
        if state == .action { armReports() }
        // A barrel's listeners also hear of members that never run: suspended, cancelled or trashed while they waited.
        if !observers.barrels.isEmpty, !entry.record.barrels.isEmpty { armReports(whileIdle: true) }
    }

    private func tell(_ entry: TaskEntry) {
        guard observers.wantsReports else { return }
        for target in [Observers.Target.url(entry.record.task.url), .id(entry.id)] {
            for listener in observers.tasks[target] ?? [] {
                let info = info(entry, previous: listener.previous)
                listener.previous = info.count.received
                callbacks.async { [callback = listener.callback] in callback(info) }
            }
        }
    }

    /// Brings the sums of the barrels and the number of open tasks up to date with one task.
    func account(_ entry: TaskEntry) {
        let old = entry.accounted
        let new = entry.account
        if old != new {
            entry.accounted = new
            for name in entry.record.barrels { barrels[name]?.replace(old, by: new) }
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
            sample(entry)
            account(entry)
            tell(entry)
            tellAttempt(entry, .progressed(ByteCount()))
            let received = entry.received
            guard !middlewares.isEmpty, received != entry.work.reported, let context = entry.context else { continue }
            let count = ByteCount(
                received: received, previousReceived: entry.work.reported, expected: entry.record.expected)
            entry.work.reported = received
            callbacks.async { for middleware in middlewares { middleware.download(context, didReceive: count) } }
        }
        reportBarrels()
        armReports()
    }

    private func reportBarrels() {
        for listener in observers.barrels { tell(listener) }
    }

    private func tell(_ listener: Observers.BarrelListener) {
        guard var info = try? barrelInfo(listener.name) else { return }
        info.count.previousReceived = listener.last?.count.received ?? 0
        if let last = listener.last, last.count.received == info.count.received, last.states == info.states { return }
        listener.last = info
        callbacks.async { [info, callback = listener.callback] in callback(info) }
    }

    // MARK: Registering

    /// Registers a polled callback and calls it once at once, if the task is known.
    package func observe(_ selector: TaskSelector, _ callback: @escaping @Sendable (DownloadInfo) -> Void) throws
        -> UInt64
    {
        try checkOpen()
        let target = try Observers.Target(selector)
        let listener = Observers.TaskListener(number: observers.number(), callback: callback)
        observers.add(listener, for: target)
        if let entry = try find(selector).first {
            let info = info(entry)
            listener.previous = info.count.received
            callbacks.async { callback(info) }
        }
        armReports()
        return listener.number
    }

    package func observeBarrel(_ name: String, _ callback: @escaping @Sendable (BarrelInfo) -> Void) throws -> UInt64 {
        try checkOpen()
        _ = try barrelInfo(name)
        let listener = Observers.BarrelListener(number: observers.number(), name: name, callback: callback)
        observers.add(listener)
        tell(listener)
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

    /// Calls `body` when that listener is taken away from this side; at once when it has been already.
    package func onEnd(of number: UInt64, _ body: @escaping @Sendable () -> Void) {
        if observers.contains(number) { observers.addFinish(number, body) } else { body() }
    }

    package func stopObserving(_ number: UInt64) { observers.remove(number) }

    /// Ends sequences whose task or barrel is gone, behind the last news that are on their way to them.
    func endListeners(_ ends: [@Sendable () -> Void]) {
        guard !ends.isEmpty else { return }
        callbacks.async { ends.forEach { $0() } }
    }

    package func stopObserving(_ selector: TaskSelector) {
        switch selector {
        case .url(let text):
            if let url = try? URLNormalizer.normalize(text) { endListeners(observers.removeAll(.url(url))) }
        case .id(let id): endListeners(observers.removeAll(.id(id)))
        case .barrel(let name): endListeners(observers.removeBarrel(name))
        case .all: break
        }
    }

    // MARK: Waiting

    /// Returns once the task is suspended, cancelled, in error, complete or gone; at once for one that nobody asked this
    /// engine to run (`Scope.chosen`).
    package func waitUntilSettled(_ id: TaskID) async { await waitUntilSettled([id]) }

    /// The same for all of many tasks: one wait, however many there are.
    package func waitUntilSettled(_ ids: [TaskID]) async {
        while !isClosing {
            // One that was settled may have been queued again while others were waited for.
            let open = ids.filter { id in
                if isParked(id) { return true }
                guard !isRetired(id), let entry = try? find(id) else { return false }
                return !entry.record.state.isSettled && (entry.isAdmitted || scope == .all)
            }
            guard !open.isEmpty else { return }
            await withCheckedContinuation { observers.waitForSettling(of: open, $0) }
        }
    }

    /// Returns once no admitted task can run any more: all are complete, in error, suspended or cancelled.
    package func waitUntilDrained() async {
        guard openCount > 0, !isClosing else { return }
        await withCheckedContinuation { observers.waitForDrain($0) }
    }

    // MARK: Mailbox

    /// Carries out what other processes have asked for since the last look.
    func readMailbox() {
        guard mailbox.hasNews() else { return }
        let messages = mailbox.take()
        guard !messages.isEmpty else { return }
        Task { [weak self] in
            for (id, request) in messages { await self?.handle(id, request) }
        }
    }

    private func handle(_ id: MessageID, _ request: Result<EngineRequest, DownloadError>) async {
        // What a closing engine has not done is left for the next one.
        guard !isClosing else { return }
        let reply: EngineReply
        switch request {
        case .success(let request): reply = await perform(request)
        case .failure(let error):
            problems.append(error.message)
            reply = .failed(error)
        }
        guard !isClosing else { return }
        do {
            try mailbox.reply(to: id, reply)
            try mailbox.finish(id)
        } catch {
            problems.append("A request of another process could not be answered: \(error)")
        }
    }
}
