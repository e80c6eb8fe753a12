import FKMiddleware
import Foundation

/// With `Durability.process`: finished files are synced in the background, and their records then say so.
extension Engine {
    /// An engine that ran this long (nanoseconds) syncs what is left before it closes: compared to the run it takes no time,
    /// and after the next boot nothing has to be looked at.
    private static let longRun: Int64 = 5_000_000_000

    func noteUnsynced(_ entry: TaskEntry) {
        guard configure.durability == .process, entry.record.synced != true, entry.record.isForeign != true,
            let path = entry.record.path
        else { return }
        unsynced.add(.init(id: entry.id, path: path, since: clock.now))
    }

    /// Once a second. A closing engine waits for it: when the work path is released, no finished file is open.
    func syncFinished() {
        let files = unsynced.takeDue(now: clock.now)
        guard !files.isEmpty, (try? beginOperation()) != nil else { return }
        diskWork.async { [self] in
            let synced = Self.synchronize(files)
            executor.run {
                self.assumeIsolated { engine in
                    synced.forEach { engine.noteSynced($0) }
                    engine.endOperation()
                }
            }
        }
    }

    func syncBeforeClosing() async {
        guard clock.now - opened >= Self.longRun else { return }
        let files = unsynced.takeAll()
        guard !files.isEmpty else { return }
        let synced = await withCheckedContinuation { continuation in
            diskWork.async { continuation.resume(returning: Self.synchronize(files)) }
        }
        synced.forEach { noteSynced($0) }
    }

    /// Bytes and length of each file, then the names in each folder. A file that cannot be synced, or is not there any more,
    /// is left as it is: nothing is said of it.
    private static func synchronize(_ files: [SyncBacklog.File]) -> [SyncBacklog.File] {
        var synced = ExactMap<[SyncBacklog.File]>()
        for file in files {
            let descriptor = open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            if fsync(descriptor) == 0 {
                FileOwner.clear(descriptor)
                synced[file.path.folderPart, default: []].append(file)
            }
            closeFile(descriptor)
        }
        return synced.pairs.flatMap { path, files in
            (try? Folder(path: path).synchronize()) == nil ? [] : files
        }
    }

    /// The engine has a `close` of its own.
    private static func closeFile(_ descriptor: Int32) { _ = Foundation.close(descriptor) }

    private func noteSynced(_ file: SyncBacklog.File) {
        guard let entry = try? find(file.id), entry.record.state == .complete, entry.attempt == nil,
            entry.record.path?.isExactly(file.path) == true, entry.record.synced != true
        else { return }
        entry.record.synced = true
        entry.record.pieces = nil
        entry.record.finish(received: entry.received, at: entry.record.finished ?? clock.date)
        write(entry)
        retire(entry)
    }
}
