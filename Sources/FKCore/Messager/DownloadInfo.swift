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
    /// Why an idle task is not running, for a person.
    public var waiting: String?
    /// When a retry is due.
    public var waitingUntil: Date?

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
/// Finished members stay in the sum with their whole length, so it never goes backwards when one finishes.
public struct BarrelInfo: Sendable, Hashable, Codable {
    /// The barrel's name.
    public var name: String
    /// `expected` is the sum of what is known, and nil only while nothing is known of any member.
    public var count: ByteCount
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
    }

    /// True when every member is complete; false for an empty barrel.
    public var isComplete: Bool { total > 0 && states[.complete] == total }
}
