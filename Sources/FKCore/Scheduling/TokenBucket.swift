/// A limit of bytes a second that allows short bursts: a bucket that fills at `rate` and that every byte empties.
///
/// A piece larger than the bucket is let through when the bucket is full and leaves it below zero, so that the
/// average holds whatever the size of the pieces. Times are nanoseconds of a monotonic clock; one that goes back
/// fills nothing. A value type without locks; `RateLimiter` is the shared one.
package struct TokenBucket: Sendable {
    /// Bytes a second; nil is no limit.
    package private(set) var rate: Int64?
    private var tokens: Double = 0
    private var filledAt: Int64

    /// The bucket begins empty, so that a limit holds from the first second.
    ///
    /// - Parameter rate: bytes a second; nil or anything below 1 is no limit.
    package init(rate: Int64?, now: Int64) {
        self.rate = Self.checked(rate)
        filledAt = now
    }

    /// Bytes that may come at once after a pause: a tenth of a second's worth, at least 64 KiB.
    package var burst: Int64 { max(64 << 10, (rate ?? 0) / 10) }

    /// Asks for `n` bytes.
    ///
    /// - Returns: nil when they may pass, and are counted; else the seconds after which to ask again, above 0.
    package mutating func take(_ n: Int, now: Int64) -> Double? {
        guard let rate, n > 0 else { return nil }
        fill(now)
        let needed = Double(min(Int64(n), burst))
        guard tokens >= needed else { return max((needed - tokens) / Double(rate), 1e-6) }
        tokens -= Double(n)
        return nil
    }

    /// Gives back bytes that were taken and did not pass after all.
    package mutating func giveBack(_ n: Int) {
        guard rate != nil else { return }
        tokens = min(tokens + Double(n), Double(burst))
    }

    /// Changes the rate from now on. What went through under a higher rate is not held against a lower one for longer
    /// than a bucketful.
    package mutating func setRate(_ rate: Int64?, now: Int64) {
        fill(now)
        self.rate = Self.checked(rate)
        tokens = min(max(tokens, -Double(burst)), Double(burst))
    }

    private mutating func fill(_ now: Int64) {
        let (elapsed, overflow) = now.subtractingReportingOverflow(filledAt)
        filledAt = now
        guard let rate, !overflow, elapsed > 0 else { return }
        tokens = min(Double(burst), tokens + Double(elapsed) / 1e9 * Double(rate))
    }

    private static func checked(_ rate: Int64?) -> Int64? { rate.flatMap { $0 > 0 ? $0 : nil } }
}
