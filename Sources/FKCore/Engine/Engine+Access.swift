import FKMiddleware

/// The engine of this process, as the components use it. Most of `EngineAccess` is in the engine's other files.
extension Engine: EngineAccess {
    package nonisolated var identity: ObjectIdentifier { inbox.engine }
    package nonisolated var isClosed: Bool { hasClosed.withLock { $0 } }

    package nonisolated func start() { executor.run { [self] in assumeIsolated { $0.activate() } } }

    package var startsTasks: Bool { schedule.isActive || ownership.isClosing }

    package var owner: EngineOwner { ownership.mayWrite ? .thisDownloader : .nobody }

    /// The owner of an engine's work path does not change before it closes.
    package func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) -> UInt64 {
        let owner = owner
        callback(owner)
        let number = reporter.observers.number()
        reporter.observers.addOwner(number, end: end, callback)
        return number
    }
}
