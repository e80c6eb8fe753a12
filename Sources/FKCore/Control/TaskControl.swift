import FKMiddleware
import Foundation

/// What requests do to tasks: adding, verbs, barrels. The engine hands it a request; states change at once, and what a run
/// needs to end is waited for afterwards. Confined to the engine.
final class TaskControl {
    let room: RunRoom
    /// Every task may run, and not only those that are asked for.
    let runsAll: Bool

    var book: TaskBook { room.book }
    var barrels: Barrels { room.book.barrels }
    var schedule: Schedule { room.schedule }
    var reporter: Reporter { room.reporter }
    var tenure: Tenure { room.book.tenure }
    var clock: any EngineClock { room.schedule.clock }

    init(_ room: RunRoom, runsAll: Bool) {
        self.room = room
        self.runsAll = runsAll
    }

    /// The caller is a middleware that a run waits for: it must not wait for that run.
    var isInChain: Bool { MiddlewareCall.isInside(room.engine, .chain) }

    // MARK: The queue

    /// Lets waiting tasks start in this engine, and has failed retries go at once.
    ///
    /// - Parameter group: limits for the tasks that nobody had asked this engine to run.
    func admit(_ selector: TaskSelector, group: Int32? = nil) throws -> String {
        let entries = try book.find(selector)
        for entry in entries {
            if let group, !entry.isAdmitted { join(entry, group: group) }
            admit(entry)
        }
        let waiting = entries.count { $0.record.state == .idle || $0.record.state == .action }
        return "\(waiting) of \(Plural.count(entries.count, "task")) can run"
    }

    /// A task has just been read from the disk, as its last engine left it.
    ///
    /// - Parameter isFinished: it had its final name, and its record did not say so yet.
    func loaded(_ entry: TaskEntry, isFinished: Bool) {
        if isFinished { room.sync.add(entry) }
        if runsAll { admit(entry) } else { reporter.account(entry) }
    }

    func admit(_ entry: TaskEntry) {
        schedule.admit(entry, host: host(of: entry))
        reporter.account(entry)
    }

    private func enqueue(_ entry: TaskEntry) { schedule.enqueue(entry, host: host(of: entry)) }

    /// One text for all tasks of a host.
    private func host(of entry: TaskEntry) -> String { book.shared(HostName.site(entry.nextURL)) }

    /// Puts a task into state idle and into the queue.
    func queue(_ entry: TaskEntry, mayRun: Bool = true) {
        entry.freshen()
        entry.record.reopen()
        schedule.alarms.wakes.remove(entry.id)
        entry.isAdmitted = mayRun
        reporter.change(entry, to: .idle)
        if mayRun { enqueue(entry) }
        book.write(entry)
    }

    /// An idle task takes its place in the queue anew and waits for no retry.
    func requeue(_ entry: TaskEntry) {
        entry.freshen()
        schedule.alarms.wakes.remove(entry.id)
        if entry.isAdmitted { enqueue(entry) }
        book.write(entry)
    }

    /// Forgets everything that was received.
    func dropBytes(of entry: TaskEntry) {
        entry.dropBytes()
        reporter.account(entry)
    }

    /// The task is that command's from now on, and its limits are the command's.
    func join(_ entry: TaskEntry, group: Int32?) {
        if let group, schedule.join(entry, group: group) { room.limits.apply(to: entry) }
    }

    // MARK: Comparisons of finished files

    /// Ends the comparison soon, or the waiting for it, and nothing else: the file and the record stay as they are.
    ///
    /// - Returns: false when there was none.
    func endProof(of entry: TaskEntry) -> Bool {
        guard entry.awaitsProof, entry.record.state != .complete,
            entry.run != nil || schedule.isActive && entry.isAdmitted
        else { return false }
        schedule.withdraw(entry.id)
        entry.isAdmitted = false
        reporter.change(entry, to: .complete)
        reporter.account(entry)
        entry.run?.signalStop(.keepingBytes)
        return true
    }

    /// Somebody asks again for a task whose comparison was ended or was not possible.
    func demandProofAgain(of entry: TaskEntry) {
        guard entry.awaitsProof, entry.record.state == .complete, entry.run == nil else { return }
        entry.isAdmitted = false
        reporter.change(entry, to: .idle)
    }

    /// Somebody asks for a file that was taken away: there is nothing to be proven of it.
    func forgetMissing(_ entry: TaskEntry) {
        guard entry.awaitsProof, entry.run == nil, let path = entry.record.path, FileProof.file(path) == nil else {
            return
        }
        entry.forgetFile()
        reporter.account(entry)
        book.write(entry)
    }
}
