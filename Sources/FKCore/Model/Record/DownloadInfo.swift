import FKMiddleware
import Foundation

/// The state of a task at one moment, as observers receive it.
public struct DownloadInfo: Sendable, Hashable {
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
    package var path: String?
    /// The name of the file: that of the finished file, the one that was set, or else the one that the URL gives, which the
    /// server's answer may still change. nil only for a task that is gone.
    public var fileName: String? {
        get { knownName ?? (url.isEmpty ? nil : FileNameRules.name(url: url, head: nil)) }
        set { knownName = newValue }
    }
    /// The name that was set or that the finished file has; nil while only the URL gives one.
    package var knownName: String?
    /// The barrels that the task is a member of.
    public var barrels: [String]
    /// When the last byte arrived, exact to a second. For a task that is not running, the last change of its part file;
    /// for a complete one, the time of completion. nil if no byte has arrived, or if nothing is known of it.
    public var lastByteAt: Date?
    /// Why the task waits, as in its record; nil if it does not.
    package var wait: Waiting?
    /// The maximum number of attempts; nil if unknown. It is not part of the JSON form.
    package var maxAttempts: Int?
    /// The priority in the queue; nil if unknown.
    package var priority: Int?
    /// The received ranges of an unfinished file, not joined. It is not part of the JSON form.
    package var received: [Range<Int64>] = []
    /// The connections that receive the file; 0 while the task does not run. It is not part of the JSON form.
    package var connections = 0
    /// True if the finished file was there before (`ExistingFilePolicy.skip`): nothing of it was fetched. It is not part of the JSON form.
    package var isForeign = false
    /// The length with which the task left its finished file; nil if it is not known. It is not part of the JSON form.
    package var lengthLeft: Int64?
    /// What the received bytes lack of those that servers have sent since the task is in memory: bytes that were dropped, less those
    /// that came from another file. It is not part of the JSON form.
    package var besides: Int64 = 0
    /// The bytes that servers have sent, of which only differences count.
    package var sent: Int64 { count.received &+ besides }
    /// The place of this state among the task's states. It is not part of the JSON form.
    package var order = ChangeOrder.unknown

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

    /// Why an idle task is not running; nil for other tasks.
    public var waiting: WaitReason? {
        get { wait.map { WaitReason($0) } }
        set { wait = newValue.map { Waiting(of: $0) } }
    }
    /// When the next attempt is due or the host's pause ends; nil if the task waits for neither, or the time is unknown.
    package var waitingUntil: Date? { wait?.until }
    /// The host that asked for the delay or has its maximum of connections; nil if it is not about a host. It has its
    /// port unless that is the default of the scheme.
    package var waitingHost: String? { wait?.host }
    /// The limit that was reached, of connections to the host or of slots; nil otherwise.
    package var waitingLimit: Int? { wait?.limit }
    /// The limit of requests or connections to the host that the task waits for, such as `arxiv.org: 20 requests a minute`;
    /// nil if it waits for none.
    package var waitingPolicy: String? { wait?.policy }

    /// The bytes of the file that are there, in order and without overlaps: of an unfinished file often several ranges, because it has
    /// several connections or a reader that began in the middle. `DownloadTask.read(at:count:)` reads them at once. Bytes that a list's
    /// digests of pieces may still refuse are among them. Empty for an info that was decoded.
    public var availableRanges: [Range<Int64>] {
        if state == .complete { return count.received > 0 ? [0..<count.received] : [] }
        var result: [Range<Int64>] = []
        for range in received.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = result.last, range.lowerBound <= last.upperBound {
                result[result.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                result.append(range)
            }
        }
        return result
    }

    /// The progress, in 0...1; nil while the length is unknown. An empty file counts as 1.
    public var fraction: Double? { count.fraction }

    /// The finished file; nil until the task is complete.
    public var fileURL: URL? { path.map { URL(fileURLWithPath: $0, isDirectory: false) } }

    /// The time until the last byte at the present speed. nil while the task does not run, nothing arrives, or the
    /// length is unknown.
    public var estimatedTimeRemaining: Duration? {
        guard state == .action else { return nil }
        return RemainingTime.estimate(
            received: count.received, expected: count.expected, bytesPerSecond: bytesPerSecond)
    }
}

/// The JSON form: `waiting` is a text (`slot`, `host`, `retry`, `no space`, `engine`, `queue`), and `waitingUntil`,
/// `waitingHost`, `waitingLimit` and `waitingPolicy` are members of their own. Members without a value are left out.
extension DownloadInfo: Codable {
    private enum CodingKeys: String, CodingKey {
        case id, url, state, count, bytesPerSecond, error, attempts, path, fileName, barrels
        case waiting, waitingUntil, waitingHost, waitingLimit, waitingPolicy, lastByteAt
    }

