/// Who waits and who runs (KADownloadManager).
extension Messager {
    /// The queued tasks in the order in which they would start now: by priority, then first in first out or last in
    /// first out (`Configure.order`). Tasks of hosts that may not be asked at the moment come behind the others, and tasks
    /// whose next attempt is due later come last, by the time at which it is due.
    public func waiting() async -> [DownloadInfo] { await engine.waitingInfos() }

    /// The running tasks, at most `Configure.maxAction` of them unless that was lowered, in the order in which they
    /// started.
    public func running() async -> [DownloadInfo] { await engine.runningInOrder() }
}
