import FKMiddleware

/// Finished files that are not synced yet. It decides when they are synced in the background.
///
/// A sync is expensive, so files wait for the system to write them first. If there are thousands, none is synced: after a
/// power cut their checksums show which ones are complete, and small files are read quickly.
struct SyncBacklog {
    struct File: Sendable, Hashable {
        var id: TaskID
        var path: String
        /// The file as the task left it.
        var written: FileIdentity?
        /// When the task completed, in nanoseconds of the engine's clock.
        var since: Int64
    }

    /// The nanoseconds that a file waits: the usual commit interval of a journal.
    static let patience: Int64 = 5_000_000_000
    /// The maximum number of files. With more, none is synced.
    static let limit = 1_000

    private var files: [File] = []
    private var isFlooded = false

    /// - Returns: the files that will not be synced.
    mutating func add(_ file: File) -> [File] {
        if isFlooded { return [file] }
        files.append(file)
        isFlooded = files.count > Self.limit
        return isFlooded ? takeAll() : []
    }

    /// Returns all files, once the oldest has waited long enough.
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
