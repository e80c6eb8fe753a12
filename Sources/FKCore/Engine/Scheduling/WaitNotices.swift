import FKMiddleware

/// Writes the reasons for waiting and the speeds. Other processes show them, and the next engine honours the pauses. Confined to
/// the engine.
final class WaitNotices {
    private let workPath: WorkPath
    private let schedule: Schedule
    private let ownership: Ownership
    /// True if every task may run.
    private let runsAll: Bool
    /// What was last written.
    private var last: WaitNotice

    /// Restores the pauses that an earlier engine has written.
    init(_ workPath: WorkPath, _ schedule: Schedule, _ ownership: Ownership, runsAll: Bool) {
        self.workPath = workPath
        self.schedule = schedule
        self.ownership = ownership
        self.runsAll = runsAll
        last = workPath.waitNotice
        schedule.hosts.restorePauses(
            last, at: schedule.clock, atMost: schedule.configure.retry.maxRetryAfterSeconds)
    }

    /// Writes them if they have changed.
    func write() {
        guard ownership.mayWrite else { return }
        var notice = schedule.notice(isClosing: ownership.isClosing)
        if !ownership.isClosing { notice.rates = rates }
        if !runsAll, notice.slots != nil || !notice.hosts.isEmpty { notice.queued = schedule.queued }
        guard notice != last else { return }
        last = notice
        // Only other processes read this file, so a full disk must not stop downloads.
        try? notice.write(in: workPath)
    }

    /// The speeds of the running tasks to which bytes arrive; nil if there are none.
    private var rates: [String: Int64]? {
        var rates: [String: Int64] = [:]
        for entry in schedule.running.values {
            if let rate = entry.run?.movingRate { rates[entry.id.hex] = rate }
        }
        return rates.isEmpty ? nil : rates
    }
}
