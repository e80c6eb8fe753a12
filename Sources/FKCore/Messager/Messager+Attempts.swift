import FKEngine
import FKMiddleware
import Foundation

/// Reports on the start, progress and end of each attempt (ZFRetryDownloader).
extension Messager {
    /// Registers a callback for the attempts of a task, as `addInfo`. The task need not exist yet. An attempt that is already
    /// running is reported from its next report on.
    ///
    /// - Parameter queue: same as for `addInfo`.
    /// - Throws: same as `addInfo`.
    public func addAttempts(
        _ selector: some TaskSelecting, on queue: DispatchQueue? = nil,
        _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws(DownloadError) -> Registration {
        try await register(on: queue) { try await engine.observeAttempts(selector.selector, $0.calling(callback)) }
    }

    /// The attempts of a task as an asynchronous sequence. A slow reader misses nothing.
    ///
    /// The sequence ends when the task is complete, failed, cancelled or gone, and continues while it is suspended; for a URL
    /// with several tasks, when all of them have ended. If there is no such task yet, it waits for one. It ends at once if
    /// `addAttempts` would throw, as `infos` does. Cancelling the reader ends it.
    public func attempts(_ selector: some TaskSelecting) -> AsyncStream<AttemptInfo> {
        sequence(.all) { engine, yield, end in try await engine.observeAttempts(selector.selector, end: end, yield) }
    }
}
