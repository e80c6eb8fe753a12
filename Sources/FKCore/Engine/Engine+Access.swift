import FKMiddleware

/// The engine of this process, as the components use it. Most of `EngineAccess` is in the engine's other files.
extension Engine: EngineAccess {
    nonisolated var identity: ObjectIdentifier { inbox.engine }
    nonisolated var isClosed: Bool { hasClosed.withLock { $0 } }

    nonisolated func start() { executor.run { [self] in assumeIsolated { $0.activate() } } }

    var startsTasks: Bool { schedule.isActive || tenure.isClosing }

    var owner: EngineOwner { tenure.mayWrite ? .thisDownloader : .nobody }

    /// The owner of an engine's work path does not change before it closes.
    func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) -> UInt64 {
        let owner = owner
        callback(owner)
        return reporter.observers.addSilent(end)
    }
}
