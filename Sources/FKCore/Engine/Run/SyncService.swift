import FKMiddleware
import Foundation

/// Syncs finished files in the background with `Durability.process`, and records it. Confined to the engine; other threads
/// perform the syncs.
final class SyncService {
    /// An engine that ran at least this long, in nanoseconds, syncs the remaining files before it closes. The sync is short
    /// compared to the run, and saves the next boot the check of these files.
    private static let longRun: Int64 = 5_000_000_000

    private let book: TaskBook
    private let schedule: Schedule
    private let diskWork: DispatchQueue
    /// When the engine was created, in nanoseconds of its clock.
    private let opened: Int64
    private var backlog = SyncBacklog()

    init(_ book: TaskBook, _ schedule: Schedule, _ diskWork: DispatchQueue) {
        self.book = book
        self.diskWork = diskWork
        self.schedule = schedule
        opened = schedule.clock.now
    }

    /// Adds the file of a complete task.
    func add(_ entry: TaskEntry) {
        guard schedule.configure.durability == .process, entry.record.synced != true, entry.record.isForeign != true,
            let path = entry.record.path
        else { return }
        entry.awaitsSync = true
        backlog.add(.init(id: entry.id, path: path, written: entry.record.written, since: schedule.clock.now))
            .forEach(release)
    }

    /// Returns the files that are due.
    func drainDue() -> [SyncBacklog.File] { backlog.drainDue(now: schedule.clock.now) }

    /// Returns the files that a closing engine syncs.
    func drainLast() -> [SyncBacklog.File] {
        schedule.clock.now - opened >= Self.longRun ? backlog.drainAll() : []
    }

    /// Syncs files on another thread, and records it.
    func perform(_ files: [SyncBacklog.File], isolation: isolated (any Actor)? = #isolation) async {
        if files.isEmpty { return }
        let synced = await withCheckedContinuation { continuation in
            diskWork.async { continuation.resume(returning: Self.synchronize(files)) }
        }
        synced.forEach(recordSynced)
        files.forEach(release)
    }

    /// Syncs files and then their folders. It ignores files that are missing, that are not as their task left them, or that cannot
    /// be synced. Safe from any thread.
    ///
    /// - Returns: the synced files.
    private static func synchronize(_ files: [SyncBacklog.File]) -> [SyncBacklog.File] {
        var synced = ExactText.Map<[SyncBacklog.File]>()
        for file in files {
            let descriptor = open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            var status = stat()
            let isOurs =
                fstat(descriptor, &status) == 0
                && file.written.map {
                    FileIdentity(status, born: FileBirth.time("", in: descriptor)).matches($0)
                } == true
            if isOurs, fsync(descriptor) == 0 {
                FileOwner.clear(descriptor)
                synced[file.path.folderPart, default: []].append(file)
            }
            close(descriptor)
        }
        return synced.pairs.flatMap { path, files in
            (try? Folder(path: path).synchronize()) == nil ? [] : files
        }
    }

    /// Records that a file is synced.
    private func recordSynced(_ file: SyncBacklog.File) {
        guard let entry = try? book.find(file.id), entry.record.state == .complete, entry.run == nil,
            entry.record.path?.isExactly(file.path) == true, entry.record.synced != true
        else { return }
        entry.record.recordSynced()
        entry.record.finish(received: entry.received, at: entry.record.finished ?? schedule.clock.date)
        book.write(entry)
    }

    /// A file was synced, or is not synced any more.
    private func release(_ file: SyncBacklog.File) {
        guard let entry = book[file.id] else { return }
        entry.awaitsSync = false
        book.retire(entry)
    }
}
