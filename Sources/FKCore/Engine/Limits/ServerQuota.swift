import FKMiddleware
import Foundation

/// How many requests a server still allows, and when to send the next one. It follows the limits that answers announce
/// (`RateLimitFields`).
///
/// | requests left for this process, without those in flight | next request |
/// | --- | --- |
/// | a quarter of the quota or more | at once |
/// | fewer | the rest of the window is divided evenly among them |
/// | none | once the window has ended |
/// | unknown, because the window has ended | one, whose answer tells |
///
/// Servers round the time that is left to whole seconds, some up and some down. So a window ends between `low` and `high`,
/// and each answer narrows that. The last request of a window is sent at `low`, where it does no harm on either side.
///
/// If other clients use the same quota, the share of this process is its part of the requests used so far, less one request,
/// because no client knows its share exactly. Times are nanoseconds of a monotonic clock. A value type without locks.
struct ServerQuota: Sendable {
    private struct Window: Sendable {
        var quota: Double
        /// What the server has announced.
        var remaining: Double
        /// The requests that the announcement does not include.
        var sent: Double
        var low: Int64
        var high: Int64
        var length: Double?
        /// The first announcement, and the answers since.
        var first: Double
        var answers = 0.0
        /// The part of the quota that this process may use.
        var share: Double

        /// The requests that are left for this process.
        var available: Double { (remaining * share).rounded(.down) - sent - (share < 1 ? 1 : 0) }
        var isScarce: Bool { available * 4 < quota * share }
    }

    private var windows: [String: Window] = [:]
    /// The time of the last request.
    private var last: Int64 = 0
    /// The time of the last answer.
    private var noted: Int64 = 0
    /// The longest time without a request.
    private var longest: Int64 = 0
    /// The time of a request after the end of a window, until it is answered.
    private var probe: Int64?
    /// Time limit for the answer to such a request, in nanoseconds.
    private static let patience: Int64 = 2_000_000_000
    /// The used requests from which the share of this process is known.
    private static let sample = 8.0

    /// Records an answer.
    ///
    /// - Parameters:
    ///   - inFlight: the requests of this process that were sent and not answered.
    ///   - longest: the maximum time without a request in seconds.
    ///   - shards: the number of processes that share the quota.
    mutating func record(
        _ limits: [RateLimitFields.Limit], inFlight: Int, now: Int64, longest: Double, shards: Int = 1
    ) {
        probe = nil
        noted = now
        self.longest = Int64(longest * 1e9)
        windows = windows.filter { $0.value.high > now }
        for limit in limits {
            let (low, high) = (
                max(now, now + Int64((limit.seconds - 1) * 1e9)), now + Int64((limit.seconds + 1) * 1e9)
            )
            let old = windows[limit.name]
            var window = Window(
                quota: limit.quota ?? max(old?.first ?? 0, limit.remaining), remaining: limit.remaining,
                sent: Double(inFlight), low: low, high: high, length: limit.window ?? old?.length,
                first: limit.remaining, share: old?.share ?? 1)
            if let old, low <= old.high, high >= old.low, limit.remaining <= old.first {
                // The answers of one window may arrive in another order.
                window.remaining = min(old.remaining, limit.remaining)
                (window.low, window.high) = (max(old.low, low), min(old.high, high))
                (window.first, window.answers) = (old.first, old.answers + 1)
                let used = window.first - window.remaining
                if used >= Self.sample { window.share = min(1, (window.answers + Double(inFlight)) / used) }
            }
            window.share = min(window.share, 1 / Double(max(1, shards)))
            windows[limit.name] = window
        }
    }

    /// A request is sent.
    mutating func sent(now: Int64) {
        last = now
        for name in Array(windows.keys) {
            guard let window = windows[name] else { continue }
            if window.isScarce, hasEnded(window, now) { probe = now }
            windows[name]?.sent += 1
        }
    }

    private func hasEnded(_ window: Window, _ now: Int64) -> Bool {
        now >= (window.available < 1 ? window.high : window.low)
    }

    /// The time of the next request; nil if it may be sent at once.
    func next(now: Int64) -> Int64? {
        let times = windows.values.lazy.filter(\.isScarce).map { window in
            if hasEnded(window, now) { return probe.map { $0 + Self.patience } ?? now }
            if window.available < 1 { return window.high }
            return last + Int64(Double(window.low - last) / window.available)
        }
        return times.max().map { min($0, max(last, noted) + longest) }.flatMap { $0 > now ? $0 : nil }
    }

    /// The end of a window that has no request left.
    func exhausted(now: Int64) -> Int64? {
        windows.values.filter { $0.remaining < 1 && $0.high > now }.map(\.high).max()
    }

    /// True if nothing is known any more.
    func isOver(now: Int64) -> Bool { windows.values.allSatisfy { $0.high <= now } && probe == nil }

    /// What the server allows, for display.
    var words: String {
        guard let window = windows.values.first(where: \.isScarce) else { return "the server's own limit" }
        let time = window.length.map { " in \(Int($0)) s" } ?? ""
        return "the server allows \(Int(window.quota)) requests\(time)"
    }
}
