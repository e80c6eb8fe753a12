import FKMiddleware
import Foundation

/// Performs requests on tasks: adding, verbs, barrels. States change at once; the ends of runs are waited for afterwards.
/// Confined to the engine.
package final class TaskControl {
    package let book: TaskBook
    let reporter: Reporter
    let limits: RateLimits
    private let sync: SyncService
    /// Creates info files and compares finished files.
    let diskWork: DispatchQueue
    /// The engine whose middlewares are called (`MiddlewareCall`).
    private let engine: ObjectIdentifier
    /// True if every task may run; false if only added or chosen ones may.
    let runsAll: Bool

    package var barrels: Barrels { book.barrels }
    var schedule: Schedule { reporter.schedule }
    var ownership: Ownership { book.ownership }
    package var clock: any EngineClock { reporter.clock }

    init(
        _ reporter: Reporter, limits: RateLimits, sync: SyncService, diskWork: DispatchQueue, engine: ObjectIdentifier,
        runsAll: Bool
    ) {
        book = reporter.book
        self.reporter = reporter
        self.limits = limits
        self.sync = sync
        self.diskWork = diskWork
        self.engine = engine
        self.runsAll = runsAll
    }

    /// True if the caller is a middleware that a run waits for. It must not wait for that run.
    var isInChain: Bool { MiddlewareCall.isInside(engine, .chain) }

    /// Adds to the history that a program of the download stage has received a change of state, or why it has not.
    func recordProgram(_ name: String, _ id: TaskID, _ state: DownloadState, _ error: DownloadError?) {
        guard !ownership.isClosed, let entry = try? book.find(id) else { return }
        entry.recordDecision(of: name, error?.message ?? HistoryLine.told + state.rawValue, at: clock.date)
        if let error { book.problems.append(error) }
        book.write(entry)
    }

    // MARK: The queue

    /// Lets the selected tasks start in this engine.
    ///
    /// - Parameter group: the group for tasks that could not run before; the default is none.
    /// - Returns: a note with the number of tasks.
    package func admit(_ selector: TaskSelector, group: Int32? = nil) throws -> String {
        var count = 0
        var waiting = 0
        func letRun(_ id: TaskID) throws {
            guard let entry = try book.find(id) else { return }
            if let group, !entry.isAdmitted { join(entry, group: group) }
            admit(entry)
            count += 1
            if entry.record.state == .idle || entry.record.state == .action { waiting += 1 }
            book.unload(id)
        }
        if case .barrel(let name) = selector.kind, ownership.mayWrite {
            // The ids of a million members take 32 MB.
            let places = try barrels.open(name, creating: false).placeCount
            for place in 0..<places {
                if let id = barrels.book[name]?.id(at: place) { try letRun(id) }
            }
        } else {
            for id in try book.ids(selector) { try letRun(id) }
        }
        return "\(waiting) of \(count.plural("task")) can run"
    }

    /// Takes a task that was just read from the disk and recovered.
    ///
    /// - Parameter isFinished: true if its file had the final name, but its record did not say so.
    func loaded(_ entry: TaskEntry, isFinished: Bool) {
        if isFinished { sync.add(entry) }
        if runsAll { admit(entry) } else { reporter.account(entry) }
    }

    /// Lets a task start in this engine.
    package func admit(_ entry: TaskEntry) {
        schedule.admit(entry, host: host(of: entry))
        reporter.account(entry)
    }

    private func enqueue(_ entry: TaskEntry) { schedule.enqueue(entry, host: host(of: entry)) }

    /// The host of the next URL. All tasks of a host share one text.
    private func host(of entry: TaskEntry) -> String { book.site(of: entry.nextURL) }

    /// Queues a task with a fresh count of attempts.
    package func queue(_ entry: TaskEntry, mayRun: Bool = true) {
        entry.freshen()
        entry.record.reopen()
        schedule.alarms.wakes.remove(entry.id)
        entry.admit(mayRun)
        reporter.change(entry, to: .idle)
        if mayRun { enqueue(entry) }
        book.write(entry)
    }

    /// Gives an idle task a new place in the queue. It no longer waits for a retry.
    package func requeue(_ entry: TaskEntry) {
        entry.freshen()
        schedule.alarms.wakes.remove(entry.id)
        schedule.alarms.expiries.remove(entry.id)
        if entry.isAdmitted { enqueue(entry) }
        book.write(entry)
    }

    /// Forgets all received bytes.
    package func dropBytes(of entry: TaskEntry) {
        entry.dropBytes()
        reporter.account(entry)
    }

    /// Moves a task into the group of a command, whose limits then apply.
    package func join(_ entry: TaskEntry, group: Int32?) {
        if let group, schedule.join(entry, group: group) { limits.apply(to: entry) }
    }

    // MARK: Comparisons of finished files

    /// Ends a comparison, or the wait for it. The file and the record do not change.
    ///
    /// - Returns: false if there was none.
    func endProof(of entry: TaskEntry) -> Bool {
        guard entry.awaitsProof, entry.record.state != .complete,
            entry.run != nil || schedule.isActive && entry.isAdmitted
        else { return false }
        schedule.withdraw(entry.id)
        entry.admit(false)
        reporter.change(entry, to: .complete)
        reporter.account(entry)
        entry.taskRun?.signalStop(.keepingBytes)
        return true
    }

    /// Queues a comparison that was ended or was not possible, because the task is requested again.
    func demandProofAgain(of entry: TaskEntry) {
        guard entry.awaitsProof, entry.record.state == .complete, entry.run == nil else { return }
        entry.admit(false)
        reporter.change(entry, to: .idle)
    }

    /// Forgets a finished file that is missing, because the task is requested again. There is nothing to compare. A run that
    /// has begun the comparison fetches the file.
    func forgetMissing(_ entry: TaskEntry) {
        guard entry.awaitsProof, let path = entry.record.path, FileClaim.Found(path) == nil else { return }
        guard entry.run == nil else { return entry.isMissed = true }
        entry.forgetFile()
        reporter.account(entry)
        book.write(entry)
    }
}
