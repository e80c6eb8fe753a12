import FKMiddleware

/// Questions, listeners and waits: answered by the rooms, on the engine's thread.
extension Engine {
    // MARK: Snapshots

    /// The tasks that can still run, in the order of submission.
    package func openIDs() throws -> [TaskID] {
        try book.find(.all).compactMap { $0.record.state.isSettled ? nil : $0.id }
    }

    package func infos(_ ids: some Sequence<TaskID> & Sendable) throws -> [DownloadInfo] {
        try ids.compactMap { try book.find($0) }.filter(\.isThere).map { reporter.info($0) }
    }

    package func infos(_ selector: TaskSelector) throws -> [DownloadInfo] {
        try book.find(selector).filter(\.isThere).map { reporter.info($0) }
    }

    package func record(_ id: TaskID) throws -> TaskRecord? { try book.find(id)?.record }

    func records(_ query: RecordQuery) throws -> RecordPage { try book.records(query) }

    /// The tasks that hold a slot now, in the order in which they were submitted, with fresh speeds.
    package func runningInfos() -> [DownloadInfo] {
        schedule.running.values.sorted { $0.record.number < $1.record.number }.map { reporter.freshInfo($0) }
    }

    /// The tasks that run, in the order in which their attempts began, with fresh speeds.
    package func runningInOrder() -> [DownloadInfo] {
        schedule.running.values.filter { $0.record.state == .action }
            .sorted { ($0.run?.order ?? 0) < ($1.run?.order ?? 0) }
            .map { reporter.freshInfo($0) }
    }

    /// The queued tasks in the order in which they would start now.
    package func waitingInfos() -> [DownloadInfo] {
        schedule.waitingOrder().compactMap { id in (book[id] ?? book.unrest(id)).map { reporter.info($0) } }
    }

    /// Some of the tasks that wait for their next attempt, at most `limit`.
    package func retryingInfos(_ limit: Int) -> [DownloadInfo] {
        schedule.alarms.wakes.first(limit).compactMap { book[$0].map { reporter.info($0) } }
    }

    /// How many tasks are in memory, running and still open.
    package var load: (known: Int, running: Int, open: Int) {
        (book.tasks.count, schedule.running.count, schedule.openCount)
    }

    // MARK: Barrels

    /// The sum of a barrel now.
    package func barrelInfo(_ name: String) throws -> BarrelInfo { try reporter.barrelInfo(name) }

    package func barrelNames() -> [String] { barrels.names }

    /// In the order in which they joined.
    func barrelMembers(_ name: String) throws -> [BarrelMember] { try barrels.members(name) }

    func barrelURLs(_ name: String) throws -> [String] { try barrels.members(name).map(\.url) }

    // MARK: Listeners

    /// Registers a polled callback and calls it once at once, if the task is known.
    ///
    /// - Parameter end: for a sequence: called once, behind the last info, when the task is gone or can run no more.
    package func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) throws -> UInt64 {
        try tenure.checkOpen()
        return try reporter.observe(selector, end: end, callback)
    }

    package func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)? = nil, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) throws -> UInt64 {
        try tenure.checkOpen()
        return try reporter.observeBarrel(name, end: end, callback)
    }

    /// - Parameter end: for a sequence: called once, behind the last info, when no attempt runs or follows.
    func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)? = nil,
        _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) throws -> UInt64 {
        try tenure.checkOpen()
        return try reporter.observeAttempts(selector, end: end, callback)
    }

    /// Every change of state of every task, on the callback queue.
    package func observeStates(_ callback: @escaping @Sendable (DownloadInfo) -> Void) -> UInt64 {
        reporter.observers.addStates(callback)
    }

    /// Called each time the last open task has settled.
    package func observeDrained(_ callback: @escaping @Sendable () -> Void) -> UInt64 {
        reporter.observers.addDrained(callback)
    }

    package func stopObserving(_ number: UInt64) { reporter.observers.remove(number) }

    package func stopObserving(_ selector: TaskSelector) { reporter.stopObserving(selector) }

    // MARK: Waiting

    /// Returns once the task is suspended, cancelled, in error, complete or gone; at once for one that nobody asked this
    /// engine to run (`Scope.chosen`). A wait also ends when the waiting Swift task is cancelled, and when the engine closes.
    package func waitUntilSettled(_ id: TaskID) async { await waitUntilSettled([id]) }

    /// The same for all of many tasks: one wait, however many there are.
    package func waitUntilSettled(_ ids: [TaskID]) async {
        while !tenure.isClosing, !Task.isCancelled {
            // One that was settled may have been queued again while others were waited for.
            let open = ids.filter { id in
                if book.isParked(id) { return true }
                guard !book.isRetired(id), let entry = try? book.find(id) else { return false }
                return !entry.record.state.isSettled && (entry.isAdmitted || scope == .all)
            }
            guard !open.isEmpty else { return }
            await wait(for: open)
        }
    }

    /// Returns once no admitted task can run any more: all are complete, in error, suspended or cancelled.
    package func waitUntilDrained() async {
        guard schedule.openCount > 0, !tenure.isClosing, !Task.isCancelled else { return }
        await wait(for: nil)
    }

    private func wait(for ids: [TaskID]?) async {
        let number = reporter.observers.number()
        await withTaskCancellationHandler {
            await withCheckedContinuation { reporter.observers.wait(for: ids, number, $0) }
        } onCancel: {
            // Behind the job that registers the wait, however early the cancellation comes.
            executor.run { [weak self] in self?.assumeIsolated { $0.reporter.observers.endWait(number) } }
        }
    }
}
