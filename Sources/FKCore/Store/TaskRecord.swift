import FKMiddleware
import Foundation

/// What is remembered of one response representation, to recognise it again (RFC 9110 section 8.8).
package struct Validator: Codable, Sendable, Hashable {
    /// As sent, quotes and `W/` included.
    package var etag: String?
    package var lastModified: String?
    /// The `Date` field of the same response: decides whether `lastModified` is strong (RFC 9110 section 8.8.2.2).
    package var date: String?
    /// The digest of the whole file that the server told (`ServerDigest`).
    package var digest: Checksum?
    /// The coding that the bytes are in (`ResponseHead.contentCoding`); nil for the plain file.
    package var coding: String?

    package init(
        etag: String? = nil, lastModified: String? = nil, date: String? = nil, digest: Checksum? = nil,
        coding: String? = nil
    ) {
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
        self.digest = digest
        self.coding = coding
    }
}

/// One contiguous piece of the file that one connection at a time fills from its start.
package struct SavedRange: Codable, Sendable, Hashable {
    /// Offset of its first byte in the file.
    package var start: Int64
    /// Offset after its last byte; nil while the length is unknown.
    package var end: Int64?
    /// Bytes `start..<position` are in the part file. While the task runs, the live counter of the same index is newer.
    package var position: Int64
    /// Bytes `start..<synced` are known to be on the disk itself.
    package var synced: Int64

    package init(start: Int64, end: Int64?, position: Int64? = nil, synced: Int64? = nil) {
        self.start = start
        self.end = end
        self.position = position ?? start
        self.synced = synced ?? start
    }
}

/// Why an idle task is not running.
package struct Waiting: Codable, Sendable, Hashable {
    package enum Reason: String, Codable, Sendable, Hashable {
        /// All slots are taken.
        case slot
        /// Its host has as many connections as it may have, or asked us to wait.
        case host
        /// An attempt failed; the next one is due at `until`.
        case retry
        /// The disk was full.
        case noSpace = "no space"
        /// No engine runs.
        case engine
        /// The queue has not been activated.
        case queue
    }
    package var reason: Reason
    package var until: Date?
    /// The host that asked for it, or that has as many connections as it may have; with its port where that is unusual.
    package var host: String?
    /// The limit that is reached: connections of the host, or slots.
    package var limit: Int?
    package init(_ reason: Reason, until: Date? = nil, host: String? = nil, limit: Int? = nil) {
        self.reason = reason
        self.until = until
        self.host = host
        self.limit = limit
    }
}

/// One line of the history `fk why` prints.
package struct Verdict: Codable, Sendable, Hashable {
    package var time: Date
    /// `attempt`, `resume` (bytes were dropped), `range` (asked again in another way), `proof` (found whole after
    /// another boot), `part` (a part file of somebody else), `coding` (the bytes are in a content coding nobody asked for),
    /// or a middleware's name.
    package var by: String
    package var what: String
    package init(time: Date, by: String, what: String) {
        self.time = time
        self.by = by
        self.what = what
    }
}

/// The payload of an info file: everything about a task that must outlive the process.
///
/// It never holds what a request middleware added: that is made again on each attempt.
package struct TaskRecord: Codable, Sendable, Hashable {
    package var id: TaskID
    package var task: TaskDescription
    /// Submission number: unique in the work path, ascending.
    package var number: UInt64
    package var state: DownloadState
    @Seldom package var waiting: Waiting?
    package var ranges: [SavedRange] = []
    /// What came so far, as far as it is known, for the time in which the file is not synced.
    @Seldom package var pieces: [PieceChecksum]?
    /// Length of the whole file, once a server has told it.
    package var expected: Int64?
    @Seldom package var validator: Validator?
    /// The URL that `validator` is of; nil for the task's own. Validators of two URLs cannot be compared.
    @Seldom package var source: String?
    /// Attempts begun so far.
    package var attempts: Int = 0
    @Seldom package var error: DownloadError?
    @Seldom package var response: ResponseHead?
    package var barrels: [String] = []
    /// Name of the part file in the task's folder, once there is one.
    package var partName: String?
    /// When the part file was last written to, as of the end of an attempt that left bytes in it: nanoseconds since 1970.
    /// Nil while an attempt writes: then only the next engine knows whether it ended in order.
    @Seldom package var partTime: Int64?
    /// Absolute path of the finished file.
    package var path: String?
    /// The finished file as the task left it: what shows that a file at `path` is its own (`owns`). Known from just before
    /// the file gets its final name.
    @Seldom package var written: FileIdentity?
    /// Files of this task that were moved aside: removed once it is complete or trashed.
    @Seldom package var setAside: [SetAsideFile]?
    /// Where else the finished file still is after a response middleware has moved it: absolute paths. Removed once this
    /// record is written.
    @Seldom package var leftBehind: [String]?
    package var created: Date
    package var started: Date?
    package var finished: Date?
    /// When the application last said that it uses the finished file (`Control.markUsed`).
    @Seldom package var lastUsed: Date?
    /// Bytes a second: smoothed as of the last write while the task runs, the average of the last attempt afterwards.
    package var bytesPerSecond: Int64?
    /// True when `path` was there before and only counts as this task's result: it is never deleted.
    package var isForeign: Bool?
    /// True once the finished file is known to be on the disk itself.
    package var synced: Bool?
    /// The boot in which `ranges` and `synced` were written: live counters of another boot are not trusted.
    package var bootID: String?
    /// False when the end of the body was not confirmed by a length or last chunk.
    package var lengthVerified: Bool?
    /// The newest last, at most 8.
    package var history: [Verdict] = []

    /// - Parameter id: the task's id, where it has been computed already.
    package init(task: TaskDescription, id: TaskID? = nil, number: UInt64, created: Date) {
        self.id = id ?? task.id
        self.task = task
        self.number = number
        state = .idle
        self.created = created
    }

    /// The plan's entry that the next attempt takes: 0 is the task's URL, the others are its mirrors. An attempt that was
    /// interrupted is tried again where it was; one that failed goes on along the plan.
    package var nextURLIndex: Int {
        let hasFailed = waiting?.until != nil || state == .idle && error != nil
        return (hasFailed ? attempts : max(0, attempts - 1)) % (task.mirrors.count + 1)
    }

    package var nextURL: String { nextURLIndex == 0 ? task.url : task.mirrors[nextURLIndex - 1] }

    /// Bytes in the part file or the finished file, as of the last write of the record.
    package var received: Int64 { received(counters: nil) }

    /// The same with the live counters of a task that runs: the one formula for it.
    package func received(counters: LiveCounters?) -> Int64 {
        var sum: Int64 = 0
        for (index, range) in ranges.enumerated() {
            sum += (counters.map { range.clamped($0.load(index)) } ?? range.position) - range.start
        }
        return sum
    }
}
