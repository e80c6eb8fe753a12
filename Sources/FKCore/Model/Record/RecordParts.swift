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

extension SavedRange {
    /// The position, clamped to the range.
    package func clamped(_ position: Int64) -> Int64 { min(max(position, start), end ?? .max) }

    /// The range with its position advanced to `counter`. A counter behind the position or beyond the end is ignored,
    /// because only the record is reliable.
    package func advanced(to counter: Int64) -> SavedRange {
        guard counter > position, counter >= start, counter <= end ?? .max else { return self }
        var range = self
        range.position = counter
        return range
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
        /// The system performs the request, when it chooses to; `policy` has its reasons to delay it.
        case background
    }
    /// The kind of reason.
    package var reason: Reason
    /// When the wait ends; nil if unknown.
    package var until: Date?
    /// The host that asked for the pause or has its maximum of connections, with its port if that is not the default.
    package var host: String?
    /// The limit that was reached, of connections to the host or of slots.
    package var limit: Int?
    /// The limit of requests or connections to the host that the task waits for, if it was not the host that asked.
    package var policy: String?
    /// Creates a reason.
    package init(
        _ reason: Reason, until: Date? = nil, host: String? = nil, limit: Int? = nil, policy: String? = nil
    ) {
        self.reason = reason
        self.until = until
        self.host = host
        self.limit = limit
        self.policy = policy
    }
}

/// One line of the task's history, which `fk why` prints.
package struct HistoryLine: Codable, Sendable, Hashable {
    /// When it happened.
    package var time: Date
    /// The source: `attempt`, `resume` (bytes were discarded), `range` (requested again in another way), `proof`
    /// (found complete after a reboot), `part` (the part file has another owner), `coding` (the bytes have an
    /// unrequested content coding), or a middleware's name.
    package var by: String
    /// What happened, in one sentence.
    package var what: String
    /// The beginning of the line about a program that received a state.
    package static let told = "was told: "
    /// Creates a line.
    package init(time: Date, by: String, what: String) {
        self.time = time
        self.by = by
        self.what = what
    }
}
