import FKMiddleware

/// The rate limits of one task's transfers. The lowest limit applies. They may change during a transfer.
///
/// Safe from any thread.
package final class LimiterSet: Sendable {
    private let limiters: Locked<[RateLimiter]>
    /// A set that applies as well.
    private let base: LimiterSet?

    /// Creates a set. The default has no limit.
    ///
    /// - Parameter base: a set that applies as well; the default is none.
    package init(_ limiters: [RateLimiter] = [], and base: LimiterSet? = nil) {
        self.limiters = Locked(limiters)
        self.base = base
    }

    private var all: [RateLimiter] { limiters.withLock { $0 } + (base?.all ?? []) }

    /// Takes `n` bytes from every limiter or from none; see `RateLimiter.take(_:from:now:)`.
    package func take(_ n: Int, now: Int64) -> Double? {
        RateLimiter.take(n, from: base == nil ? limiters.withLock { $0 } : all, now: now)
    }

    /// Replaces the limiters for the next `take`. The caller must resume a paused transfer, because its pause was
    /// computed from the previous limits.
    package func replace(with limiters: [RateLimiter]) { self.limiters.withLock { $0 = limiters } }

    /// True if at least one limiter has a rate.
    package var isLimited: Bool { all.contains { $0.rate != nil } }
}
