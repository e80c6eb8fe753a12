import FKMiddleware
import Foundation

/// Tasks that are not complete at their deadline (`TaskOptions.deadline`), or at the end of the time for a run (`TaskOptions.runSeconds`).
extension TaskControl {
    /// Queues a task whose retry has become due.
    func wake(_ id: TaskID) {
        guard let entry = book[id], entry.record.state == .idle else { return }
        entry.record.setWaiting(nil)
        schedule.enqueue(entry, host: book.site(of: entry.nextURL))
    }

    /// Fails a task whose deadline has passed. A suspended task stays suspended, and fails when it is about to start.
    package func expire(_ id: TaskID) {
        guard let entry = book[id] ?? book.reload(id), entry.verbState == .idle || entry.verbState == .action else {
            return
        }
        // The wall clock may have been set back, and the deadline may have been moved.
        guard let error = entry.missedDeadline(at: clock.date) ?? entry.runTimeError else {
            return schedule.watchDeadline(of: entry)
        }
        schedule.withdraw(id)
        entry.record.expire(error, at: clock.date)
        book.appendHistory(entry, by: "deadline", error.message)
        reporter.change(entry, to: .error)
        guard let run = entry.taskRun else {
            book.write(entry)
            ResponseChainEnd.tell(error, of: entry, head: entry.record.response, book)
            return book.retire(entry)
        }
        run.expire(error)
    }
}

extension TaskEntry {
    /// The error of a task that is past its deadline; nil for any other.
    func missedDeadline(at date: Date) -> DownloadError? {
        guard let deadline = record.task.optionsBox?.value.deadline, deadline <= date else { return nil }
        return DownloadError(
            .deadlineExceeded,
            "The file was not complete at its deadline, \(deadline.timestampInSeconds).",
            url: record.task.url.masked, remedy: .extendDeadline)
    }

    /// The error of a task whose time for a run is over; nil for a task without such a limit.
    var runTimeError: DownloadError? {
        guard let options = record.task.optionsBox?.value, options.deadline == nil, let seconds = options.runSeconds
        else { return nil }
        return DownloadError(
            .deadlineExceeded,
            "The file was not complete at its time limit, \(Int(seconds.rounded(.up)).plural("second")).",
            url: record.task.url.masked, remedy: .extendDeadline)
    }
}

extension Schedule {
    /// Has `Alarms` report the task at its deadline, if it has one. The time for a run has begun if the task is watched already.
    func watchDeadline(of entry: TaskEntry) {
        guard let options = entry.record.task.optionsBox?.value else { return }
        let seconds: Double
        if let deadline = options.deadline {
            seconds = min(max(deadline.timeIntervalSince(clock.date), 0), 1e9)
        } else if let time = options.runSeconds, alarms.expiries.due(of: entry.id) == nil {
            seconds = time
        } else {
            return
        }
        alarms.expiries.push(entry.id, due: clock.now + Int64((seconds * 1e9).rounded(.up)))
        setDeadline()
    }

    /// Watches the task by its new options: its time for a run begins anew.
    func rewatchDeadline(of entry: TaskEntry) {
        alarms.expiries.remove(entry.id)
        watchDeadline(of: entry)
    }
}
