import FKMiddleware
import Foundation

/// The validator of a response, to recognise its representation again (RFC 9110 section 8.8).
package struct Validator: Codable, Sendable, Hashable {
    /// The entity tag as sent, including quotes and `W/`.
    package var etag: String?
    /// The `Last-Modified` field as sent.
    package var lastModified: String?
    /// The `Date` field of the same response. It decides whether `lastModified` is strong (RFC 9110 section 8.8.2.2).
    package var date: String?
    /// The digest of the whole file in the response (`ServerDigest`).
    package var digest: Checksum?
    /// The content coding of the stored bytes (`ResponseHead.contentCoding`); nil for plain bytes.
    package var coding: String?

    /// Creates a validator; the default has no value.
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

/// One contiguous part of the file. One connection at a time fills it from its start.
package struct SavedRange: Codable, Sendable, Hashable {
    /// The offset of its first byte in the file.
    package var start: Int64
    /// The offset after its last byte; nil while the length is unknown.
    package var end: Int64?
    /// Bytes `start..<position` are in the part file. While the task runs, the live counter with the same index is
    /// newer.
    package var position: Int64
    /// Bytes `start..<synced` are synced.
    package var synced: Int64

    /// Creates a range; by default it is empty, and `synced` equals `start`.
    package init(start: Int64, end: Int64?, position: Int64? = nil, synced: Int64? = nil) {
        self.start = start
        self.end = end
        self.position = position ?? start
        self.synced = synced ?? start
    }
}

/// Why an idle task is not running.
package struct Waiting: Codable, Sendable, Hashable {
    /// The kind of reason.
    package enum Reason: String, Codable, Sendable, Hashable {
        /// All slots are taken.
        case slot
        /// The host has its maximum of connections, or asked for a pause.
        case host
        /// An attempt has failed; the next one is due at `until`.
        case retry
        /// The disk is full.
        case noSpace = "no space"
        /// No engine is running.
        case engine
        /// The queue is not active.
        case queue
    }
    /// The kind of reason.
    package var reason: Reason
    /// When the wait ends; nil if unknown.
    package var until: Date?
    /// The host that asked for the pause or has its maximum of connections, with its port if that is not the default.
    package var host: String?
    /// The limit that was reached, of connections to the host or of slots.
    package var limit: Int?
    /// Creates a reason.
    package init(_ reason: Reason, until: Date? = nil, host: String? = nil, limit: Int? = nil) {
        self.reason = reason
        self.until = until
        self.host = host
        self.limit = limit
    }
}

/// One line of the task's history, which `fk why` prints.
package struct Verdict: Codable, Sendable, Hashable {
    /// When it happened.
    package var time: Date
    /// The source: `attempt`, `resume` (bytes were discarded), `range` (requested again in another way), `proof`
    /// (found complete after a reboot), `part` (the part file has another owner), `coding` (the bytes have an
    /// unrequested content coding), or a middleware's name.
    package var by: String
    /// What happened, in one sentence.
    package var what: String
    /// Creates a line.
    package init(time: Date, by: String, what: String) {
        self.time = time
        self.by = by
        self.what = what
    }
}

/// The payload of an info file: everything about a task that must outlive the process.
///
/// It never contains what a request middleware adds, which is created again on each attempt.
package struct TaskRecord: Codable, Sendable, Hashable {
    /// The task's id.
    package var id: TaskID
    /// The description of the task.
    package var task: TaskDescription
    /// The submission number: unique in the work path, ascending.
    package var number: UInt64
    /// The state of the task.
    package var state: DownloadState
    /// Why the task waits; nil if it does not.
    @Seldom package var waiting: Waiting?
    /// The ranges of the file, as `SegmentPlanner` divides it.
    package var ranges: [SavedRange] = []
    /// Checksums of the received bytes as far as they are known, until the file is synced.
    @Seldom package var pieces: [PieceChecksum]?
    /// The length of the whole file in bytes; nil until a server has reported it.
    package var expected: Int64?
    /// The validator of the stored bytes; nil without one.
    @Seldom package var validator: Validator?
    /// The URL that `validator` belongs to; nil for the task's own. Validators of two URLs cannot be compared.
    @Seldom package var source: String?
    /// The address that requests use in place of the task's URL, which stays its identity (`Control.relink`); nil
    /// without one.
    @Seldom package var link: String?
    /// The number of attempts started so far.
    package var attempts: Int = 0
    /// The last error; nil without one.
    @Seldom package var error: DownloadError?
    /// The last response head; nil without one.
    @Seldom package var response: ResponseHead?
    /// The barrels that the task is a member of.
    package var barrels: [String] = []
    /// The name of the part file in the task's folder; nil without one.
    package var partName: String?
    /// The time of the part file's last write at the end of an attempt that left bytes in it, in nanoseconds since
    /// 1970. nil while an attempt writes, so that the next engine can tell whether the attempt ended regularly.
    @Seldom package var partTime: Int64?
    /// The absolute path of the finished file.
    package var path: String?
    /// The finished file as the task left it, which proves that a file at `path` is the task's own (`owns`). Set just
    /// before the file gets its final name.
    @Seldom package var written: FileIdentity?
    /// Files of this task that were set aside. They are removed when it completes or is trashed.
    @Seldom package var setAside: [SetAsideFile]?
    /// Absolute paths where the finished file still is after a response middleware has moved it. They are removed
    /// after this record is written.
    @Seldom package var leftBehind: [String]?
    /// When the task was created.
    package var created: Date
    /// When its first attempt started.
    package var started: Date?
    /// When it completed or finally failed.
    package var finished: Date?
    /// When the application last marked the finished file as used (`Control.markUsed`).
    @Seldom package var lastUsed: Date?
    /// Bytes per second: smoothed at the last write while the task runs, the average of the last attempt afterwards.
    package var bytesPerSecond: Int64?
    /// True if the file at `path` existed before and only counts as the result. It is never deleted.
    package var isForeign: Bool?
    /// True if the finished file is synced.
    package var synced: Bool?
    /// The boot in which `ranges` and `synced` were written. Live counters of another boot are not trusted.
    package var bootID: String?
    /// False if no length or last chunk confirmed the end of the body.
    package var lengthVerified: Bool?
    /// The history, newest last, at most 8 lines.
    package var history: [Verdict] = []

    /// Creates the record of a new task.
    ///
    /// - Parameter id: the task's id, if it was computed already; nil, the default, computes it.
    package init(task: TaskDescription, id: TaskID? = nil, number: UInt64, created: Date) {
        self.id = id ?? task.id
        self.task = task
        self.number = number
        state = .idle
        self.created = created
    }

    /// The URLs to try, in order: the task's own or the address in its place, then its mirrors.
    package var plan: [String] { [link ?? task.url] + task.mirrors }

    /// The entry of the plan for the next attempt: 0 is the task's URL, the others are its mirrors. An interrupted
    /// attempt repeats its entry; a failed one is followed by the next entry.
    package var nextURLIndex: Int {
        let hasFailed = waiting?.until != nil || state == .idle && error != nil
        return (hasFailed ? attempts : max(0, attempts - 1)) % (task.mirrors.count + 1)
    }

    /// The URL for the next attempt.
    package var nextURL: String { url(ofPlan: nextURLIndex) }

    /// An entry of `plan`.
    func url(ofPlan index: Int) -> String { index == 0 ? link ?? task.url : task.mirrors[index - 1] }

    /// The bytes in the part file or the finished file at the last write of the record.
    package var received: Int64 { received(counters: nil) }

    /// The received bytes, with the live counters of a running task. It is the only formula for them.
    package func received(counters: LiveCounters?) -> Int64 {
        var sum: Int64 = 0
        for (index, range) in ranges.enumerated() {
            sum += (counters.map { range.clamped($0.load(index)) } ?? range.position) - range.start
        }
        return sum
    }
}

extension TaskRecord: RecordObject {
    static let blank = TaskRecord(task: .blank, number: 0, created: Date(timeIntervalSince1970: 0))

    /// Every member of the payload. Common members come with a fast form, rare ones go through Foundation's encoder.
    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("id", &id)
        try visitor.field("task", &task)
        try visitor.field("number", &number)
        try visitor.field("state", &state)
        try visitor.field("waiting", &_waiting)
        try visitor.field("ranges", &ranges)
        try visitor.field("pieces", &_pieces)
        try visitor.field("expected", &expected)
        try visitor.field("validator", &_validator)
        try visitor.field("source", &_source)
        try visitor.field("link", &_link)
        try visitor.field("attempts", &attempts)
        try visitor.field("error", &_error)
        try visitor.field("response", &_response)
        try visitor.field("barrels", &barrels)
        try visitor.field("partName", &partName)
        try visitor.field("partTime", &_partTime)
        try visitor.field("path", &path)
        try visitor.field("written", &_written)
        try visitor.rare("setAside", &setAside)
        try visitor.field("leftBehind", &_leftBehind)
        try visitor.field("created", &created)
        try visitor.field("started", &started)
        try visitor.field("finished", &finished)
        try visitor.field("lastUsed", &_lastUsed)
        try visitor.field("bytesPerSecond", &bytesPerSecond)
        try visitor.field("isForeign", &isForeign)
        try visitor.field("synced", &synced)
        try visitor.field("bootID", &bootID)
        try visitor.field("lengthVerified", &lengthVerified)
        try visitor.field("history", &history)
    }
}
