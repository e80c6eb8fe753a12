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

    /// A flood goes on while at least this many files come in a second. At this rate, `limit` files come within `patience`.
    private static let rate = limit / Int(patience / second)
    private static let second: Int64 = 1_000_000_000

    private var files: [File] = []
    /// The files that were left in the present second of a flood; nil without one.
    private var flood: (since: Int64, count: Int)?

    /// - Returns: the files that will not be synced.
    mutating func add(_ file: File) -> [File] {
        look(at: file.since)
        if let flood {
            self.flood = (flood.since, flood.count + 1)
            return [file]
        }
        files.append(file)
        guard files.count > Self.limit else { return [] }
        flood = (file.since, Self.rate)
        return drainAll()
    }

    /// Returns all files, once the oldest has waited long enough.
    mutating func drainDue(now: Int64) -> [File] {
        look(at: now)
        guard let first = files.first else { return [] }
        return now - first.since >= Self.patience ? drainAll() : []
    }

    /// Ends a flood after a second with few files.
    private mutating func look(at now: Int64) {
        guard let flood, now - flood.since >= Self.second else { return }
        self.flood = flood.count < Self.rate || now - flood.since >= 2 * Self.second ? nil : (now, 0)
    }

    mutating func drainAll() -> [File] {
        defer { files = [] }
        return files
    }
}
