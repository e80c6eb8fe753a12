import FKMiddleware
import Foundation

/// Who runs next, and who waits for what.
extension Engine {
    /// Lets waiting tasks start in this engine, and has failed retries go at once.
    ///
    /// - Parameter group: limits for the tasks that nobody had asked this engine to run.
    func admit(_ selector: TaskSelector, group: Int32? = nil) throws -> String {
        let entries = try find(selector)
        for entry in entries {
            if let group, !entry.isAdmitted { join(entry, group: group) }
            admit(entry)
        }
        schedule()
        let waiting = entries.count { $0.record.state == .idle || $0.record.state == .action }
        return "\(waiting) of \(Plural.count(entries.count, "task")) can run"
    }

    func admit(_ entry: TaskEntry) {
        guard !entry.isAdmitted else { return }
        entry.isAdmitted = true
        account(entry)
        if entry.record.state == .idle { enqueue(entry) }
    }

    /// Puts a task into state idle and into the queue.
    func queue(_ entry: TaskEntry, mayRun: Bool = true) {
        alarms.wakes.remove(entry.id)
        entry.record.error = nil
        entry.record.waiting = nil
        entry.record.finished = nil
        entry.isAdmitted = mayRun
        change(entry, to: .idle)
        if mayRun { enqueue(entry) }
    }

    /// An idle task takes its place in the queue anew and waits for no retry.
    func requeue(_ entry: TaskEntry) {
        alarms.wakes.remove(entry.id)
        entry.record.error = nil
        entry.record.waiting = nil
        if entry.isAdmitted { enqueue(entry) }
    }

    /// An idle task waits in the ready queue, or among the wakes while its retry is not due.
    private func enqueue(_ entry: TaskEntry) {
        // A task that is still being stopped comes back here when that has ended.
        guard entry.attempt == nil else { return }
        if let until = entry.record.waiting?.until,
            let due = clock.deadline(
                of: until,
                atMost: RetryRules.longestDelay(
                    after: entry.record.error, attempt: entry.record.attempts, policy: configure.retry,
                    mirrors: entry.record.task.mirrors.count))
        {
            alarms.wakes.push(entry.id, due: due)
            return
        }
        entry.host = texts.shared(HostName.site(entry.nextURL))
        ready.push(readyElement(entry))
    }

    /// A retry has become due.
    func wake(_ id: TaskID) {
        guard let entry = tasks[id], entry.record.state == .idle else { return }
        entry.record.waiting = nil
        enqueue(entry)
    }

    /// The slots of that group, where all of them are taken; nil while one is free.
    func takenSlots(_ group: Int32) -> Int? {
        if running.count >= descriptors.slots { return descriptors.slots }
        if groups.hasSlot(group, shared: configure.maxAction) { return nil }
        return groups.maxAction(of: group) ?? configure.maxAction
    }

    /// Fills the free slots. Called whenever a slot, a host or a task becomes free: nothing waits for a tick.
    func schedule() {
        // A task that fails at once gives its slot back inside `start`: the loop below then goes on, not deeper.
        guard isActive, !isClosing, !isScheduling else { return }
        isScheduling = true
        defer { isScheduling = false }
        let now = clock.now
        var full: [String] = []
        defer { full.forEach { yieldLanes(of: $0) } }
        while running.count < descriptors.slots {
            let next = ready.popNext { host, group in
                guard takenSlots(group) == nil else { return false }
                let obstacle = hosts.obstacle(host, now: now)
                if case .full = obstacle { full.append(host) }
                return obstacle == nil
            }
            guard let next else { break }
            guard let entry = tasks[next.id] ?? unpark(next.id, group: next.group, startsNow: true),
                entry.record.state == .idle, entry.attempt == nil
            else { continue }
            running[entry.id] = entry
            entry.work.permit = hosts.acquire(entry.host, now: now)
            entry.slotGroup = entry.group
            groups.began(entry.group)
            start(entry)
        }
    }

    /// Gives the slot of a task back.
    func releaseSlot(of entry: TaskEntry) {
        guard running.removeValue(forKey: entry.id) != nil else { return }
        groups.ended(entry.slotGroup)
        if let permit = entry.work.permit.take() { hosts.release(permit) }
        // It was queued again while it was being stopped.
        if entry.record.state == .idle, entry.isAdmitted { enqueue(entry) }
        schedule()
    }

    /// Every change of state goes through here: counts, observers and middlewares hear of it once.
    func change(_ entry: TaskEntry, to state: DownloadState) {
        if set(entry, to: state) { stateChanged(entry) }
    }

    /// The same without telling anybody: true when `stateChanged` is due.
    func set(_ entry: TaskEntry, to state: DownloadState) -> Bool {
        guard entry.record.state != state else { return false }
        entry.record.state = state
        entry.isDirty = true
        if state != .action { entry.forgetSpeed() }
        return true
    }
}
