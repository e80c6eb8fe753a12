import FKMiddleware

/// Snapshots of the tasks and barrels of a work path: from the memory of its engine (`Reporter`), or from the info files if
/// another process runs the tasks (`Follower`). `EngineAccess.snapshot` chooses.
package protocol RecordSource {
    /// The matching tasks, in the order of submission; a barrel's in the order in which they joined.
    ///
    /// - Throws: `.invalidURL` for an invalid URL, `.notFound` if there is no such barrel, or an error if a file cannot be
    ///   read.
    func infos(_ selector: TaskSelector) throws -> [DownloadInfo]
    /// The tasks with these ids that exist, in the order of `ids`.
    func infos(_ ids: [TaskID]) throws -> [DownloadInfo]
    /// The records of those of these tasks that are in memory. None is read from the disk.
    func recordsInMemory(_ ids: [TaskID]) -> [TaskID: TaskRecord]
    /// The records that match a query.
    func records(_ query: RecordQuery) throws -> RecordPage
    /// The tasks that can still run. Their numbers begin at 0. The engine has them in the order of submission.
    func openIDs() throws -> TaskIDTable
    /// The queued tasks, in the order in which they would start now. `Follower` has them by priority, and then in the order of
    /// submission.
    func waitingInfos() throws -> [DownloadInfo]
    /// The running tasks, in the order in which their attempts began, with fresh speeds.
    func runningInOrder() throws -> [DownloadInfo]
    /// The tasks that hold a slot, with fresh speeds.
    func runningInfos() -> [DownloadInfo]
    /// Tasks that wait for their next attempt, at most `limit` of them.
    func retryingInfos(_ limit: Int) -> [DownloadInfo]
    /// The present sum over the members of a barrel.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    func barrelInfo(_ name: String) throws -> BarrelInfo
    /// The names of all barrels.
    ///
    /// - Throws: `.disk` if their folder cannot be listed.
    func barrelNames() throws -> [String]
    /// The URLs of the members in the order in which they joined.
    func barrelURLs(_ name: String) throws -> [String]
}

extension RecordSource {
    package func recordsInMemory(_ ids: [TaskID]) -> [TaskID: TaskRecord] { [:] }
}

extension Reporter: RecordSource {
    func recordsInMemory(_ ids: [TaskID]) -> [TaskID: TaskRecord] {
        var records: [TaskID: TaskRecord] = [:]
        for id in ids { if let entry = book[id], entry.isThere { records[id] = entry.record } }
        return records
    }

    func infos(_ ids: [TaskID]) throws -> [DownloadInfo] {
        try ids.compactMap { id in
            // A task that was read for this question leaves the memory again.
            let isInMemory = book[id] != nil
            defer { if !isInMemory { book.unload(id) } }
            guard let entry = try book.find(id), entry.isThere else { return nil }
            return info(entry)
        }
    }

    func infos(_ selector: TaskSelector) throws -> [DownloadInfo] {
        try book.find(selector).filter(\.isThere).map { info($0) }
    }

    func records(_ query: RecordQuery) throws -> RecordPage { try book.records(query) }

    func openIDs() throws -> TaskIDTable { try book.openIDs() }

    func runningInfos() -> [DownloadInfo] {
        schedule.running.values.sorted { $0.record.number < $1.record.number }.map { freshInfo($0) }
    }

    func runningInOrder() -> [DownloadInfo] {
        schedule.running.values.filter { $0.record.state == .action }
            .sorted { ($0.run?.order ?? 0) < ($1.run?.order ?? 0) }
            .map { freshInfo($0) }
    }

    func waitingInfos() -> [DownloadInfo] {
        schedule.waitingOrder().compactMap { id in
            defer { book.park(id) }
            return (book[id] ?? book.reload(id)).map { info($0) }
        }
    }

    func retryingInfos(_ limit: Int) -> [DownloadInfo] {
        schedule.alarms.wakes.first(limit).compactMap { book[$0].map { info($0) } }
    }

    func barrelNames() throws -> [String] { try barrels.names() }

    func barrelURLs(_ name: String) throws -> [String] { try barrels.members(name).map(\.url) }
}
