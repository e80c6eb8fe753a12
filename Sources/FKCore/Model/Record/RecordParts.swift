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

/// The digest of the whole file that the first server announced. It binds every source of the task: a file that does not have
/// it never gets the file's name.
package struct AnnouncedDigest: Codable, Sendable, Hashable {
    package var checksum: Checksum
    /// The URL of the server.
    package var source: String

    package init(_ checksum: Checksum, by source: String) {
        self.checksum = checksum
        self.source = source
    }

    /// The digest that counts after a response.
    ///
    /// | the response | of the announcing server, or the task's own URL | of another source |
    /// | --- | --- | --- |
    /// | no digest is known yet | its digest, if it has one | the same |
    /// | a digest, with the file from its beginning | its digest | the known one |
    /// | a digest, with a part of the file | the stronger one | the known one |
    /// | no digest, with the file from its beginning | none, unless it is proven to be the same version | the known one |
    /// | no digest, with a part of the file | the known one | the known one |
    ///
    /// - Parameters:
    ///   - isOwn: true if `source` is the task's own address, whose word is above that of its mirrors: its URL, or the new address that
    ///     the user gave in its place (`relink`).
    ///   - isWhole: true if the response begins the file anew.
    ///   - isSame: true if the validators of the response prove the version that was known before.
    package static func after(
        _ known: AnnouncedDigest?, _ sent: Checksum?, from source: String, isOwn: Bool, isWhole: Bool, isSame: Bool
    ) -> AnnouncedDigest? {
        guard let known else { return sent.map { AnnouncedDigest($0, by: source) } }
        guard isOwn || known.source == source else { return known }
        guard isWhole else {
            return AnnouncedDigest(ServerDigest.stronger(known.checksum, sent) ?? known.checksum, by: source)
        }
        return sent.map { AnnouncedDigest($0, by: source) } ?? (isSame ? known : nil)
    }
}

/// The last progress of a task's attempts. Attempts are counted from there.
package struct ProgressMark: Codable, Sendable, Hashable {
    /// The bytes that were there: the most that the task has ever had.
    package var received: Int64
    /// The number of attempts that ended before the one with this progress.
    package var attempts: Int

    package init(received: Int64, attempts: Int) {
        self.received = received
        self.attempts = attempts
    }

    /// The number of bytes that count as progress: 1 MiB, or 1 % of the file if that is less.
    package static func step(of length: Int64?) -> Int64 { max(1, min(1 << 20, (length ?? .max) / 100)) }
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
    package var reason: Reason
    /// When the wait ends; nil if unknown.
    package var until: Date?
    /// The host that asked for the pause or has its maximum of connections, with its port if that is not the default.
    package var host: String?
    /// The limit that was reached, of connections to the host or of slots.
    package var limit: Int?
    /// The limit of requests or connections to the host that the task waits for, if it was not the host that asked.
    package var policy: String?
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
    package var time: Date
    /// The source: `attempt`, `resume` (bytes were discarded), `range` (requested again in another way), `proof`
    /// (found complete after a reboot), `part` (the part file has another owner), `coding` (the bytes have an
    /// unrequested content coding), or a middleware's name.
    package var by: String
    /// What happened, in one sentence.
    package var what: String
    /// The beginning of the line about a program that received a state.
    package static let told = "was told: "
    package init(time: Date, by: String, what: String) {
        self.time = time
        self.by = by
        self.what = what
    }
}
