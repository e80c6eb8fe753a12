import FKMiddleware
import Foundation

/// Tasks that are not complete at their deadline (`TaskOptions.deadline`).
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
        guard let error = entry.missedDeadline(at: clock.date) else { return schedule.watchDeadline(of: entry) }
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
            "The file was not complete at its deadline, \(Timestamp.seconds(deadline)).",
            url: URLMasking.mask(record.task.url), remedy: .extendDeadline)
    }
}

extension Schedule {
    /// Has `Alarms` report the task at its deadline, if it has one.
    func watchDeadline(of entry: TaskEntry) {
        guard let deadline = entry.record.task.optionsBox?.value.deadline else { return }
        let seconds = min(max(deadline.timeIntervalSince(clock.date), 0), 1e9)
        alarms.expiries.push(entry.id, due: clock.now + Int64((seconds * 1e9).rounded(.up)))
        setDeadline()
    }
}
