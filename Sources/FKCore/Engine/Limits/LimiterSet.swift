import FKMiddleware

/// The rate limits of one task's transfers. The lowest limit applies, and in each the task has its share. They may change during a
/// transfer.
///
/// Safe from any thread.
package final class LimiterSet: Sendable {
    /// Names the task among those that share a limit.
    private let task: UInt64
    private let limiters: Locked<[RateLimiter]>
    /// A set that applies as well.
    private let base: LimiterSet?

    /// Creates a set. The default has no limit.
    ///
    /// - Parameters:
    ///   - task: names the task among those that share a limit; the default is 0.
    ///   - base: a set that applies as well; the default is none.
    package init(_ limiters: [RateLimiter] = [], of task: UInt64 = 0, and base: LimiterSet? = nil) {
        self.task = base?.task ?? task
        self.limiters = Locked(limiters)
        self.base = base
    }

    private var all: [RateLimiter] { limiters.withLock { $0 } + (base?.all ?? []) }

    /// Spends up to `n` bytes; see `RateLimiter.spend(_:from:by:now:)`.
    package func spend(_ n: Int, now: Int64) -> FairShares.Offer {
        RateLimiter.spend(n, from: base == nil ? limiters.withLock { $0 } : all, by: task, now: now)
    }

    /// Replaces the limiters for the next `take`. The caller must resume a paused transfer, because its pause was
    /// computed from the previous limits.
    package func replace(with limiters: [RateLimiter]) {
        let former = self.limiters.withLock { former in
            defer { former = limiters }
            return former
        }
        for limiter in former where !limiters.contains(where: { $0 === limiter }) { limiter.leave(task) }
    }

    /// The task's transfers have ended. Its shares are for the others.
    package func leave() { all.forEach { $0.leave(task) } }

    /// True if at least one limiter has a rate.
    package var isLimited: Bool { all.contains { $0.rate != nil } }
}
