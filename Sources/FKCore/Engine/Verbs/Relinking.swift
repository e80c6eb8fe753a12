import FKMiddleware

/// Decides what follows for a task that gets another address.
///
/// | state | then |
/// | --- | --- |
/// | waiting | it is queued anew with a fresh count of attempts |
/// | running | a new attempt begins at the new address |
/// | failed | it is queued |
/// | prepared, suspended, cancelled | the address counts when it runs again |
/// | complete | the address counts when the file is fetched again |
package enum Relinking {
    /// What follows after the address is stored.
    package enum Effect: Sendable, Hashable {
        /// The address counts for the next attempt.
        case nothing
        /// The running attempt stops with its bytes kept, and the next one starts.
        case restart
        /// A waiting task gets a new place in the queue.
        case requeue
        /// Same as the verb `retry`.
        case queue
    }

    /// Decides for one task; nil for one that is being trashed or forgotten.
    package static func effect(in state: DownloadState) -> Effect? {
        switch state {
        case .idle: .requeue
        case .action: .restart
        case .error: .queue
        case .suspend, .cancel, .complete: .nothing
        case .unknown: nil
        }
    }
}

extension TaskControl {
    /// Gives a task another address. Another origin receives no secrets of the task. Its bytes stay: the next attempt joins them with those of the new address under the
    /// rules for mirrors (`MirrorRules`).
    ///
    /// - Throws: `.notFound`, `.invalidURL` or `.unsupportedScheme`.
    func relink(_ id: TaskID, to text: String) throws -> String {
        try ownership.checkOpen()
        let url = try text.normalizedURL()
        guard let entry = try book.findSome(.id(id)).first, let effect = Relinking.effect(in: entry.verbState) else {
            throw DownloadError(.notFound, "There is no task \(id.short).")
        }
        entry.record.relink(to: url)
        let note = entry.record.secretsLeftBehind(by: url).map { "; \($0)" } ?? ""
        book.appendHistory(entry, by: "relink", "the file is fetched from \(url.masked) from now on\(note)")
        switch effect {
        case .nothing: book.write(entry)
        case .restart:
            book.write(entry)
            entry.taskRun?.restart()
        case .requeue: requeue(entry)
        case .queue: queue(entry)
        }
        return "the new address of the task is \(url.masked)\(note)"
    }
}
