import FKMiddleware

/// The rate limits of one task's transfers. The lowest limit applies. They may change during a transfer.
///
/// Safe from any thread.
package final class LimiterSet: Sendable {
    private let limiters: Locked<[RateLimiter]>

    /// Creates a set. The default has no limit.
    package init(_ limiters: [RateLimiter] = []) { self.limiters = Locked(limiters) }

    /// Takes `n` bytes from every limiter or from none; see `RateLimiter.take(_:from:now:)`.
    package func take(_ n: Int, now: Int64) -> Double? {
        RateLimiter.take(n, from: limiters.withLock { $0 }, now: now)
    }

    /// Replaces the limiters for the next `take`. The caller must resume a paused transfer, because its pause was
    /// computed from the previous limits.
    package func replace(with limiters: [RateLimiter]) { self.limiters.withLock { $0 = limiters } }

    /// True if at least one limiter has a rate.
    package var isLimited: Bool { limiters.withLock { $0 }.contains { $0.rate != nil } }
}
