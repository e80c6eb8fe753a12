import FKMiddleware
import Synchronization

/// A limit in bytes a second that many transfers share: the total, a barrel's or a task's.
///
/// Safe from any thread. Without a limit, a call costs one atomic load and takes no lock.
package final class RateLimiter: Sendable {
    private let isLimited: Atomic<Bool>
    private let bucket: Locked<TokenBucket>

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - rate: bytes a second; nil or a value below 1 means no limit.
    ///   - now: nanoseconds of the monotonic clock that all later calls use.
    package init(rate: Int64? = nil, now: Int64) {
        let bucket = TokenBucket(rate: rate, now: now)
        isLimited = Atomic(bucket.rate != nil)
        self.bucket = Locked(bucket)
    }

    /// Bytes a second; nil for no limit.
    package var rate: Int64? { bucket.withLock(\.rate) }

    /// Takes `n` bytes; see `TokenBucket.take`.
    ///
    /// - Returns: nil if they may pass, else the number of seconds after which to try again.
    package func take(_ n: Int, now: Int64) -> Double? {
        guard isLimited.load(ordering: .relaxed) else { return nil }
        return bucket.withLock { $0.take(n, now: now) }
    }

    /// Returns bytes that were taken and did not pass.
    package func giveBack(_ n: Int) {
        guard isLimited.load(ordering: .relaxed) else { return }
        bucket.withLock { $0.giveBack(n) }
    }

    /// Changes the rate in bytes a second; nil or a value below 1 means no limit. It applies to the next `take`, in
    /// running transfers too.
    package func setRate(_ rate: Int64?, now: Int64) {
        bucket.withLock {
            $0.setRate(rate, now: now)
            isLimited.store($0.rate != nil, ordering: .relaxed)
        }
    }

    /// Takes `n` bytes from every limiter or from none.
    ///
    /// - Returns: nil if the bytes may pass, else the number of seconds after which to try again.
    package static func take(_ n: Int, from limiters: [RateLimiter], now: Int64) -> Double? {
        for (index, limiter) in limiters.enumerated() {
            if let wait = limiter.take(n, now: now) {
                for taken in limiters[..<index] { taken.giveBack(n) }
                return wait
            }
        }
        return nil
    }
}
