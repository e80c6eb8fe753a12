import FKEngine
import FKMiddleware

/// Lists of the waiting and the running tasks (KADownloadManager).
extension Messager {
    /// The queued tasks in their start order: by priority, then first in first out or last in first out
    /// (`Configure.order`). Tasks of hosts that cannot be used at the moment come after the others. Tasks waiting for
    /// a retry come last, by due time.
    ///
    /// - Throws: `.disk` with the folder's name if another process runs the tasks and its records cannot be listed.
    public func waiting() async throws(DownloadError) -> [DownloadInfo] {
        try await typed { try await engine.snapshot { try $0.waitingInfos() } }
    }

    /// The running tasks in the order of their start. There are at most `Configure.maxAction`, unless that was
    /// lowered.
    ///
    /// - Throws: same as `waiting()`.
    public func running() async throws(DownloadError) -> [DownloadInfo] {
        try await typed { try await engine.snapshot { try $0.runningInOrder() } }
    }
}
