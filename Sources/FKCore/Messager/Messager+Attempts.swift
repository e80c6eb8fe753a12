import FKMiddleware
import Foundation

/// Reports on the start, progress and end of each attempt (ZFRetryDownloader).
extension Messager {
    /// Registers a callback for the attempts of a task. The task need not exist yet. An attempt that is already
    /// running is reported from its next report on. `removeInfo` removes the callback.
    ///
    /// - Parameter queue: same as for `addInfo`.
    /// - Throws: same as `addInfo`.
    @discardableResult
    public func addAttempts(
        _ selector: TaskSelector, on queue: DispatchQueue? = nil, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws(DownloadError) -> Registration {
        try await register(on: queue) { try await engine.observeAttempts(selector, $0.calling(callback)) }
    }

    /// The attempts of a task as an asynchronous sequence. A slow reader misses nothing.
    ///
    /// The sequence ends after a success, after a failure without a further attempt, and after a stopped attempt. For
    /// a URL with several tasks, it ends when none of them is running or queued either. It ends at once if there is
    /// no such task, if the task is complete, failed or cancelled already, and if `addAttempts` would throw.
    public func attempts(_ selector: TaskSelector) -> AsyncStream<AttemptInfo> {
        sequence(.all) { engine, yield, end in try await engine.observeAttempts(selector, end: end, yield) }
    }
}
