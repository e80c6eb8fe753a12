import FKEngine
import FKMiddleware

/// Listeners and waits: `Observers` holds them, and the engine of this process or the follower of another one tells them.
extension SharedEngine {
    func listen(_ register: @Sendable (any ChangeFeed) throws -> UInt64) async throws -> UInt64 {
        try checkOpen()
        if let engine { return try await engine.listen(register) }
        let number = try register(follower)
        follow()
        await announcement?.value
        return number
    }

    /// - Parameter missed: called where changes of any task may have been missed. `fk` compares the tasks itself, so this
    ///   does not wait for the owner.
    func observeStates(
        missed: @escaping @Sendable () -> Void, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) -> UInt64 {
        guard !isClosed else { return 0 }
        let number = observers.number()
        observers.addStates(number, missed: missed, callback)
        follow()
        return number
    }

    func observeOwner(
        end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) -> UInt64 {
        guard !isClosed else {
            end?()
            return 0
        }
        let number = observers.number()
        observers.addOwner(number, end: end, callback)
        follow()
        let owner = owner
        lastOwner = lastOwner ?? owner
        callback(owner)
        return number
    }

    func stopObserving(_ number: UInt64) { follower.stopObserving(number) }

    func stopObserving(_ selector: TaskSelector) async {
        if let engine { return await engine.stopObserving(selector) }
        follower.stopObserving(selector)
    }

    // MARK: Waiting

    func waitUntilSettled(_ id: TaskID) async { await waitUntilSettled([id]) }

    func waitUntilSettled(_ ids: [TaskID]) async {
        while !isClosed, !Task.isCancelled {
            await settled()
            if let engine { return await engine.waitUntilSettled(ids) }
            let open = follower.unsettled(ids)
            guard !open.isEmpty else { return }
            await wait(for: open)
        }
    }

    func waitUntilDrained() async {
        while !isClosed, !Task.isCancelled {
            await settled()
            if let engine { return await engine.waitUntilDrained() }
            if let open = try? follower.openIDs(), open.isEmpty { return }
            await wait(for: nil)
        }
    }

    private func wait(for ids: [TaskID]?) async {
        follow()
        let number = observers.number()
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The engine may have come, or the caller may have gone, since it asked.
                if taking != nil || engine != nil || isClosed || Task.isCancelled { return continuation.resume() }
                follower.wait(for: ids, number, continuation)
            }
        } onCancel: {
            Task { await self.endWait(number) }
        }
    }

    private func endWait(_ number: UInt64) { follower.endWait(number) }
}
