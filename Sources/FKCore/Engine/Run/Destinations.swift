import FKMiddleware
import Foundation

/// The destination folders of an engine: the open ones, the numbers of their names, and their free space. Confined to the
/// engine.
final class Destinations {
    var folders = FolderCache()
    var names = NameNumbers()
    private let schedule: Schedule
    private let chains: MiddlewareChains
    /// The budget of disk space; nil in tests.
    let budget: DiskBudget?
    private var smallFiles = SmallFileRoom()

    init(_ schedule: Schedule, _ chains: MiddlewareChains, budget: DiskBudget? = nil) {
        self.schedule = schedule
        self.chains = chains
        self.budget = budget
    }

    /// The maximum size in bytes of a body that is written to an empty part without asking the engine.
    private static let smallFile: Int64 = 256 << 10

    /// The free space of a folder less what other tasks have reserved; nil if the file system does not report it.
    func disk(for entry: TaskEntry, in folder: Folder) -> DiskRoom? {
        guard let free = folder.free else { return nil }
        var promised: Int64 = 0
        for other in schedule.running.values where other !== entry {
            promised += other.taskRun?.transfer?.reservedBytes(on: folder.device) ?? 0
        }
        return DiskRoom(free: free, promised: promised, kept: minFree(of: entry))
    }

    private func minFree(of entry: TaskEntry) -> Int64 {
        max(0, entry.record.task.optionsBox?.value.minFree ?? schedule.configure.minFree)
    }

    /// The maximum size in bytes of a body that may be written without asking the engine; -1 for none.
    func inlineLimit(for entry: TaskEntry, in folder: Folder) -> Int64 {
        guard entry.unsaved.hasCleanCounters, entry.record.received == 0, let device = folder.device,
            // Their head stage may refuse the file.
            !entry.isHandled(by: chains.response)
        else { return -1 }
        let fits = smallFiles.reserve(
            Self.smallFile, on: device, keeping: minFree(of: entry), now: schedule.clock.now
        ) {
            guard let spare = disk(for: entry, in: folder)?.spare else { return .max }
            // Running tasks may not have written theirs yet.
            return spare - min(max(0, spare), Int64(schedule.running.count) * Self.smallFile)
        }
        return fits && budget?.claims(Self.smallFile, for: entry.id) != false ? Self.smallFile : -1
    }
}
