import FKMiddleware

/// New settings of an existing task. Settings that are nil stay.
package struct TaskChange: Codable, Sendable, Hashable {
    package var id: TaskID
    /// The new options, which replace all stored ones.
    package var options: TaskOptions?
    /// The new mirrors, percent-encoded.
    package var mirrors: [String]?
    package var priority: Int?

    /// Creates a change that changes nothing yet.
    package init(_ id: TaskID) { self.id = id }
}

extension TaskControl {
    /// Changes settings of existing tasks.
    ///
    /// - Throws: the errors of `Control.change`.
    package func change(_ changes: [TaskChange]) throws -> String {
        try ownership.checkOpen()
        var checked: [(TaskEntry, TaskDescription)] = []
        checked.reserveCapacity(changes.count)
        for change in changes {
            guard let entry = try book.findSome(.id(change.id)).first, entry.verbState != .unknown else {
                throw DownloadError(.notFound, "There is no task \(change.id.short).")
            }
            checked.append((entry, try change.applied(to: entry.record.task)))
        }
        for (entry, task) in checked where task != entry.record.task { apply(task, to: entry) }
        return "\(changes.count.plural("task")) changed"
    }

    private func apply(_ task: TaskDescription, to entry: TaskEntry) {
        let known = entry.record.task
        entry.record.task = task
        entry.recordChange()
        var moved = known
        moved.priority = task.priority
        guard moved != task else { return changePlace(of: entry) }
        switch entry.record.state {
        case .idle: return requeue(entry)
        case .action:
            switch KnownTaskRules.running(known, task) {
            case .adjust: adjust(entry, from: known.options)
            case .restart: entry.taskRun?.restart()
            default: break
            }
        default: break
        }
        // A client that reads the record after the answer finds the change, and a kill does not lose it.
        book.write(entry)
    }

    private func changePlace(of entry: TaskEntry) {
        if schedule.ready.contains(entry.id) { schedule.ready.push(schedule.element(of: entry)) }
        book.write(entry)
    }
}

extension TaskChange {
    /// The description after the change.
    fileprivate func applied(to task: TaskDescription) throws(DownloadError) -> TaskDescription {
        var task = task
        if let options {
            try options.validate()
            task.options = options
        }
        if let mirrors {
            task.mirrors = try mirrors.map { url throws(DownloadError) in try url.normalizedURL() }
        }
        if let priority { task.priority = priority }
        return task
    }
}
