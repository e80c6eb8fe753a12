import FKMiddleware
import Foundation

/// A report on one attempt of a task: its start, its progress, or its end.
///
/// The plan A, A, B has three attempts, one after the other, until the first success. Each attempt reports `.began`
/// first, then `.progressed` at the polled interval, and last exactly one of `.succeeded`, `.failed` and `.stopped`.
public struct AttemptInfo: Sendable, Hashable, Codable {
    /// What follows a failed attempt.
    public enum Next: Sendable, Hashable, Codable {
        /// The next attempt fetches that entry of the plan, possibly the same one, at that time. Userinfo and query
        /// values of the URL are masked.
        case retry(url: String, at: Date)
        /// There is no further attempt: the task is in state `.error`.
        case gaveUp
    }

    /// The phase of an attempt.
    public enum Phase: Sendable, Hashable, Codable {
        /// The task holds a slot; no request was sent yet.
        case began
        /// Bytes of the whole file, including those of earlier attempts.
        case progressed(ByteCount)
        /// The file is complete.
        case succeeded
        /// The error, and what follows.
        case failed(DownloadError, next: Next)
        /// The task was suspended, cancelled or trashed, or the downloader was closed.
        case stopped
    }

    /// The task's id.
    public var id: TaskID
    /// The entry of the plan that the attempt uses: the task's URL or a mirror, with userinfo and query values
    /// masked.
    public var url: String
    /// The number of the attempt, counted from 1. It starts again at 1 when a verb queues the task again.
    public var number: Int
    /// The phase of the attempt.
    public var phase: Phase
    /// Bytes in the part file now. After a failure, the next attempt continues from there.
    public var kept: Int64
    /// Why bytes of earlier attempts were discarded; nil if none were. After a digest or a response middleware
    /// rejected the file, no bytes are kept, and the error gives the reason.
    public var dropReason: String?

    /// Creates a report for tests. The engine creates its own.
    package init(id: TaskID, url: String, number: Int, phase: Phase, kept: Int64 = 0, dropReason: String? = nil) {
        self.id = id
        self.url = url
        self.number = number
        self.phase = phase
        self.kept = kept
        self.dropReason = dropReason
    }
}
