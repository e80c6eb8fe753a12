import FKMiddleware

/// Finished files that are not known to be on the disk yet, and when they are synced in the background.
///
/// Each sync makes the disk work at once where it could have taken its time. So files wait a little, and where they come by
/// the thousand none is synced: after a power cut their checksums tell which ones are whole, and small files are soon read.
struct SyncBacklog {
    struct File: Sendable, Hashable {
        var id: TaskID
        var path: String
        /// When the task was done, in nanoseconds of the engine's clock.
        var since: Int64
    }

    /// Nanoseconds that a file waits: as long as a journal does that is not told to hurry.
    static let patience: Int64 = 5_000_000_000
    /// More files than this are too many.
    static let limit = 1_000

    private var files: [File] = []
    private var isFlooded = false

    mutating func add(_ file: File) {
        if isFlooded { return }
        files.append(file)
        if files.count > Self.limit {
            files = []
            isFlooded = true
        }
    }

    /// All of them, once the oldest has waited long enough.
    mutating func takeDue(now: Int64) -> [File] {
        guard let first = files.first else {
            isFlooded = false
            return []
        }
        return now - first.since >= Self.patience ? takeAll() : []
    }

    mutating func takeAll() -> [File] {
        defer { files = [] }
        return files
    }
}
