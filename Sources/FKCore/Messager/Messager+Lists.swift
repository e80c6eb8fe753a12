/// Lists of the waiting and the running tasks (KADownloadManager).
extension Messager {
    /// The queued tasks in their start order: by priority, then first in first out or last in first out
    /// (`Configure.order`). Tasks of hosts that cannot be used at the moment come after the others. Tasks waiting for
    /// a retry come last, by due time.
    public func waiting() async -> [DownloadInfo] { await engine.waitingInfos() }

    /// The running tasks in the order of their start. There are at most `Configure.maxAction`, unless that was
    /// lowered.
    public func running() async -> [DownloadInfo] { await engine.runningInOrder() }
}
