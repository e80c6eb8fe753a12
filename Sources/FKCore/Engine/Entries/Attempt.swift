import FKMiddleware

/// The facts of one attempt: how it began, and its faults so far. Reports and the decision about the next attempt read them.
struct Attempt {
    /// The begin, in nanoseconds of the monotonic clock.
    let began: Int64
    /// Its number among the attempts of the task, counted from 1.
    var number = 0
    /// The begin, for the application's middlewares.
    let instant = ContinuousClock.now
    /// The bytes that earlier attempts have received.
    let receivedBefore: Int64
    /// The URL of its entry in the plan.
    private let url: String
    /// The error of the attempt before; nil without one.
    let previousError: DownloadError?
    /// The error of this attempt; nil without one.
    private(set) var failure: DownloadError?
    /// Why bytes of earlier attempts were dropped: the first reason; nil if they were not.
    private(set) var dropReason: String?
    /// The bytes that were received and found to be wrong.
    private(set) var discarded: Int64 = 0
    /// True if the next attempt begins without a byte.
    private(set) var dropsAll = false
    /// True if bytes of several sources were combined.
    private var isCombined = false
    /// True if an existing file is not the expected one. No other URL changes that.
    private var isExistingRefused = false

    init(_ entry: TaskEntry, now: Int64) {
        began = now
        receivedBefore = entry.record.received
        url = entry.nextURL
        previousError = entry.record.error
    }

    /// The URL of its entry in the plan, masked for display.
    var shownURL: String { url.masked }

    // MARK: Events

    mutating func fail(_ error: DownloadError) { failure = error }

    mutating func drop(because reason: String) { dropReason = dropReason ?? reason }

    /// All received bytes are dropped.
    mutating func dropAll(_ received: Int64) {
        dropsAll = true
        discard(received)
    }

    /// Some received bytes are dropped, because they are wrong.
    mutating func discard(_ count: Int64) { discarded &+= count }

    /// The number of bytes that this attempt has received, also those that were dropped since.
    func progress(received: Int64) -> Int64 {
        max(0, received &+ discarded &- (dropReason == nil ? receivedBefore : 0))
    }

    mutating func combine() { isCombined = true }

    mutating func refuseExisting() { isExistingRefused = true }

    // MARK: What follows

    /// Decides what follows the failure.
    ///
    /// - Parameters:
    ///   - url: the URL of the attempt.
    ///   - received: the number of stored bytes.
    ///   - isResumed: true if the attempt requested the rest of stored bytes.
    ///   - random: a number in 0..<1 for the jitter.
    func decide(
        _ error: DownloadError, of record: TaskRecord, from url: String, received: Int64, isResumed: Bool,
        policy: RetryPolicy, random: Double
    ) -> RetryRules.Decision {
        // One source alone follows (`Transfer.isAlone`).
        if isCombined, dropsAll, error.code == .checksumMismatch { return .askAgain }
        let plan = isExistingRefused ? SourcePlan(own: url) : record.plan
        var policy = policy
        if let maxAttempts = record.task.options.maxAttempts { policy.maxAttempts = maxAttempts }
        return RetryRules.decide(
            error: error, attempt: record.attempts, policy: policy, mirrors: plan.count - 1,
            resumed: isResumed || url.looksSigned, random: random, counted: record.countedAttempts,
            isUnderway: received > 0 && !dropsAll, hasProgress: received > receivedBefore && !dropsAll,
            nextIsSame: plan[(record.attempts + record.firstOfPlan) % plan.count] == url, previous: previousError)
    }

    /// The average speed in bytes per second; nil if nothing was received.
    func averageSpeed(received: Int64, now: Int64) -> Int64? {
        let moved = received - (dropReason == nil ? receivedBefore : 0)
        let seconds = Double(now - began) / 1e9
        guard moved > 0, seconds > 0 else { return nil }
        return Int64(min(Double(moved) / seconds, 0x1p62))
    }
}
