/// The rate of one counter, as the median over a few seconds.
///
/// ```text
/// |<-------------- window: 8 s -------------->|
///   |<---- slice: 4 s ---->|                       rate 1
///         |<---- slice: 4 s ---->|                 rate 2, …
/// ```
///
/// Each slice ends at a sample, and the rate is the median of the slices' rates. So servers that send once a second, a
/// burst and a short pause do not change it. A counter that decreases (a transfer that starts again) or a clock that
/// goes back begins a new window. A value type without locks.
struct RateWindow: Sendable {
    /// The time that slices may cover, in nanoseconds.
    static let window: Int64 = 8_000_000_000
    /// The length of a slice, in nanoseconds.
    static let slice: Int64 = 4_000_000_000
    /// The shortest time between two stored samples, in nanoseconds.
    static let step: Int64 = 400_000_000
    /// The time that a young counter must have been measured, in nanoseconds.
    static let least: Int64 = 600_000_000

    private struct Sample {
        var time: Int64
        var bytes: Int64
    }

    /// Oldest first, at least `step` apart.
    private var samples: [Sample] = []
    private var latest: Sample?
    /// When the counter last grew, or was first seen.
    private var lastGrowth: Int64 = 0

    /// - Parameters:
    ///   - time: nanoseconds of a monotonic clock.
    ///   - bytes: the bytes received in total.
    mutating func add(time: Int64, bytes: Int64) {
        let sample = Sample(time: time, bytes: bytes)
        guard let last = latest, time >= last.time, bytes >= last.bytes else {
            samples = [sample]
            latest = sample
            lastGrowth = time
            return
        }
        if bytes > last.bytes { lastGrowth = time }
        latest = sample
        if let stored = samples.last, time - stored.time >= Self.step { samples.append(sample) }
        // One sample may be older than the window: the oldest slice begins there.
        while samples.count > 1, time - samples[1].time >= Self.window { samples.removeFirst() }
    }

    /// Bytes per second; nil before the first measurement.
    var rate: Double? {
        guard let latest, let first = samples.first else { return nil }
        let elapsed = latest.time - first.time
        guard elapsed >= Self.slice else {
            guard elapsed >= Self.least else { return nil }
            return Double(latest.bytes - first.bytes) * 1e9 / Double(elapsed)
        }
        var rates: [Double] = []
        var begin = 0
        for end in samples + [latest] where end.time - first.time >= Self.slice {
            while begin + 1 < samples.count, end.time - samples[begin + 1].time >= Self.slice { begin += 1 }
            let start = samples[begin]
            rates.append(Double(end.bytes - start.bytes) * 1e9 / Double(end.time - start.time))
        }
        rates.sort()
        let middle = rates.count / 2
        return rates.count % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2
    }

    /// The seconds since the counter last grew; 0 before the first sample.
    func silence(at time: Int64) -> Double {
        latest == nil ? 0 : max(0, Double(time - lastGrowth) / 1e9)
    }
}
