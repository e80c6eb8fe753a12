import FKEngine

/// The waits of a session, and what ends them.
struct SessionWaits {
    /// A wait for an action of another method of the actor.
    struct Wakeup {
        private var waiter: CheckedContinuation<Void, Never>?

        mutating func hold(_ continuation: CheckedContinuation<Void, Never>) { waiter = continuation }

        mutating func end() {
            waiter?.resume()
            waiter = nil
        }
    }

    /// The most tasks that the engine is asked to wait for, because it holds a set of them.
    static let few = 10_000

    /// For few open targets, or until no task can run.
    var few = Wakeup()
    var hasDrained = false
    /// For a suspended task that counts again, or the stop of the session.
    var continued = Wakeup()

    /// Ends the waits that are over.
    ///
    /// - Parameters:
    ///   - isOver: true if more is left than suspended tasks, or nothing.
    ///   - openCount: the number of tasks that count and are not settled.
    mutating func heard(isOver: Bool, openCount: Int) {
        if isOver { continued.end() }
        if openCount <= Self.few { few.end() }
    }
}

/// Waiting for the goal.
extension RunSession {
    func waitForGoal(_ access: SharedEngine) async {
        // A refused request leaves tasks that may never run.
        if isRefused, access.engine == nil { return }
        var told = 0
        while !isStopped {
            await waitForEnd(access)
            guard waitsForSuspended, !isStopped else { return }
            await hearEnds(access)
            let count = tracker.count(.suspend)
            guard count > 0, !isStopped else { return }
            if count != told { onEvent(.paused(count)) }
            told = count
            if tracker.isSettled {
                await withCheckedContinuation { waits.continued.hold($0) }
                told = 0
            } else {
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    /// Handles the last changes, which arrive a moment after the wait for them has ended.
    private func hearEnds(_ access: SharedEngine) async {
        for _ in 0..<100 where !tracker.isSettled && !isStopped {
            drainBuffered()
            if await settledInfos(access).isEmpty { return }
            try? await Task.sleep(for: .milliseconds(10))
        }
        for info in await settledInfos(access) { changed(info) }
    }

    private func waitForEnd(_ access: SharedEngine) async {
        switch goal {
        case .everything: await access.waitUntilDrained()
        case .tasks, .barrels, .added:
            await waitForFew(access)
            await access.waitUntilSettled(access.engine == nil ? tracker.ids : Array(tracker.openIDs))
        }
    }

    /// Waits for the session's own reports of changes, while the engine of this process runs many targets.
    private func waitForFew(_ access: SharedEngine) async {
        guard access.engine != nil, tracker.openCount > SessionWaits.few else { return }
        let drained = Task {
            await access.waitUntilDrained()
            self.drained()
        }
        if !waits.hasDrained, tracker.openCount > SessionWaits.few {
            await withCheckedContinuation { waits.few.hold($0) }
        }
        drained.cancel()
    }

    private func drained() {
        waits.hasDrained = true
        waits.few.end()
    }
}
