import FKMiddleware
import Foundation

/// Makes the phases of the runs of an engine, and gives each one what it uses. Confined to the engine.
final class Phases {
    private let reporter: Reporter
    private let limits: RateLimits
    private let sync: SyncService
    private let inbox: EngineInbox
    private let destinations: Destinations
    private let diskWork: DispatchQueue
    private let fetchers: Fetchers
    /// Finished files by their digests, for tasks with `TaskOptions.reuse`.
    private let reuse = ReuseIndex()
    /// The readers of the tasks.
    let readers: Readers

    init(
        _ reporter: Reporter, limits: RateLimits, sync: SyncService, fetchers: Fetchers, inbox: EngineInbox,
        destinations: Destinations, diskWork: DispatchQueue, readers: Readers = Readers()
    ) {
        self.readers = readers
        self.fetchers = fetchers
        self.reporter = reporter
        self.limits = limits
        self.sync = sync
        self.inbox = inbox
        self.destinations = destinations
        self.diskWork = diskWork
    }

    /// Acquires the slot of a task. `TaskRun.start` follows.
    func run(_ entry: TaskEntry, openInfo: OpenInfoFile? = nil) -> TaskRun {
        TaskRun(entry, reporter, self, openInfo: openInfo)
    }

    func preparation(of run: TaskRun) -> Preparation { Preparation(run: run, destinations: destinations) }

    func transfer(of run: TaskRun, _ part: OpenPart) -> Transfer {
        Transfer(
            run, part, limits: limits, fetchers: fetchers, inbox: inbox, destinations: destinations, reuse: reuse)
    }

    func publication(of run: TaskRun, _ transfer: Transfer) -> Publication {
        Publication(run, transfer.part, transfer.heads, destinations)
    }

    /// The engine whose middlewares are called (`MiddlewareCall`).
    var engine: ObjectIdentifier { inbox.engine }

    /// Runs slow disk work on another thread.
    func onDisk(_ work: @escaping @Sendable () -> Void) { diskWork.async(execute: work) }

    /// Runs a closure on the engine's thread, soon. What follows the end of a run comes after it.
    func later(_ body: @escaping () -> Void) {
        nonisolated(unsafe) let body = body
        inbox.perform { body() }
    }

    /// A task is about to be complete. Its file waits to be synced from now on.
    func completes(_ entry: TaskEntry) { sync.add(entry) }

    /// A task is complete.
    func completed(_ entry: TaskEntry) { reuse.add(entry.record) }
}

extension Reporter {
    /// Deletes the files of a task in state `.unknown`, its info file, and everything in memory.
    ///
    /// - Returns: a note about the files.
    func remove(_ entry: TaskEntry) -> String {
        guard book.ownership.mayWrite else { return "forgotten" }
        let note = entry.record.removeFiles(
            of: book.workPath, book.owner, keepsFinished: entry.kept.hasFinished,
            keepsRenewed: entry.kept.hasRenewed)
        let barrels = entry.record.barrels
        for name in barrels { book.leave(entry, barrel: name) }
        entry.admit(false)
        account(entry)
        book.remove(entry)
        forget(entry, barrels: barrels)
        return note
    }
}

extension Schedule {
    /// Ends further connections to a host that has too many, or for which a task waits. Lanes that are already ending count.
    /// Each file keeps one connection.
    func yieldLanes(of host: String, _ count: Int = 1) {
        let transfers = running.values.compactMap { $0.taskRun?.transfer }
        var missing = count
        for transfer in transfers { missing -= transfer.endingLanes(of: host) }
        while missing > 0 {
            let candidates = transfers.filter { $0.laneToYield(of: host) != nil }
            guard let transfer = candidates.max(by: { $0.laneSet.wanted < $1.laneSet.wanted }),
                let lane = transfer.laneToYield(of: host)
            else { return }
            transfer.yield(lane)
            missing -= 1
        }
    }
}
