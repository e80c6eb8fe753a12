import FKCore
import FKEngine
import FKMiddleware

extension Control {
    /// Queues cancelled and failed tasks again: FKDownloader's `actionRequest`, and nearly `retry(_:)`.
    ///
    /// - Throws: same as every verb.
    @discardableResult
    public func action(_ selector: some TaskSelecting) async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.verb(.action, selector.selector))
    }

    /// Suspends every task of the work path.
    ///
    /// - Throws: same as every verb.
    @discardableResult
    public func suspendAll() async throws(DownloadError) -> [VerbResult] { try await suspend(.all) }

    /// Resumes suspended tasks, and queues cancelled and failed ones again.
    ///
    /// - Returns: the results of the changed tasks.
    /// - Throws: same as every verb.
    @discardableResult
    public func resumeAll() async throws(DownloadError) -> [VerbResult] {
        try await engine.perform(.resumeAll).filter(\.applied)
    }

    /// Cancels every task of the work path that is not complete.
    ///
    /// - Throws: same as every verb.
    @discardableResult
    public func cancelAll() async throws(DownloadError) -> [VerbResult] { try await cancel(.all) }
}
