/// The rate of the last ten minutes, one sample a second.
struct RateHistory: Sendable {
    static let seconds = 600

    private var samples: [Int64] = []
    private var next: ContinuousClock.Instant?

    /// Records the present rate. A second without a call repeats it.
    mutating func add(_ bytesPerSecond: Int64, at now: ContinuousClock.Instant) {
        var due = next ?? now
        var count = 0
        while due <= now, count < Self.seconds {
            samples.append(bytesPerSecond)
            due += .seconds(1)
            count += 1
        }
        next = due <= now ? now + .seconds(1) : due
        if samples.count > 2 * Self.seconds { samples.removeFirst(samples.count - Self.seconds) }
    }

    /// The last samples, the oldest first; 0 for seconds before the first.
    func last(_ count: Int) -> [Int64] {
        let known = samples.suffix(count)
        return [Int64](repeating: 0, count: count - known.count) + known
    }
}
