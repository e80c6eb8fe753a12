import FKMiddleware

/// The rate limits that hold for one task's transfers, the tightest of which counts. They may change while bytes flow.
///
/// Safe from any thread.
package final class LimiterSet: Sendable {
    private let limiters: Locked<[RateLimiter]>

    package init(_ limiters: [RateLimiter] = []) { self.limiters = Locked(limiters) }

    /// As `RateLimiter.take`.
    package func take(_ n: Int, now: Int64) -> Double? {
        RateLimiter.take(n, from: limiters.withLock { $0 }, now: now)
    }

    /// Acts on the next `take`. A transfer that is paused has to be resumed: its pause was that of the former limits.
    package func replace(with limiters: [RateLimiter]) { self.limiters.withLock { $0 = limiters } }

    /// At least one of them has a rate.
    package var isLimited: Bool { limiters.withLock { $0 }.contains { $0.rate != nil } }
}
