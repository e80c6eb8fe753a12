import FKMiddleware

/// Ends sequences: after their last value, or immediately if there was none.
extension Reporter: ChangeFeed {
    func follow(_ target: Observers.Target) throws -> DownloadInfo? {
        try book.find(target.selector).first(where: \.isThere).map { info($0) }
    }

    func follow(barrel name: String) throws -> BarrelInfo { try barrelInfo(name) }

    func listenersChanged() { armReports() }

    /// Continues with the listeners of a process that has taken over: tells them the present values, and ends the sequences
    /// that are over.
    func adoptListeners() {
        for (target, listeners) in observers.tasks {
            if let info = try? follow(target) { listeners.forEach { $0.tell(info) } }
            endInfoSequences(target)
        }
        for target in Set(observers.attempts.map(\.target)) { endAttemptSequences(target) }
        for listener in observers.barrels {
            guard let info = try? follow(barrel: listener.name) else {
                observers.removeBarrel(listener.name)
                continue
            }
            listener.tell(info)
            endBarrelSequences(listener.name)
        }
        armReports()
    }

    /// Ends the sequences that wait only for this settled task.
    func endSequences(of entry: TaskEntry) {
        for target in [Observers.Target.id(entry.id), .url(entry.record.task.url)] {
            endInfoSequences(target)
            endAttemptSequences(target, behindAttemptOf: nil)
        }
        endBarrelSequences(of: entry)
    }

    /// A task that is being stopped or trashed is judged when that has ended.
    func endBarrelSequences(of entry: TaskEntry) {
        guard entry.run == nil, entry.isThere else { return }
        for name in entry.record.barrels { endBarrelSequences(name) }
    }

    /// Ends sequences of infos if every task they follow is complete, in error, cancelled or gone.
    func endInfoSequences(_ target: Observers.Target) {
        guard observers.hasInfoSequences(target), followed(target).allSatisfy(\.record.state.isOver) else { return }
        observers.endInfoSequences(target)
    }

    func endAttemptSequences(_ target: Observers.Target) {
        endAttemptSequences(target, behindAttemptOf: nil, keepsAwaiting: followed(target).isEmpty)
    }

    /// Ends sequences of attempts under the same condition, if no attempt runs.
    ///
    /// - Parameters:
    ///   - entry: the task whose last attempt was just reported.
    ///   - keepsAwaiting: true keeps the sequences that wait for a task; the default is false: there was one.
    func endAttemptSequences(
        _ target: Observers.Target, behindAttemptOf entry: TaskEntry?, keepsAwaiting: Bool = false
    ) {
        guard observers.hasAttemptSequences(target),
            followed(target).allSatisfy({ ($0 === entry || $0.run == nil) && $0.record.state.isOver })
        else { return }
        observers.endAttemptSequences(target, keepsAwaiting: keepsAwaiting)
    }

    private func followed(_ target: Observers.Target) -> [TaskEntry] {
        switch target {
        case .id(let id): (try? book.find(id)).map { [$0] } ?? []
        case .url(let url): (try? book.find(.url(url))) ?? []
        }
    }

    /// True while members are being trashed. The last sum is the one without them.
    private func isTrashing(membersOf name: String) -> Bool {
        schedule.running.values.contains { !$0.isThere && $0.record.barrels.containsExactly(name) }
    }

    /// Ends sequences of a barrel's sums if no member can run any more, with the sum at that time.
    func endBarrelSequences(_ name: String) {
        guard observers.hasSequences(ofBarrel: name), !isTrashing(membersOf: name), let info = try? barrelInfo(name),
            info.isOver
        else { return }
        observers.tell(info)
        observers.endSequences(ofBarrel: name)
    }
}

extension BarrelInfo {
    /// True if no member runs again unless it is queued again.
    package var isOver: Bool { states.allSatisfy { $0.key.isOver || $0.value == 0 } }
}
