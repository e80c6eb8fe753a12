import FKMiddleware

/// Snapshots, listeners and waits, answered by the engine's components on its thread.
extension Engine {
    /// Reads a snapshot.
    package func snapshot<Value: Sendable, Failure: Error>(
        _ read: @Sendable (any RecordSource) throws(Failure) -> Value
    ) throws(Failure) -> Value { try read(reporter) }

    /// The number of tasks in memory, of running tasks and of open tasks.
    package var taskCounts: (known: Int, running: Int, open: Int) {
        (book.tasks.count, schedule.running.count, schedule.openCount)
    }

    // MARK: Listeners

    /// Continues with the listeners that the engine was made with.
    package func adoptListeners() { reporter.adoptListeners() }

    /// - Throws: `.cancelled` once the engine closes.
    package func listen(_ register: @Sendable (any ChangeFeed) throws -> UInt64) throws -> UInt64 {
        try ownership.checkOpen()
        return try register(reporter)
    }

    /// Registers a listener for every change of state of every task. An engine of this process misses no change.
    package func observeStates(
        missed: @escaping @Sendable () -> Void = {}, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) -> UInt64 {
        let number = reporter.observers.number()
        reporter.observers.addStates(number, missed: missed, callback)
        return number
    }

    /// Removes the listener with this number. Unknown numbers are ignored.
    package func stopObserving(_ number: UInt64) { reporter.stopObserving(number) }

    /// Removes all listeners of a URL, a task or a barrel. `.all` has no effect.
    package func stopObserving(_ selector: TaskSelector) { reporter.stopObserving(selector) }

    // MARK: Waiting

    /// Returns once the task is suspended, cancelled, in error, complete or gone. It returns immediately if nobody
    /// asked this engine to run the task (`Scope.chosen`).
    ///
    /// The wait also ends when the waiting Swift task is cancelled, and when the engine closes.
    package func waitUntilSettled(_ id: TaskID) async { await waitUntilSettled([id]) }

    /// Returns once all these tasks have settled. It is one wait, whatever the number of tasks. Inside a middleware that
    /// one of them waits for, it does not wait for that one.
    package func waitUntilSettled(_ ids: [TaskID]) async {
        let own = MiddlewareCall.ownTask(identity)
        let ids = own.map { own in ids.filter { $0 != own } } ?? ids
        while !ownership.isClosing, !Task.isCancelled {
            // A settled task may have been queued again during the wait for others.
            let open = ids.filter { id in
                if book.isParked(id) { return true }
                guard !book.isRetired(id), let entry = try? book.find(id) else { return false }
                return !entry.record.state.isSettled && (entry.isAdmitted || scope == .all)
            }
            guard !open.isEmpty else { return }
            await wait(for: open)
        }
    }

    /// Returns once no admitted task can run any more: all are complete, in error, suspended or cancelled. Inside a
    /// middleware that a task waits for, it returns at once.
    package func waitUntilDrained() async {
        if MiddlewareCall.isInside(identity, .chain) { return }
        guard schedule.openCount > 0, !ownership.isClosing, !Task.isCancelled else { return }
        await wait(for: nil)
    }

    private func wait(for ids: [TaskID]?) async {
        let number = reporter.observers.number()
        await withTaskCancellationHandler {
            await withCheckedContinuation { reporter.observers.waits.add(ids, number, $0) }
        } onCancel: {
            // This runs after the job that registers the wait, however early the cancellation comes.
            executor.run { [weak self] in self?.assumeIsolated { $0.reporter.observers.waits.end(number) } }
        }
    }
}
