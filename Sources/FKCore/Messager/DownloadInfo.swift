import FKMiddleware
import Foundation

/// A task as its observers see it at one moment.
public struct DownloadInfo: Sendable, Hashable, Codable {
    /// The task's id.
    public var id: TaskID
    /// The URL the task was built with, percent-encoded.
    public var url: String
    /// Where the task stands.
    public var state: DownloadState
    /// Received, received at the last report, expected: FKDownloader's three numbers.
    public var count: ByteCount
    /// Smoothed over about five seconds; 0 while the task does not run.
    public var bytesPerSecond: Double
    /// Set in state `.error`, and while a retry is due.
    public var error: DownloadError?
    /// Attempts begun so far.
    public var attempts: Int
    /// The finished file; nil until it is complete.
    public var path: String?
    /// The name asked for, or found so far.
    public var fileName: String?
    /// The barrels it is a member of.
    public var barrels: [String]
    /// Why an idle task is not running: `slot` (all slots are taken), `host` (its host is full, or asked to be left alone),
    /// `retry`, `no space`, `engine` (no process runs it) or `queue` (the queue is not active).
    public var waiting: String?
    /// When a retry is due, or the host may be asked again.
    public var waitingUntil: Date?
    /// The host that asked to be left alone until then, or that has as many connections as it may have.
    public var waitingHost: String?
    /// The limit that is reached: connections of that host, or slots.
    public var waitingLimit: Int?

    /// For tests of code that reads infos; the rest is 0, empty or nil.
    public init(id: TaskID, url: String, state: DownloadState, count: ByteCount = .init()) {
        self.id = id
        self.url = url
        self.state = state
        self.count = count
        bytesPerSecond = 0
        attempts = 0
        barrels = []
    }
}

/// The sum over a barrel's members at one moment.
///
/// Finished members stay in the sum with their whole length, so it never goes backwards when one finishes. A server tells a
/// file's length when the file is asked for: until each was, the sum is a lower bound and says so.
public struct BarrelInfo: Sendable, Hashable, Codable {
    /// The barrel's name.
    public var name: String
    /// `expected` is the sum of what is known, and nil only while nothing is known of any member.
    public var count: ByteCount
    /// How much is done, in 0...1: bytes received of bytes expected. Nil until the lengths of all members are known.
    ///
    /// It is 1 only when every member is complete, and it never falls: where bytes are dropped, members join or a length turns
    /// out to be another one, it stays until the bytes catch up. Members that join a complete barrel begin anew.
    public var fraction: Double?
    /// How many members are in each state; states without members are left out.
    public var states: [DownloadState: Int]
    /// Members in all.
    public var total: Int
    /// The sum over the members that run, smoothed over about five seconds.
    public var bytesPerSecond: Double

    /// For tests of code that reads infos.
    public init(name: String, count: ByteCount = .init(), states: [DownloadState: Int] = [:], total: Int = 0) {
        self.name = name
        self.count = count
        self.states = states
        self.total = total
        bytesPerSecond = 0
        fraction = count.fraction
    }

    /// False while the length of any member is unknown, in whichever state: `count.expected` is then a lower bound.
    public var isExpectedKnown: Bool { count.expected != nil && !count.isLowerBound }

    /// Complete members of all, in 0...1; 0 for an empty barrel.
    public var fileFraction: Double { total > 0 ? Double(states[.complete] ?? 0) / Double(total) : 0 }

    /// True when every member is complete; false for an empty barrel.
    public var isComplete: Bool { total > 0 && states[.complete] == total }
}
