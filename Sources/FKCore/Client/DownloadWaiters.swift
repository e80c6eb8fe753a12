import FKEngine
import FKMiddleware

/// Counts the Swift tasks that wait for the file of a download task, so that cancelling one of them stops the download
/// only if no other waits.
///
/// A caller that arrives while the download is being stopped waits for the end of that, and then queues it again.
final class DownloadWaiters: Sendable {
    private struct Entry {
        var count = 0
        /// Set while the last caller stops the download.
        var stopping: Task<Void, Never>?
    }

    private let entries = Locked<[TaskID: Entry]>([:])

    /// The number of callers that wait for a task.
    func count(_ id: TaskID) -> Int { entries.withLock { $0[id]?.count ?? 0 } }

    /// Counts a caller. Each call needs exactly one call of `leave`.
    func join(_ id: TaskID) async {
        while let stopping = countOrStopping(id) { await stopping.value }
    }

    private func countOrStopping(_ id: TaskID) -> Task<Void, Never>? {
        entries.withLock { entries in
            if let stopping = entries[id]?.stopping { return stopping }
            entries[id, default: Entry()].count += 1
            return nil
        }
    }

    /// Ends the waiting of a caller. The download continues.
    func leave(_ id: TaskID) {
        entries.withLock { entries in
            entries[id]?.count -= 1
            if entries[id]?.count == 0 { entries[id] = nil }
        }
    }

    /// Ends the waiting of a caller, and stops the download if no other caller waits for it.
    ///
    /// - Parameter stop: stops the download. It runs in a Swift task of its own, which is not cancelled.
    func leave(_ id: TaskID, stop: @escaping @Sendable () async -> Void) async {
        let stopping = entries.withLock { entries -> Task<Void, Never>? in
            entries[id]?.count -= 1
            guard entries[id]?.count == 0 else { return nil }
            let task = Task {
                await stop()
                entriesStopped(id)
            }
            entries[id]?.stopping = task
            return task
        }
        await stopping?.value
    }

    private func entriesStopped(_ id: TaskID) { entries.withLock { $0[id] = nil } }
}
