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

    /// The same as an asynchronous sequence. A slow reader misses nothing. The sequence ends behind a success, behind a
    /// failure that no attempt follows, and behind an attempt that was stopped; and at once where `addAttempts` would
    /// throw.
    public func attempts(_ selector: TaskSelector) -> AsyncStream<AttemptInfo> {
        stream(bufferingPolicy: .unbounded) { continuation in
            try await engine.observeAttempts(selector) { info in
                continuation.yield(info)
                switch info.phase {
                case .succeeded, .stopped, .failed(_, next: .gaveUp): continuation.finish()
                case .began, .progressed, .failed: break
                }
            }
        }
    }
}
