/// Progress, success and failure of each attempt (ZFRetryDownloader).
extension Messager {
    /// Registers a callback for the attempts of a task. The task need not exist yet; an attempt that runs already is heard
    /// of from its next report on. `removeInfo` ends it.
    ///
    /// - Throws: as `addInfo`.
    @discardableResult
    public func addAttempts(
        _ selector: TaskSelector, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws -> Registration {
        Registration(number: try await engine.observeAttempts(selector, callback))
    }

    /// The same as an asynchronous sequence of the attempts of a known task. A slow reader misses nothing.
    ///
    /// The sequence ends behind a success, behind a failure that no attempt follows, and behind an attempt that was stopped;
    /// for a URL with several tasks, when none of them runs or is queued either. It ends at once where there is no such task,
    /// where it is complete, in error or cancelled already, and where `addAttempts` would throw.
    public func attempts(_ selector: TaskSelector) -> AsyncStream<AttemptInfo> {
        sequence(.all) { engine, yield, end in try await engine.observeAttempts(selector, end: end, yield) }
    }
}
