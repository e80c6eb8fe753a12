import FKMiddleware
import Foundation

/// The payload of an info file: everything about a task that must outlive the process.
///
/// It never contains what a request middleware adds, which is created again on each attempt.
///
/// Copies share their values until one of them changes, so a copy costs one reference. The values change only by
/// transitions (TaskRecord+Transitions.swift), which keep them consistent. Five fields are open, because each has
/// one other owner: `state` (`TaskEntry.set`, which reports it), `task` (`TaskControl`), `barrels` (`TaskBook`), and
/// `bootID` and `bytesPerSecond` (the writing of a record).
package struct TaskRecord: Sendable, Hashable {
    private var shared: SharedFields<Fields>
    /// The generation of the info file that it was read from; 0 for another record. It is neither stored nor compared.
    package var generation: UInt64 = 0

    /// The values for a change.
    var own: Fields {
        @inline(__always)
        _read { yield shared.fields }
        @inline(__always)
        _modify { yield &SharedFields.only(&shared).fields }
    }

    package var id: TaskID { own.id }
    package var task: TaskDescription {
        get { own.task }
        set { own.task = newValue }
    }
    /// The submission number: unique in the work path, ascending.
    package var number: UInt64 { own.number }
    package var state: DownloadState {
        get { own.state }
        set { own.state = newValue }
    }
    /// Why the task waits; nil if it does not.
    package var waiting: Waiting? { own.waiting }
    /// The ranges of the file, as `SegmentPlanner` divides it.
    package var ranges: [SavedRange] { own.ranges }
    /// The known checksums of the received bytes, until the file is synced.
    package var pieces: [PieceChecksum]? { own.pieces }
    /// The length of the whole file in bytes; nil until a server has reported it.
    package var expected: Int64? { own.expected }
    /// The validator of the stored bytes; nil without one.
    package var validator: Validator? { own.validator }
    package var serverDigest: Checksum? { own.validator?.digest }
    /// The URL that `validator` belongs to; nil for the task's own. Validators of two URLs cannot be compared.
    package var source: String? { own.source }
    /// The digest of the first server, which binds every source of the task; nil if none has announced one.
    package var announced: AnnouncedDigest? { own.announced }
    /// The last progress of failed attempts; nil without any.
    package var progress: ProgressMark? { own.progress }
    /// True if the stored bytes were joined only because a digest of the task vouched for them (`FileVersion.needsDigest`).
    package var needsDigest: Bool? { own.needsDigest }
    /// The address that requests use in place of the task's URL, which stays its identity (`DownloadTask.relink`); nil
    /// without one.
    package var link: String? { own.link }
    /// Mirrors that a server has offered for a file with a digest. They follow the task's own in the plan.
    package var offered: [String]? { own.offered }
    /// The number of attempts started so far.
    package var attempts: Int { own.attempts }
    /// The last error; nil without one.
    package var error: DownloadError? { own.error }
    /// Where the bytes came from, for `fk provenance`; nil if all came from the task's own URL, and for records of version 1.0.
    package var trace: Trace? { own.trace }
    /// The version that completed the file; nil until then, and for records of version 1.0.
    package var completedBy: String? { own.completedBy }
    /// The last response head; nil without one.
    package var response: ResponseHead? { own.response }
    package var barrels: [String] {
        get { own.barrels }
        set { own.barrels = newValue }
    }
    /// The name of the part file; nil without one. TaskRecord+Part.swift says where it is.
    package var partName: String? { own.partName }
    /// The folder of the part file; nil for the destination.
    package var partFolder: String? { own.partFolder }
    /// The time of the part file's last write at the end of an attempt that left bytes in it, in nanoseconds since
    /// 1970. nil while an attempt writes, so that the next engine can tell whether the attempt ended regularly.
    package var partTime: Int64? { own.partTime }
    /// The absolute path of the finished file.
    package var path: String? { own.path }
    /// The finished file as the task left it, which proves that a file at `path` is the task's own (`owns`). Set just
    /// before the file gets its final name.
    package var written: FileIdentity? { own.written }
    /// Files of this task that were set aside. They are removed when it completes or is trashed.
    package var setAside: [SetAsideFile]? { own.setAside }
    /// The finished file that a refresh or repair is to replace; nil without one.
    package var former: FormerFile? { own.former }
    /// Absolute paths where the finished file still is after a response middleware has moved it. They are removed
    /// after this record is written.
    package var leftBehind: [String]? { own.leftBehind }
    package var created: Date { own.created }
    /// When its first attempt started.
    package var started: Date? { own.started }
    /// When it completed or finally failed.
    package var finished: Date? { own.finished }
    /// When the application last marked the finished file as used (`Control.markUsed`).
    package var lastUsed: Date? { own.lastUsed }
    /// Bytes per second: smoothed at the last write while the task runs, the average of the last attempt afterwards.
    package var bytesPerSecond: Int64? {
        get { own.bytesPerSecond }
        set { own.bytesPerSecond = newValue }
    }
    /// True if the file at `path` existed before and only counts as the result. It is never deleted.
    package var isForeign: Bool? { own.isForeign }
    /// True if the finished file is synced.
    package var synced: Bool? { own.synced }
    /// The boot in which `ranges` and `synced` were written. Live counters of another boot are not trusted.
    package var bootID: String? {
        get { own.bootID }
        set { own.bootID = newValue }
    }
    /// False if no length or last chunk confirmed the end of the body.
    package var lengthVerified: Bool? { own.lengthVerified }
    /// The history, newest last, at most 8 lines.
    package var history: [HistoryLine] { own.history }

    /// Creates the record of a new task.
    ///
    /// - Parameter id: the task's id, if it was computed already; nil, the default, computes it.
    package init(task: TaskDescription, id: TaskID? = nil, number: UInt64, created: Date) {
        var own = task
        if task.startsSuspended != nil { own.startsSuspended = nil }
        if !task.words.isEmpty { own.words = [] }
        shared = SharedFields(
            Fields(
                id: id ?? task.id, task: own, number: number, state: task.startsSuspended == true ? .suspend : .idle,
                created: created))
    }

    /// True if no attempt was ever made.
    package var isUntouched: Bool {
        started == nil && attempts == 0 && ranges.isEmpty && partName == nil && path == nil
    }

    /// The entry of the plan for the next attempt: 0 is the task's URL, the others are its mirrors. A failed attempt is
    /// followed by the next entry. An interrupted one does not count, and repeats its entry.
    package var nextURLIndex: Int {
        let begun = state == .action || state == .complete ? max(0, attempts - 1) : attempts
        return (begun + firstOfPlan) % planCount
    }

    /// The URL for the next attempt.
    package var nextURL: String { address(nextURLIndex) }

    /// The bytes in the part file or the finished file at the last write of the record. A forged record may have any ranges.
    package var received: Int64 {
        ranges.reduce(0) { $0 &+ ($1.position &- $1.start) }
    }
}

extension TaskRecord: Codable {
    init(_ fields: Fields) { shared = SharedFields(fields) }

    package init(from decoder: any Decoder) throws { self.init(try Fields(from: decoder)) }

    package func encode(to encoder: any Encoder) throws { try own.encode(to: encoder) }

    package static func == (one: Self, other: Self) -> Bool { one.shared == other.shared }

    package func hash(into hasher: inout Hasher) { shared.hash(into: &hasher) }
}
