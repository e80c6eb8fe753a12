import FKMiddleware
import Foundation

/// The state and services that all runs of an engine share. Confined to the engine.
final class RunRoom {
    let book: TaskBook
    let schedule: Schedule
    let reporter: Reporter
    let limits: RateLimits
    let sync: SyncService
    let transport: any Transport
    let chains: MiddlewareChains
    let inbox: EngineInbox
    /// The engine whose middlewares are called (`MiddlewareCall`).
    var engine: ObjectIdentifier { inbox.engine }
    /// Computes digests and syncs files.
    let diskWork: DispatchQueue

    var folders = FolderCache()
    var names = NameNumbers()
    /// Finished files by their digests, for tasks with `TaskOptions.reuse`.
    let reuse = ReuseIndex()
    private var smallFiles = SmallFileRoom()

    init(
        _ reporter: Reporter, limits: RateLimits, sync: SyncService, transport: any Transport, inbox: EngineInbox,
        diskWork: DispatchQueue
    ) {
        self.reporter = reporter
        book = reporter.book
        schedule = reporter.schedule
        chains = reporter.chains
        self.limits = limits
        self.sync = sync
        self.transport = transport
        self.inbox = inbox
        self.diskWork = diskWork
    }

    // MARK: Forgetting

    /// Deletes the files of a task in state `.unknown`, its info file, and everything in memory.
    ///
    /// - Returns: a note about the files.
    func forget(_ entry: TaskEntry) -> String {
        guard book.tenure.mayWrite else { return "forgotten" }
        let note = entry.record.removeFiles(
            of: book.workPath, book.owner, keepsFinished: entry.keepsFile,
            keepsRenewed: entry.keepsRenewed)
        let barrels = entry.record.barrels
        for name in barrels { book.leave(entry, barrel: name) }
        entry.admit(false)
        reporter.account(entry)
        book.remove(entry)
        reporter.forget(entry, barrels: barrels)
        return note
    }

    // MARK: Free space

    /// The maximum size in bytes of a body that is written to an empty part without asking the engine.
    static let smallFile: Int64 = 256 << 10

    /// The free space of a folder less what other tasks have reserved; nil if the file system does not report it.
    func disk(for entry: TaskEntry, in folder: Folder) -> DiskRoom? {
        guard let free = folder.free else { return nil }
        var promised: Int64 = 0
        for other in schedule.running.values where other !== entry {
            guard let run = other.run, run.hasRoom, run.isOn(folder.device) else { continue }
            promised += max(0, (other.record.expected ?? 0) - other.received)
        }
        return DiskRoom(free: free, promised: promised, kept: minFree(of: entry))
    }

    private func minFree(of entry: TaskEntry) -> Int64 {
        max(0, entry.record.task.option { $0.minFree } ?? schedule.configure.minFree)
    }

    /// The maximum size in bytes of a body that may be written without asking the engine; -1 for none.
    func inlineLimit(for entry: TaskEntry, in folder: Folder) -> Int64 {
        guard entry.hasCleanCounters, entry.record.received == 0, let device = folder.device,
            // Their head stage may refuse the file.
            !entry.isHandled(by: chains.response)
        else { return -1 }
        let fits = smallFiles.take(
            Self.smallFile, on: device, keeping: minFree(of: entry), now: schedule.clock.now
        ) {
            guard let spare = disk(for: entry, in: folder)?.spare else { return .max }
            // Running tasks may not have written theirs yet.
            return spare - min(max(0, spare), Int64(schedule.running.count) * Self.smallFile)
        }
        return fits ? Self.smallFile : -1
    }

    // MARK: Yielding

    /// Ends further connections to a host that has too many, or for which a task waits. Lanes that are already ending count.
    /// Each file keeps one connection.
    func yieldLanes(of host: String, _ count: Int = 1) {
        let runs = schedule.running.values.compactMap(\.run)
        var missing = count
        for run in runs { missing -= run.endingLanes(of: host) }
        while missing > 0 {
            let candidates = runs.filter { $0.laneToYield(of: host) != nil }
            guard let run = candidates.max(by: { $0.laneSet.wanted < $1.laneSet.wanted }),
                let lane = run.laneToYield(of: host)
            else { return }
            run.yield(lane)
            missing -= 1
        }
    }
}
