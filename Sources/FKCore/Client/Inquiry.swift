import FKMiddleware
import Foundation

/// A request in the mailbox whose answer somebody waits for.
struct Inquiry {
    let id: MessageID
    /// Since when neither the request nor an answer is there, or the request is carried out and the answer missing.
    private var missingSince: Int64?

    /// Seconds an answer may take once the request is out of the mailbox.
    private static let patience: Double = 5

    init(_ id: MessageID) { self.id = id }

    /// The answer; nil while there is none.
    ///
    /// - Parameter now: nanoseconds of a monotonic clock.
    /// - Throws: `.disk` when there will be none: it could not be written, or somebody has removed it.
    mutating func answer(_ mailbox: Mailbox, now: Int64) throws -> EngineReply? {
        let standing = mailbox.standing(of: id)
        if let reply = try mailbox.readReply(id) { return reply }
        guard standing != .waiting else {
            missingSince = nil
            return nil
        }
        let since = missingSince ?? now
        missingSince = since
        guard Double(now - since) / 1e9 > Self.patience else { return nil }
        try mailbox.withdraw(id)
        throw Mailbox.lostAnswer
    }
}
