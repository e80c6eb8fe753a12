import FKMiddleware
import Foundation

/// Free space: what is known not to fit is not begun.
extension Engine {
    /// A body of at most so many bytes into an empty part is written without the engine being asked.
    static let smallFile: Int64 = 256 << 10

    /// Looks whether the rest of a file of that length fits beside what other tasks have begun, and promises it to the task.
    ///
    /// - Throws: `.noSpace`.
    func reserveRoom(_ total: Int64, for entry: TaskEntry, _ attempt: Attempt) throws(DownloadError) {
        try room(for: entry, in: attempt.folder)?.check(
            total - min(total, attempt.part.occupied), folder: attempt.folder.path, isResumed: entry.received > 0)
        attempt.hasRoom = true
    }

    /// - Returns: the most that a body may have to be written before the engine is asked; -1 for none.
    func inlineLimit(for entry: TaskEntry, _ attempt: Attempt) -> Int64 {
        guard entry.hasCleanCounters, entry.record.received == 0, let device = attempt.folder.device else { return -1 }
        let fits = smallFiles.take(Self.smallFile, on: device, keeping: minFree(of: entry), now: clock.now) {
            guard let spare = room(for: entry, in: attempt.folder)?.spare else { return .max }
            // Those that run may not have written theirs yet.
            return spare - min(max(0, spare), Int64(running.count) * Self.smallFile)
        }
        return fits ? Self.smallFile : -1
    }

    private func minFree(of entry: TaskEntry) -> Int64 {
        max(0, entry.record.task.options.minFree ?? configure.minFree)
    }

    /// Nil where the file system does not tell.
    private func room(for entry: TaskEntry, in folder: Folder) -> DiskRoom? {
        guard let free = folder.free else { return nil }
        var promised: Int64 = 0
        for other in running.values where other !== entry {
            guard let attempt = other.attempt, attempt.hasRoom, attempt.folder.device == folder.device else { continue }
            promised += max(0, (other.record.expected ?? 0) - other.received)
        }
        return DiskRoom(free: free, promised: promised, kept: minFree(of: entry))
    }
}
