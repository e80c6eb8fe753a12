import FKMiddleware

/// Tasks leave the memory while there are many, and are read back when they are needed.
extension TaskBook {
    /// The number of tasks that stay in memory in an engine of chosen tasks.
    package static let tasksInMemory = 4_096
    /// The number of tasks that stay in memory in an engine of all tasks: an application asks for them again and again.
    static let tasksOfApplications = 20_000

    /// True if tasks are to leave the memory. After a request for all tasks, none does for a while (`unloadIdle`).
    private var isCrowded: Bool { !hasLoadedAll && tasks.count > crowd }

    /// The same for tasks that have ended or may not run.
    private var isCrowdedForEnded: Bool { !hasLoadedAll && tasks.count > endedCrowd }

    /// Removes a task from the memory if it can be: `park` or `retire`.
    package func unload(_ id: TaskID) {
        park(id)
        if let entry = tasks[id] { retire(entry) }
    }

    /// Removes a task from the memory with the next addition. A caller that adds a list again asks about its finished tasks next, and
    /// would read each of them twice.
    func unloadLater(_ id: TaskID) {
        if !resting.recordFound(id, atMost: Self.tasksInMemory) { unload(id) }
    }

    /// Removes the tasks that the last addition has found.
    func unloadFound() {
        for id in resting.drainFound() { unload(id) }
    }

    /// Removes a task that waits for a slot from the memory. It stays in the queue and counts as open.
    func park(_ id: TaskID) {
        guard isCrowded, let entry = tasks[id], entry.isOpen, entry.run == nil, entry.record.state == .idle,
            !entry.awaitsProof, !entry.unsaved.isDirty, !entry.unsaved.isRecovered, schedule.ready.contains(id)
        else { return }
        tasks[entry.id] = nil
    }

    /// Removes a task from the memory that has ended, is suspended, or may not run. One whose record is written again soon
    /// stays longer.
    func retire(_ entry: TaskEntry) {
        guard entry.awaitsSync ? isCrowded : isCrowdedForEnded, entry.run == nil, canRest(entry), !entry.awaitsProof,
            !entry.unsaved.isDirty, !entry.unsaved.isRecovered, !entry.isOpen, tasks[entry.id] === entry
        else { return }
        resting.insert(entry.id, isAdmitted: entry.isAdmitted)
        tasks[entry.id] = nil
    }

    private func canRest(_ entry: TaskEntry) -> Bool {
        switch entry.record.state {
        case .complete, .error: true
        // The limits of its command count again when it is resumed.
        case .suspend, .cancel: entry.group == CommandGroups.none || !schedule.isActive
        case .idle: !entry.isAdmitted
        case .action, .unknown: false
        }
    }

    /// Reads a parked or resting task back into memory; nil for any other task, or if its info file cannot be read.
    func reload(_ id: TaskID) -> TaskEntry? {
        if isParked(id) { return unpark(id, group: schedule.ready.group(of: id)) }
        guard let isAdmitted = resting.remove(id), let entry = read(id) else { return nil }
        entry.admit(isAdmitted)
        entry.accounted = entry.share
        insert(entry)
        return entry
    }

    /// Reads a parked task back into memory. It may just have been taken out of the queue.
    ///
    /// - Parameters:
    ///   - group: its group in the queue.
    ///   - open: keeps the info file open for a task that starts now.
    func unpark(_ id: TaskID, group: Int32, open: OpenInfoFile? = nil) -> TaskEntry? {
        guard let entry = read(id, open: open) else {
            // The problem was reported. The task never runs.
            schedule.ready.remove(id)
            onLost(id, group)
            return nil
        }
        entry.admit()
        entry.isOpen = true
        entry.group = group
        entry.accounted = entry.share
        insert(entry)
        return entry
    }

    /// True for a parked task: no other task is queued without being in memory. It reads no file.
    func isParked(_ id: TaskID) -> Bool { tasks[id] == nil && schedule.ready.contains(id) }

    /// True for a resting task that has ended in this engine, or may not run. It reads no file.
    func isRetired(_ id: TaskID) -> Bool { resting.contains(id) }
}

/// The tasks that are only on disk because they have ended, or may not run. A value type without locks.
struct RestingTasks {
    /// Whether a resting task may run in this engine.
    private struct Kind: PooledValue, Hashable {
        private var value: UInt8
        var isNone: Bool { value == 0 }
        static let admitted = Kind(value: 1)
        static let other = Kind(value: 2)
    }

    private var kinds = PooledMap<Kind>()
    /// The finished tasks that the last addition has found.
    private var found: [TaskID] = []

    func contains(_ id: TaskID) -> Bool { kinds.number(of: id) != nil }

    mutating func insert(_ id: TaskID, isAdmitted: Bool) { kinds.insert(isAdmitted ? .admitted : .other, for: id) }

    /// Removes a task.
    ///
    /// - Returns: true if it may run in this engine; nil if it does not rest.
    mutating func remove(_ id: TaskID) -> Bool? {
        guard let number = kinds.number(of: id), let kind = kinds[number] else { return nil }
        kinds.remove(number)
        return kind == .admitted
    }

    /// Records a task that an addition has found. Returns false if there are too many.
    mutating func recordFound(_ id: TaskID, atMost limit: Int) -> Bool {
        guard found.count < limit else { return false }
        found.append(id)
        return true
    }

    mutating func drainFound() -> [TaskID] {
        defer { found = [] }
        return found
    }
}
