import FKMiddleware

/// Listeners: at the engine of this process, or at the follower of another one's tasks.
extension SharedEngine {
    private func add(_ listener: SharedListener) async throws -> UInt64 {
        try checkOpen()
        let number = listeners.add(listener)
        do {
            if let engine {
                try await tryRegister(number, at: engine)
            } else {
                try follow(listener, number)
                follow()
                // From now on the listener hears every change.
                if listener.needsChanges { await announcement?.value }
            }
        } catch {
            listeners.remove(number)
            throw error
        }
        return number
    }

    private func follow(_ listener: SharedListener, _ number: UInt64) throws {
        switch listener {
        case .task(let selector, let end, let callback):
            try follower.observe(number, selector, end: end, callback)
        case .attempts(let selector, let end, let callback):
            try follower.observeAttempts(number, selector, end: end, callback)
        case .barrel(let name, let end, let callback):
            try follower.observeBarrel(number, name, end: end, callback)
        case .states(let missed, let callback): follower.observeStates(number, missed: missed, callback)
        case .drained(let callback): follower.observeDrained(number, callback)
        case .owner: break
        }
    }

    /// Registers a listener at the engine of this process. If its barrel or the engine is gone, it ends.
    func register(_ number: UInt64, at engine: Engine) async {
        do {
            try await tryRegister(number, at: engine)
        } catch {
            listeners.remove(number)?.listener.end?()
        }
    }

    private func tryRegister(_ number: UInt64, at engine: Engine) async throws {
        guard let listener = listeners.unregistered(number) else { return }
        let atEngine: UInt64
        switch listener {
        case .task(let selector, let end, let callback):
            atEngine = try await engine.observe(selector, end: end, callback)
        case .attempts(let selector, let end, let callback):
            atEngine = try await engine.observeAttempts(selector, end: end, callback)
        case .barrel(let name, let end, let callback):
            atEngine = try await engine.observeBarrel(name, end: end, callback)
        case .states(let missed, let callback): atEngine = await engine.observeStates(missed: missed, callback)
        case .drained(let callback): atEngine = await engine.observeDrained(callback)
        case .owner: return
        }
        if !listeners.note(number, atEngine: atEngine) { await engine.stopObserving(atEngine) }
    }

    func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws -> UInt64 { try await add(.task(selector, end: end, callback)) }

    func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) async throws -> UInt64 { try await add(.attempts(selector, end: end, callback)) }

    func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) async throws -> UInt64 { try await add(.barrel(name, end: end, callback)) }

    func observeDrained(_ callback: @escaping @Sendable () -> Void) async -> UInt64 {
        (try? await add(.drained(callback))) ?? 0
    }

    /// - Parameter missed: called where changes of any task may have been missed.
    func observeStates(
        missed: @escaping @Sendable () -> Void, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async -> UInt64 { (try? await add(.states(missed: missed, callback))) ?? 0 }

    func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) async -> UInt64 {
        guard let number = try? await add(.owner(end: end, callback)) else {
            end?()
            return 0
        }
        let owner = owner
        lastOwner = lastOwner ?? owner
        callback(owner)
        return number
    }

    func stopObserving(_ number: UInt64) async {
        guard let registration = listeners.remove(number) else { return }
        follower.stopObserving(number)
        if let engine, let atEngine = registration.atEngine { await engine.stopObserving(atEngine) }
    }

    func stopObserving(_ selector: TaskSelector) async {
        listeners.remove(about: selector)
        if let engine { return await engine.stopObserving(selector) }
        follower.stopObserving(selector)
    }
}
