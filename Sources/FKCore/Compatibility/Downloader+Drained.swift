import FKCore
import FKEngine
import FKMiddleware

extension Downloader {
    /// Calls `handler` each time the queue drains, that is, when no queued task is left that can run. It replaces
    /// FKDownloader's background completion handler. It runs on the library's serial queue.
    ///
    /// `waitUntilDrained()` waits for it once.
    public func onQueueDrained(_ handler: @escaping @Sendable () -> Void) async {
        _ = await engine.observeDrained { [callbacks = engine.callbacks] in callbacks.async(handler) }
    }
}
