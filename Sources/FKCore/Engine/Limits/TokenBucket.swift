/// A limit in bytes a second that allows short bursts: a bucket that fills at `rate` and that every byte empties.
///
/// A piece larger than the bucket passes when the bucket is full and leaves it below zero, so the average holds for
/// any size of piece. Times are nanoseconds of a monotonic clock; a clock that goes back fills nothing. A value type
/// without locks. `FairShares` divides it among tasks, and `RateLimiter` is the shared form.
package struct TokenBucket: Sendable {
    /// Bytes a second; nil for no limit.
    package private(set) var rate: Int64?
    /// The bytes that may pass now; below 0 after a piece larger than the bucket.
    package private(set) var tokens: Double = 0
    private var filledAt: Int64

    /// Creates an empty bucket, so that the limit holds from the first second.
    ///
    /// - Parameter rate: bytes a second; nil or a value below 1 means no limit.
    package init(rate: Int64?, now: Int64) {
        self.rate = Self.checked(rate)
        filledAt = now
    }

    /// The number of bytes that may pass at once after a pause: a tenth of a second's worth, at least 64 KiB.
    package var burst: Int64 { max(64 << 10, (rate ?? 0) / 10) }

    /// Spends `n` bytes.
    ///
    /// - Returns: nil if they may pass, else the number of seconds, above 0, after which to try again.
    package mutating func spend(_ n: Int, now: Int64) -> Double? {
        guard let rate, n > 0 else { return nil }
        fill(now)
        let needed = Double(min(Int64(n), burst))
        guard tokens >= needed else { return max((needed - tokens) / Double(rate), 1e-6) }
        tokens -= Double(n)
        return nil
    }

    /// Spends bytes without a look at the limit.
    package mutating func spend(_ n: Double) { tokens -= n }

    /// Returns bytes that were taken and did not pass.
    package mutating func giveBack(_ n: Int) {
        guard rate != nil else { return }
        tokens = min(tokens + Double(n), Double(burst))
    }

    /// Changes the rate. Bytes that passed under a higher rate delay later ones by at most one full bucket.
    package mutating func setRate(_ rate: Int64?, now: Int64) {
        fill(now)
        self.rate = Self.checked(rate)
        tokens = min(max(tokens, -Double(burst)), Double(burst))
    }

    /// Adds the bytes of the time since the last call.
    package mutating func fill(_ now: Int64) {
        let (elapsed, overflow) = now.subtractingReportingOverflow(filledAt)
        filledAt = now
        guard let rate, !overflow, elapsed > 0 else { return }
        tokens = min(Double(burst), tokens + Double(elapsed) / 1e9 * Double(rate))
    }

    private static func checked(_ rate: Int64?) -> Int64? { rate.flatMap { $0 > 0 ? $0 : nil } }
}
