import FKMiddleware
import Foundation

/// The state of a task at one moment, as observers receive it.
public struct DownloadInfo: Sendable, Hashable, Codable {
    /// The task's id.
    public var id: TaskID
    /// The URL that the task was created with, percent-encoded.
    public var url: String
    /// The state of the task.
    public var state: DownloadState
    /// Bytes received, received at the previous report, and expected: FKDownloader's three numbers.
    public var count: ByteCount
    /// The speed, smoothed over about five seconds; 0 while the task does not run.
    public var bytesPerSecond: Double
    /// The last error, in state `.error` and while a retry is due; else nil.
    public var error: DownloadError?
    /// The number of attempts started so far.
    public var attempts: Int
    /// The path of the finished file; nil until the task is complete.
    public var path: String?
    /// The file name that was set or that the server gave; nil until one is known.
    public var fileName: String?
    /// The barrels that the task is a member of.
    public var barrels: [String]
    /// Why an idle task is not running: `slot` (all slots are taken), `host` (the host has its maximum of
    /// connections, or asked for a pause), `retry`, `no space`, `engine` (no process runs it) or `queue` (the queue
    /// is not active). nil for other tasks.
    public var waiting: String?
    /// When the retry is due or the host's pause ends; nil if unknown.
    public var waitingUntil: Date?
    /// The host that asked for the pause or has its maximum of connections; nil if it is not about a host.
    public var waitingHost: String?
    /// The limit that was reached, of connections to the host or of slots; nil otherwise.
    public var waitingLimit: Int?

    /// Creates an info for tests. Other values are 0, empty or nil.
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
/// Complete members count with their whole length, so the sum does not fall when one completes. The length of a file
/// is known once a server has reported it. Until it is known for all members, the sum is a lower bound and is marked
/// as such.
public struct BarrelInfo: Sendable, Hashable, Codable {
    /// The barrel's name.
    public var name: String
    /// The byte counts. `expected` is the sum of the known lengths; nil while no length is known.
    public var count: ByteCount
    /// The progress, in 0...1: bytes received of bytes expected. nil until the lengths of all members are known.
    ///
    /// It is 1 only if every member is complete, and it never decreases. When bytes are discarded, members join or a
    /// length changes, it stays until the bytes catch up. It starts again when members join a complete barrel.
    public var fraction: Double?
    /// The number of members in each state. States without members are left out.
    public var states: [DownloadState: Int]
    /// The number of members.
    public var total: Int
    /// The sum of the running members' speeds, smoothed over about five seconds.
    public var bytesPerSecond: Double

    /// Creates an info for tests. Other values are 0 or nil.
    public init(name: String, count: ByteCount = .init(), states: [DownloadState: Int] = [:], total: Int = 0) {
        self.name = name
        self.count = count
        self.states = states
        self.total = total
        bytesPerSecond = 0
        fraction = count.fraction
    }

    /// False while the length of any member is unknown, in whichever state. `count.expected` is then a lower bound.
    public var isExpectedKnown: Bool { count.expected != nil && !count.isLowerBound }

    /// The share of complete members, in 0...1; 0 for an empty barrel.
    public var fileFraction: Double { total > 0 ? Double(states[.complete] ?? 0) / Double(total) : 0 }

    /// True when every member is complete; false for an empty barrel.
    public var isComplete: Bool { total > 0 && states[.complete] == total }
}
