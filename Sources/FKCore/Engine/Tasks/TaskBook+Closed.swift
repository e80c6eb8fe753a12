import FKMiddleware

/// Answers of an engine without the lock of its work path. They come from the disk, as any other process reads it.
///
/// Another engine may own the work path. So nothing is recovered, quarantined, kept in memory or written.
extension TaskBook {
    func lookUp(_ id: TaskID) -> TaskEntry? {
        (try? StoreReader(workPath).record(id)).map { detached($0) }
    }

    func lookUp(_ selector: TaskSelector) throws -> [TaskEntry] {
        try StoreReader(workPath).records(matching: selector).map { detached($0) }
    }

    /// A task outside of any queue.
    private func detached(_ record: TaskRecord) -> TaskEntry {
        let entry = TaskEntry(record: record, info: InfoHandle(), isNew: false)
        entry.accounted = entry.share
        return entry
    }
}
