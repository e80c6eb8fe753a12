import FKMiddleware

/// Tasks that rest on disk alone, so that a run over a hundred thousand has in memory what it works on and little else.
///
/// ```text
/// new, waiting in the queue  -> parked  -> its turn, a verb, a question -> in memory, as it was
/// complete, in error         -> retired -> a verb, a question           -> in memory, read anew
/// ```
///
/// Only in an engine that runs chosen tasks, the command line's: an application asks for all of its tasks again and again.
/// Once somebody has asked for all, nothing rests any more.
extension Engine {
    /// So many tasks stay in memory, whatever they do.
    package static let tasksInMemory = 1_000

    private var mayRest: Bool { scope == .chosen && !hasLoadedAll && tasks.count > Self.tasksInMemory }

    /// A new task that found no slot leaves the memory; it stays in the queue and counts as open.
    func park(_ entry: TaskEntry) {
        guard mayRest, entry.isNew, entry.isOpen, entry.attempt == nil, entry.record.state == .idle,
            entry.record.attempts == 0, !entry.isDirty, ready.contains(entry.id)
        else { return }
        dropFromMemory(entry)
    }

    /// A task that is complete or has failed leaves the memory.
    func retire(_ entry: TaskEntry) {
        guard mayRest, entry.attempt == nil, entry.record.state == .complete || entry.record.state == .error,
            !entry.awaitsProof, !entry.isDirty, !entry.isRecovered, !entry.isOpen, entry.workIfAny == nil,
            tasks[entry.id] === entry
        else { return }
        retired.insert(entry.id)
        taskLimiters[entry.id] = nil
        dropFromMemory(entry)
    }

    /// Brings a resting task back as it was; nil when it does not rest or its info file cannot be read.
    func unrest(_ id: TaskID) -> TaskEntry? {
        if isParked(id) { return unpark(id, group: ready.group(of: id)) }
        guard retired.remove(id) != nil, let entry = readEntry(id, isNew: false) else { return nil }
        entry.isAdmitted = true
        entry.accounted = entry.account
        remember(entry)
        return entry
    }

    /// Brings a waiting task back, also one that has just been taken out of the queue.
    ///
    /// - Parameters:
    ///   - group: of which it is queued.
    ///   - startsNow: its info file stays open for the record that a small file has at its end: opening it twice
    ///     is a twentieth of a small file's time.
    func unpark(_ id: TaskID, group: Int32, startsNow: Bool = false) -> TaskEntry? {
        let info = startsNow ? OpenInfoFile() : nil
        guard let entry = readEntry(id, isNew: true, open: info) else {
            // Reported already: it will never run.
            ready.remove(id)
            groups.count(group, open: -1)
            countOpen(-1)
            observers.settled(id)
            return nil
        }
        if let info { entry.work.openInfo = info }
        entry.isAdmitted = true
        entry.isOpen = true
        entry.group = group
        entry.accounted = entry.account
        remember(entry)
        return entry
    }

    /// True for a waiting task without looking at the disk: nothing else is queued without being in memory.
    func isParked(_ id: TaskID) -> Bool { tasks[id] == nil && ready.contains(id) }

    /// True for a finished task without looking at the disk.
    func isRetired(_ id: TaskID) -> Bool { retired.contains(id) }
}
