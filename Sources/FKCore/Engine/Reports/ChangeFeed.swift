import FKMiddleware

/// Where the listeners of a downloader get their values: the engine of this process (`Reporter`), or the journal and the info files
/// of another process (`Follower`). Both tell the same `Observers`, so at a takeover only the feed changes.
package protocol ChangeFeed: RecordSource {
    var observers: Observers { get }
    /// Begins to report the tasks of a target.
    ///
    /// - Returns: the first of them; nil if there is none.
    func follow(_ target: Observers.Target) throws -> DownloadInfo?
    /// Begins to report a barrel, and returns its present sum.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    func follow(barrel name: String) throws -> BarrelInfo
    /// Begins to report when no task can run any more.
    func followQueue()
    /// Ends the sequences of infos whose tasks are all over.
    func endInfoSequences(_ target: Observers.Target)
    /// Ends the sequences of attempts whose tasks are all over, if no attempt runs.
    func endAttemptSequences(_ target: Observers.Target)
    /// Ends the sequences of a barrel's sums if no member can run any more.
    func endBarrelSequences(_ name: String)
    /// Called after listeners came or went.
    func listenersChanged()
}

/// Listeners come and go.
extension ChangeFeed {
    package func followQueue() {}

    /// Registers a listener. If the task is known, it is also called immediately.
    ///
    /// - Parameter end: for a sequence; called once after the last info, when the task is gone or can no longer run.
    /// - Throws: `.invalidArgument` if the selector names several tasks.
    package func observe(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) throws -> UInt64 {
        let target = try Observers.Target(selector)
        let listener = Observers.TaskListener(number: observers.number(), callback: callback)
        let info = try follow(target)
        observers.add(listener, for: target, end: end)
        if let info { listener.tell(info) }
        endInfoSequences(target)
        listenersChanged()
        return listener.number
    }

    /// - Parameter end: for a sequence; called once after the last sum, when no member can run any more.
    /// - Throws: `.notFound` if there is no such barrel.
    package func observeBarrel(
        _ name: String, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (BarrelInfo) -> Void
    ) throws -> UInt64 {
        let info = try follow(barrel: name)
        let listener = Observers.BarrelListener(number: observers.number(), name: name, callback: callback)
        observers.add(listener, end: end)
        listener.tell(info)
        if info.isOver { endBarrelSequences(name) }
        listenersChanged()
        return listener.number
    }

    /// - Parameter end: for a sequence; called once after the last info, when no attempt runs and none follows.
    package func observeAttempts(
        _ selector: TaskSelector, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (AttemptInfo) -> Void
    ) throws -> UInt64 {
        let target = try Observers.Target(selector)
        // The target is followed; an attempt has no present value to report.
        let known = try? follow(target)
        let listener = Observers.AttemptListener(
            number: observers.number(), target: target, isAwaiting: known == nil, callback: callback)
        observers.add(listener, end: end)
        endAttemptSequences(target)
        listenersChanged()
        return listener.number
    }

    /// Registers a listener for each time the last open task has settled.
    package func observeDrained(_ callback: @escaping @Sendable () -> Void) -> UInt64 {
        let number = observers.number()
        observers.addDrained(number, callback)
        followQueue()
        return number
    }

    /// Registers a listener for what is deleted to make room for downloads.
    package func observeTrims(_ callback: @escaping @Sendable (TrimmedFiles) -> Void) -> UInt64 {
        let number = observers.number()
        observers.addTrims(number, callback)
        return number
    }

    /// Removes the listener with this number. Unknown numbers are ignored.
    package func stopObserving(_ number: UInt64) {
        observers.remove(number)
        listenersChanged()
    }

    /// Removes all listeners of a URL, a task or a barrel. Other selectors have no effect.
    package func stopObserving(_ selector: TaskSelector) {
        if case .barrel(let name) = selector.kind {
            observers.removeBarrel(name)
        } else if let target = try? Observers.Target(selector) {
            observers.removeAll(target)
        }
        listenersChanged()
    }
}
