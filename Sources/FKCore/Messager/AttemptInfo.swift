import FKMiddleware
import Foundation

/// What one attempt of a task reports: that it began, how far it is, how it ended.
///
/// The plan A, A, B gives three attempts, one after the other, until the first success. Each attempt reports `.began`
/// first, then `.progressed` at the polled interval, and exactly one of `.succeeded`, `.failed` and `.stopped` last.
public struct AttemptInfo: Sendable, Hashable {
    /// What follows a failed attempt.
    public enum Next: Sendable, Hashable {
        /// The next attempt takes that entry of the plan, which may be the same again, at that time. Userinfo and query
        /// values of the URL are masked.
        case retry(url: String, at: Date)
        /// No further attempt: the task is in state `.error`.
        case gaveUp
    }

    /// Where the attempt stands.
    public enum Phase: Sendable, Hashable {
        /// The task holds a slot; nothing has been asked yet.
        case began
        /// Bytes of the whole file, those of earlier attempts included.
        case progressed(ByteCount)
        /// The file is complete.
        case succeeded
        /// What happened, and what follows.
        case failed(DownloadError, next: Next)
        /// Suspended, cancelled or trashed, or the downloader was closed.
        case stopped
    }

    /// The task.
    public var id: TaskID
    /// The entry of the plan that is tried: the task's URL or a mirror, with userinfo and query values masked.
    public var url: String
    /// From 1; starts again at 1 when the task is queued again by a verb.
    public var number: Int
    /// Where the attempt stands.
    public var phase: Phase
    /// Bytes that are in the part file now; after a failure: what the next attempt goes on from.
    public var kept: Int64
    /// Why bytes of earlier attempts were dropped before the end; nil when none were. After a digest or a response
    /// middleware has refused the file, nothing is kept and the error says why.
    public var dropReason: String?

    /// For tests of code that reads infos.
    public init(id: TaskID, url: String, number: Int, phase: Phase, kept: Int64 = 0, dropReason: String? = nil) {
        self.id = id
        self.url = url
        self.number = number
        self.phase = phase
        self.kept = kept
        self.dropReason = dropReason
    }
}
