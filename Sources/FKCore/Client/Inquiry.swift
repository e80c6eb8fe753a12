import FKEngine
import FKMiddleware
import Foundation

/// A request in the mailbox, and the wait for its answer.
struct Inquiry {
    let id: MessageID
    /// The time at which the request was first seen gone, or done, without an answer.
    private var missingSince: Int64?

    /// The seconds an answer may take after the request has left the mailbox.
    private static let patience: Double = 5

    init(_ id: MessageID) { self.id = id }

    /// The answer; nil while there is none.
    ///
    /// - Parameter now: nanoseconds of a monotonic clock.
    /// - Throws: `.disk` if there will be no answer, because it could not be written or was removed.
    mutating func answer(_ mailbox: Mailbox, now: Int64) throws -> EngineReply? {
        let requestState = mailbox.requestState(of: id)
        if let reply = try mailbox.readReply(id) { return reply }
        guard requestState != .waiting else {
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