    /// Decodes an info.
    ///
    /// - Throws: `DecodingError` if a member is missing or has another form.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: try values.decode(TaskID.self, forKey: .id), url: try values.decode(String.self, forKey: .url),
            state: try values.decode(DownloadState.self, forKey: .state),
            count: try values.decode(ByteCount.self, forKey: .count))
        bytesPerSecond = try values.decode(Double.self, forKey: .bytesPerSecond)
        error = try values.decodeIfPresent(DownloadError.self, forKey: .error)
        attempts = try values.decode(Int.self, forKey: .attempts)
        path = try values.decodeIfPresent(String.self, forKey: .path)
        knownName = try values.decodeIfPresent(String.self, forKey: .fileName)
        barrels = try values.decode([String].self, forKey: .barrels)
        lastByteAt = try values.decodeIfPresent(Date.self, forKey: .lastByteAt)
        if let reason = try values.decodeIfPresent(Waiting.Reason.self, forKey: .waiting) {
            wait = Waiting(
                reason, until: try values.decodeIfPresent(Date.self, forKey: .waitingUntil),
                host: try values.decodeIfPresent(String.self, forKey: .waitingHost),
                limit: try values.decodeIfPresent(Int.self, forKey: .waitingLimit),
                policy: try values.decodeIfPresent(String.self, forKey: .waitingPolicy))
        }
    }

    /// Encodes an info.
    ///
    /// - Throws: the encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(id, forKey: .id)
        try values.encode(url, forKey: .url)
        try values.encode(state, forKey: .state)
        try values.encode(count, forKey: .count)
        try values.encode(bytesPerSecond, forKey: .bytesPerSecond)
        try values.encodeIfPresent(error, forKey: .error)
        try values.encode(attempts, forKey: .attempts)
        try values.encodeIfPresent(path, forKey: .path)
        try values.encodeIfPresent(knownName, forKey: .fileName)
        try values.encode(barrels, forKey: .barrels)
        try values.encodeIfPresent(wait?.reason, forKey: .waiting)
        try values.encodeIfPresent(wait?.until, forKey: .waitingUntil)
        try values.encodeIfPresent(wait?.host, forKey: .waitingHost)
        try values.encodeIfPresent(wait?.limit, forKey: .waitingLimit)
        try values.encodeIfPresent(wait?.policy, forKey: .waitingPolicy)
        try values.encodeIfPresent(lastByteAt, forKey: .lastByteAt)
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
    /// The progress, in 0...1: bytes received of bytes expected. nil until the lengths of all members are known; those of
    /// failed and cancelled members may stay unknown.
    ///
    /// It is 1 only if every member is complete, and it never decreases. When bytes are discarded, members join or a
    /// length changes, it stays until the bytes catch up. It starts again when members join a complete barrel.
    public var fraction: Double?
    /// The number of members in each state. States without members are left out.
    public var states: [DownloadState: Int]
    /// The number of members.
    public var total: Int
    /// The bytes a second of all members, finished ones included, smoothed over about five seconds; 0 while none runs.
    public var bytesPerSecond: Double
    /// The number of members of unknown length that can still run. `fraction` waits for these lengths.
    public var unknownLengths: Int
    /// The number of complete members whose files are gone or have another length, where that was looked for.
    package var lostFiles: Int?

    /// Creates an info for tests. Other values are 0 or nil.
    public init(name: String, count: ByteCount = .init(), states: [DownloadState: Int] = [:], total: Int = 0) {
        self.name = name
        self.count = count
        self.states = states
        self.total = total
        bytesPerSecond = 0
        unknownLengths = 0
        fraction = count.fraction
    }

    /// False while the length of any member is unknown, in whichever state. `count.expected` is then a lower bound.
    package var isExpectedKnown: Bool { count.expected != nil && !count.isLowerBound }

    /// The share of complete members, in 0...1; 0 for an empty barrel.
    public var fileFraction: Double {
        total > 0 ? Double((states[.complete] ?? 0) - (lostFiles ?? 0)) / Double(total) : 0
    }

    /// The time until the last byte of all members at the present speed. nil while nothing arrives, or while the length of
    /// a member that can still run is unknown. Members that do not run count with the bytes they miss.
    public var estimatedTimeRemaining: Duration? {
        guard unknownLengths == 0, !isComplete else { return nil }
        return RemainingTime.estimate(
            received: count.received, expected: count.expected, bytesPerSecond: bytesPerSecond)
    }

    /// True when every member is complete; false for an empty barrel. In the sums of `Barrel` and `BarrelModel`, a member counts
    /// only while its file is at its place.
    public var isComplete: Bool { total > 0 && states[.complete] == total && lostFiles ?? 0 == 0 }
}

extension TaskRecord {
    /// When the last byte arrived, by the record: not while the task runs.
    package var lastByteAt: Date? {
        if state == .complete { return isForeign == true ? nil : finished }
        return partTime.map { Date(timeIntervalSince1970: Double($0) / 1e9) }
    }
}

extension [SavedRange] {
    /// The received bytes of each range that has some.
    package var received: [Range<Int64>] { compactMap { $0.start < $0.position ? $0.start..<$0.position : nil } }
}

extension DownloadInfo {
    /// The info of a task as its info file shows it to another process.
    package init(_ record: TaskRecord) {
        (id, url, state) = (record.id, record.task.url, record.state)
        count = ByteCount(received: record.received, expected: record.expected)
        bytesPerSecond = 0
        error = record.shownError
        attempts = record.attempts
        path = record.state == .complete ? record.path : nil
        knownName = record.path?.lastPathPart ?? record.task.fileName
        barrels = record.barrels
        isForeign = record.state == .complete && record.isForeign == true
        lengthLeft = record.state == .complete ? record.lengthLeft : nil
        if record.state == .idle { wait = record.waiting }
        priority = record.task.priority
        if record.generation > 0 {
            order = ChangeOrder(number: record.number, generation: record.generation, isInMemory: false)
        }
        lastByteAt = record.lastByteAt
        if state != .complete { received = record.ranges.received }
        if let most = record.task.optionsBox?.value.maxAttempts {
            maxAttempts = max(most + record.attemptsBeforeProgress, record.plan.count)
        }
        if state == .action { connections = max(1, record.ranges.count { $0.position < $0.end ?? .max }) }
    }
}

extension DownloadInfo: CustomStringConvertible {
    /// The id, the state, the bytes, the error and the URL, with the secrets of the URL masked.
    public var description: String {
        let expected = count.expected.map { "\($0)" } ?? "?"
        let failure = self.error.map { ", \($0)" } ?? ""
        let bytes = "\(count.received)/\(expected) bytes"
        return "DownloadInfo(\(id.short), \(state), \(bytes), \(url.masked)\(failure))"
    }
}
