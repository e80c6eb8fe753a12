import FKMiddleware
import Synchronization

/// A limit in bytes a second that many tasks share: the total, a command's, a barrel's, a host's or a task's. Each task that
/// wants bytes gets its share (`FairShares`).
///
/// Safe from any thread. Without a limit, a call costs one atomic load and takes no lock.
package final class RateLimiter: Sendable {
    private let isLimited: Atomic<Bool>
    private let shares: Locked<FairShares>

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - rate: bytes a second; nil or a value below 1 means no limit.
    ///   - now: nanoseconds of the monotonic clock that all later calls use.
    package init(rate: Int64? = nil, now: Int64) {
        let shares = FairShares(rate: rate, now: now)
        isLimited = Atomic(shares.rate != nil)
        self.shares = Locked(shares)
    }

    /// Bytes a second; nil for no limit.
    package var rate: Int64? { shares.withLock(\.rate) }

    /// Asks for `n` bytes; see `FairShares.offer`.
    package func offer(_ n: Int, to task: UInt64, now: Int64) -> FairShares.Offer {
        guard isLimited.load(ordering: .relaxed) else { return .bytes(n) }
        return shares.withLock { $0.offer(n, to: task, now: now) }
    }

    /// Offered bytes have passed.
    package func spend(_ n: Int, by task: UInt64) {
        guard isLimited.load(ordering: .relaxed) else { return }
        shares.withLock { $0.spend(n, by: task) }
    }

    /// The task wants nothing any more.
    package func leave(_ task: UInt64) {
        guard isLimited.load(ordering: .relaxed) else { return }
        shares.withLock { $0.leave(task) }
    }

    /// Changes the rate in bytes a second; nil or a value below 1 means no limit. It applies to the next offer, in
    /// running transfers too.
    package func setRate(_ rate: Int64?, now: Int64) {
        shares.withLock {
            $0.setRate(rate, now: now)
            isLimited.store($0.rate != nil, ordering: .relaxed)
        }
    }

    /// Spends up to `n` bytes of every limiter, as many as all of them offer, or none.
    ///
    /// - Returns: the bytes that may pass, or the number of seconds after which to ask again.
    package static func spend(_ n: Int, from limiters: [RateLimiter], by task: UInt64, now: Int64) -> FairShares.Offer {
        var bytes = n
        var seconds = 0.0
        for limiter in limiters {
            switch limiter.offer(n, to: task, now: now) {
            case .bytes(let offered): bytes = min(bytes, offered)
            case .wait(let time): seconds = max(seconds, time)
            }
        }
        if seconds > 0 { return .wait(seconds) }
        for limiter in limiters { limiter.spend(bytes, by: task) }
        return .bytes(bytes)
    }
}
