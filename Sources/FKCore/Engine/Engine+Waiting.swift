import FKMiddleware

/// Callers that wait. A wait also ends when the waiting Swift task is cancelled, and when the engine closes.
extension Engine {
    /// Returns once the task is suspended, cancelled, in error, complete or gone; at once for one that nobody asked this
    /// engine to run (`Scope.chosen`).
    package func waitUntilSettled(_ id: TaskID) async { await waitUntilSettled([id]) }

    /// The same for all of many tasks: one wait, however many there are.
    package func waitUntilSettled(_ ids: [TaskID]) async {
        while !isClosing, !Task.isCancelled {
            // One that was settled may have been queued again while others were waited for.
            let open = ids.filter { id in
                if isParked(id) { return true }
                guard !isRetired(id), let entry = try? find(id) else { return false }
                return !entry.record.state.isSettled && (entry.isAdmitted || scope == .all)
            }
            guard !open.isEmpty else { return }
            await wait(for: open)
        }
    }

    /// Returns once no admitted task can run any more: all are complete, in error, suspended or cancelled.
    package func waitUntilDrained() async {
        guard openCount > 0, !isClosing, !Task.isCancelled else { return }
        await wait(for: nil)
    }

    private func wait(for ids: [TaskID]?) async {
        let number = observers.number()
        await withTaskCancellationHandler {
            await withCheckedContinuation { observers.wait(for: ids, number, $0) }
        } onCancel: {
            // Behind the job that registers the wait, however early the cancellation comes.
            executor.run { [weak self] in self?.assumeIsolated { $0.observers.endWait(number) } }
        }
    }
}
