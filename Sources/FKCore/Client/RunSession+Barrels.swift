import FKEngine
import FKMiddleware

/// The members of barrels as the targets of a session.
extension RunSession {
    /// Targets the members of barrels, and reports those that an index answers. The others are asked for.
    ///
    /// - Throws: the errors of `StoreReader.barrelIDs`.
    func target(_ names: [String], _ access: SharedEngine) async throws {
        let reader = StoreReader(access.workPath)
        for name in names {
            let ids = try reader.barrelIDs(name).ids
            tracker.target(ids)
            // Only the owner of the work path knows that no record changes between this look and the run.
            // A barrel whose change was interrupted has other members than its file: the engine must open it.
            guard let engine = access.engine, ids.count >= FinishedIndex.leastCount,
                !BarrelFile.isMarked(name, in: access.workPath)
            else { continue }
            await reportFinished(FinishedIndex(name, in: access.workPath))
            if finished.isEmpty { await engine.beforeRelease { [weak self] in await self?.keepFinished(access) } }
            finished.append(FinishedMembers(name, in: access.workPath))
        }
        // They count as finished, and are asked for again.
        let lost = fetchLost(reader)
        requests = lost + requests
        // The index is made again with what follows.
        let open = tracker.openCount
        let suspended = leaveSuspended(names, reader)
        guard access.engine != nil, open < tracker.total else { return }
        if open == 0 {
            requests = []
        } else if open <= 1_000 {
            var place = 0
            let ids = tracker.next(&place, atMost: open, isUnheard: true)
            requests = lost + (ids + suspended).map { EngineMessage(.run(.id($0))) }
        }
    }

    private func reportFinished(_ index: FinishedIndex) async {
        let reader = index.reader()
        while !isStopped {
            let infos = reader.next(atMost: 1_000)
            if infos.isEmpty { return }
            for info in infos where !info.hasLostFile { changed(info, isIndexed: true) }
            // A signal is handled between the portions.
            await Task.yield()
        }
    }

    /// The requests that add the complete members again whose files are gone. All that they have stays.
    private func fetchLost(_ reader: StoreReader) -> [EngineMessage] {
        var requests: [EngineMessage] = []
        var place = 0
        while true {
            let ids = tracker.next(&place, atMost: 8_192, isUnheard: true)
            if ids.isEmpty { return requests }
            let tasks = reader.lost(ids).map { record in
                var task = TaskDescription(url: record.task.url)
                (task.directory, task.fileName) = (record.task.directory, record.task.fileName)
                task.words = .keepsOrders
                return task
            }
            if !tasks.isEmpty { requests.append(EngineMessage(.add(tasks: tasks, barrel: nil, run: true))) }
        }
    }

    /// Leaves suspended members out.
    private func leaveSuspended(_ names: [String], _ reader: StoreReader) -> [TaskID] {
        var suspended: [TaskID] = []
        var place = 0
        while true {
            let ids = tracker.next(&place, atMost: 8_192, isUnheard: true)
            if ids.isEmpty { break }
            suspended += reader.suspended(ids).map(\.id)
        }
        guard !suspended.isEmpty else { return [] }
        if names.count == 1 {
            onEvent(.members(of: names[0], tracker))
            onEvent(.leftOut(of: names[0], count: suspended.count))
        }
        tracker.untarget(suspended)
        return suspended
    }

    /// Records a member that has finished, for the index.
    func recordFinished(_ info: DownloadInfo) {
        for place in finished.indices
        where finished.count == 1 || info.barrels.contains(where: { $0.isExactly(finished[place].name) }) {
            finished[place].append(info)
        }
    }

    /// Adds the members that have finished to the index. The engine has written its last record and still owns the work path.
    private func keepFinished(_ access: SharedEngine) {
        guard !isStopped else { return }
        drainBuffered()
        for members in finished { members.save { tracker.isComplete($0) } }
        finished = []
    }
}

/// The finished members of a barrel that were not in its index.
struct FinishedMembers {
    let name: String
    private let workPath: WorkPath
    private var spool: FinishedSpool?
    /// True once the disk has refused. The barrel then has the index that it had.
    private var hasFailed = false

    init(_ name: String, in workPath: WorkPath) {
        self.name = name
        self.workPath = workPath
    }

    mutating func append(_ info: DownloadInfo) {
        guard !hasFailed else { return }
        do {
            let spool = try self.spool ?? FinishedSpool(name, in: workPath)
            self.spool = spool
            try spool.append(info)
        } catch {
            hasFailed = true
            spool = nil
        }
    }

    func save(where isFinished: (TaskID) -> Bool) {
        guard let spool, spool.count > 0 else { return }
        FinishedIndex(name, in: workPath).add(spool, where: isFinished)
    }
}
