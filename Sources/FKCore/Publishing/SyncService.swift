import FKMiddleware
import Foundation

/// With `Durability.process`: finished files are synced in the background, and their records then say so. Confined to the
/// engine; the syncing itself is done by other threads.
final class SyncService {
    /// An engine that ran this long (nanoseconds) syncs what is left before it closes: compared to the run it takes no time,
    /// and after the next boot nothing has to be looked at.
    private static let longRun: Int64 = 5_000_000_000

    private let book: TaskBook
    private let schedule: Schedule
    /// When it was made, in nanoseconds of the engine's clock.
    private let opened: Int64
    private var backlog = SyncBacklog()

    init(_ book: TaskBook, _ schedule: Schedule) {
        self.book = book
        self.schedule = schedule
        opened = schedule.clock.now
    }

    /// A task is complete.
    func add(_ entry: TaskEntry) {
        guard schedule.configure.durability == .process, entry.record.synced != true, entry.record.isForeign != true,
            let path = entry.record.path
        else { return }
        backlog.add(.init(id: entry.id, path: path, since: schedule.clock.now))
    }

    /// The files whose turn has come.
    func takeDue() -> [SyncBacklog.File] { backlog.takeDue(now: schedule.clock.now) }

    /// The files that a closing engine still syncs.
    func takeLast() -> [SyncBacklog.File] {
        schedule.clock.now - opened >= Self.longRun ? backlog.takeAll() : []
    }

    /// Bytes and length of each file, then the names in each folder. A file that cannot be synced, or is not there any more,
    /// is left as it is: nothing is said of it. For any thread.
    ///
    /// - Returns: those that are on the disk now.
    static func synchronize(_ files: [SyncBacklog.File]) -> [SyncBacklog.File] {
        var synced = ExactMap<[SyncBacklog.File]>()
        for file in files {
            let descriptor = open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            if fsync(descriptor) == 0 {
                FileOwner.clear(descriptor)
                synced[file.path.folderPart, default: []].append(file)
            }
            close(descriptor)
        }
        return synced.pairs.flatMap { path, files in
            (try? Folder(path: path).synchronize()) == nil ? [] : files
        }
    }

    /// Writes down that a file is on the disk.
    func note(_ file: SyncBacklog.File) {
        guard let entry = try? book.find(file.id), entry.record.state == .complete, entry.run == nil,
            entry.record.path?.isExactly(file.path) == true, entry.record.synced != true
        else { return }
        entry.record.noteSynced()
        entry.record.finish(received: entry.received, at: entry.record.finished ?? schedule.clock.date)
        book.write(entry)
        book.retire(entry)
    }
}
