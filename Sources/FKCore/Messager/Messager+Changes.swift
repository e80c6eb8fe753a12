import FKEngine
import FKMiddleware

extension Messager {
    /// Registers a callback for every change of state of every task of the work path, whichever process runs it, as
    /// `addInfo`. A new task is a change. A task that was forgotten has the state `.unknown`. Progress is no change:
    /// ask `running()` for it.
    ///
    /// - Parameters:
    ///   - missed: called when changes of any task may have been missed, for example after another process has taken
    ///     over: query all tasks again. It runs on the library's serial queue, like `callback`.
    ///   - callback: receives the task as it is after the change.
    public func addChanges(
        missed: @escaping @Sendable () -> Void = {}, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async -> Registration {
        let target = CallbackTarget(queue: nil, callbacks: engine.callbacks)
        let whenMissed = target.calling { (_: Void) in missed() }
        let number = await engine.observeStates(missed: { whenMissed(()) }, target.calling(callback))
        return Registration(number, target.calls, at: engine)
    }

    /// Returns when the callbacks of all changes up to now have run on the library's serial queue.
    package func waitForReports() async { await engine.callbacks.drained() }
}
