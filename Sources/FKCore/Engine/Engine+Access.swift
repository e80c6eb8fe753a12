import FKMiddleware

/// The engine of this process, as the components use it. Most of `EngineAccess` is in the engine's other files.
extension Engine: EngineAccess {
    package nonisolated var identity: ObjectIdentifier { inbox.engine }
    /// Gives programs of the download stage one more second if the process has to end soon. Then they are killed, and the
    /// changes that they have not received are dropped.
    package nonisolated func hurry() { chains.hurryPrograms() }

    /// The configuration in force.
    package var currentConfigure: Configure { schedule.configure }

    /// Returns problems with reading or repair since the last call, at most 1,000 texts.
    package func takeProblems() -> [DownloadError] { problems.drain() }

    package func recordUnknown(_ url: String) { problems.recordUnknown(url) }

    package func recordProblem(_ error: DownloadError) { problems.append(error) }

    package nonisolated var isClosed: Bool { hasClosed.withLock { $0 } }

    package nonisolated func start() { executor.run { [self] in assumeIsolated { $0.activate() } } }

    package var startsTasks: Bool { schedule.isActive || ownership.isClosing }

    package var owner: EngineOwner { ownership.mayWrite ? .thisDownloader : .nobody }

    /// The owner of an engine's work path does not change before it closes.
    package func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) -> UInt64 {
        guard !isClosed else {
            end?()
            return 0
        }
        callback(owner)
        let number = reporter.observers.number()
        reporter.observers.addOwner(number, end: end, callback)
        return number
    }
}
