import FKMiddleware

/// When a sequence ends: behind the last value there is, also where there was never one.
extension Reporter {
    /// Ends sequences behind the last values that are on their way to them.
    func endListeners(_ ends: [@Sendable () -> Void]) {
        guard !ends.isEmpty else { return }
        callbacks.async { ends.forEach { $0() } }
    }

    /// A task has settled: ends the sequences that wait for nothing else.
    func endSequences(of entry: TaskEntry) {
        for target in [Observers.Target.id(entry.id), .url(entry.record.task.url)] {
            endInfoSequences(target)
            endAttemptSequences(target)
        }
        endBarrelSequences(of: entry)
    }

    /// One that is being stopped or trashed counts as it is when that has ended.
    func endBarrelSequences(of entry: TaskEntry) {
        guard entry.run == nil, entry.isThere else { return }
        for name in entry.record.barrels { endBarrelSequences(name) }
    }

    /// Sequences of infos end when every task they follow is complete, in error, cancelled or gone.
    func endInfoSequences(_ target: Observers.Target) {
        guard observers.hasInfoSequences(target), followed(target).allSatisfy(\.isOver) else { return }
        endListeners(observers.endInfoSequences(target))
    }

    /// The same for sequences of attempts, while none runs.
    ///
    /// - Parameter entry: the task whose last attempt for now has just been told of; a suspended one ends them then, too.
    func endAttemptSequences(_ target: Observers.Target, behindAttemptOf entry: TaskEntry? = nil) {
        guard observers.hasAttemptSequences(target) else { return }
        let isOver = followed(target).allSatisfy { other in
            if other === entry { return true }
            guard other.run == nil else { return false }
            return other.isOver || entry != nil && other.record.state == .suspend
        }
        if isOver { endListeners(observers.endAttemptSequences(target)) }
    }

    private func followed(_ target: Observers.Target) -> [TaskEntry] {
        switch target {
        case .id(let id): (try? book.find(id)).map { [$0] } ?? []
        case .url(let url): (try? book.find(.url(url))) ?? []
        }
    }

    /// Members that are about to leave: the last sum is the one without them.
    private func isTrashing(membersOf name: String) -> Bool {
        schedule.running.values.contains { !$0.isThere && $0.record.barrels.containsExactly(name) }
    }

    /// Sequences of a barrel's sums end when no member can run any more, with the sum as it is then.
    func endBarrelSequences(_ name: String) {
        guard observers.hasSequences(ofBarrel: name), !isTrashing(membersOf: name), let info = try? barrelInfo(name),
            info.isOver
        else { return }
        for listener in observers.barrels where listener.name.isExactly(name) { tell(listener, info) }
        endListeners(observers.endSequences(ofBarrel: name))
    }
}

extension TaskEntry {
    /// It runs no more unless somebody has it queued again.
    fileprivate var isOver: Bool {
        switch record.state {
        case .complete, .error, .cancel, .unknown: true
        case .prepare, .idle, .action, .suspend: false
        }
    }
}

extension BarrelInfo {
    fileprivate var isOver: Bool { states.allSatisfy { $0.key.isSettled || $0.value == 0 } }
}
