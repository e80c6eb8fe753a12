/// The number of connections of a file over time.
///
/// - A fixed number: all of them as soon as the file is known to be large enough.
/// - `automatic`: one at first, then four times as many while each step raises the throughput, up to 16. A step that
///   does not is undone. A single connection with more than 64 MB/s stays alone: it saturates the link, and a second
///   one would only cost processor time. Connections that still speed up (TCP starts slowly) are waited for, because a
///   server should not be asked for more than is needed.
///
/// A look at the throughput shows whether TCP still speeds up only if a round trip fits between two looks. So the first
/// answer sets the interval: the time from the first request to its answer, at least 0.05 s and at most 0.2 s.
///
/// Servers that limit a connection send in bursts (nginx: 2 MiB, then a pause; at 10 MiB/s one burst every 0.2 s). In a
/// short time only a large gain counts. Steps of 0.1 s with a factor of 2 and gains of a tenth took the pause after a
/// burst for a saturated link and stopped at two connections.
package struct LaneGrowth: Sendable {
    /// The maximum number of connections with `ConnectionLimit.automatic`.
    package static let automaticMaximum = 16
    /// The limits of `interval`, in seconds.
    package static let intervals = 0.05...0.2
    /// The intervals before the first decision about a number of connections.
    static let minIntervals = 2.0
    /// The round trips after which TCP has its speed. A server for which they fit into the shortest interval is near, and more
    /// connections follow after one interval. A single fast one is still decided about after two: a burst looks fast.
    static let rampRoundTrips = 10.0
    /// The gain that counts then.
    static let largeGain = 1.5
    /// The seconds after which a smaller gain counts, and that gain.
    static let minGainSeconds = 0.2
    static let leastGain = 1.1
    /// The seconds after which a step without a gain is undone.
    static let maxTrialSeconds = 0.6
    /// The seconds for which the connections of a step may be without an answer.
    static let maxMissingSeconds = 5.0
    /// If a measurement exceeds the previous one by this factor, the connections still speed up. During TCP's slow start, if a
    /// round trip is shorter than an interval, each measurement has at least 4/3 of the bytes of the previous one.
    static let rampFactor = 1.2
    /// The maximum number of intervals to wait for connections that speed up. From ten packets, TCP needs 10 round trips for
    /// 100 MB/s over 0.1 s.
    static let maxRampIntervals = 12.0
    /// The minimum number of intervals that the rest of the file takes. A new connection needs one to three round trips before its
    /// first byte, and then speeds up.
    static let minRestIntervals = 4.0
    package static let factor = 4
    static let fastConnection = 64e6

    /// The number of connections that the file may have now.
    package private(set) var limit: Int
    /// The seconds between two looks.
    package private(set) var interval: Double
    private let isAutomatic: Bool
    private var isNear = false
    private var last: (rate: Double, lanes: Int)?
    /// The measurements of the present connections.
    private var trial = Trial()

    /// The measurements since the last change of `limit`.
    private struct Trial {
        /// The bytes and the time at which the connections had reached their speed.
        var base = (bytes: Int64(0), seconds: 0.0)
        var last = (bytes: Int64(0), seconds: 0.0)
        var lastRate = 0.0
        /// True once the present connections were faster than the former ones. They stay, also if a burst ends after that.
        var hasGained = false

        /// Some connections have no answer yet: the measurement begins here at the earliest.
        mutating func postpone(_ bytes: Int64, _ seconds: Double) {
            base = (bytes, seconds)
            (last, lastRate) = (base, 0)
        }

        /// Adds a measurement. Returns false if the connections still speed up.
        mutating func add(_ bytes: Int64, _ seconds: Double, maxRamp: Double) -> Bool {
            let rate = Double(bytes - last.bytes) / (seconds - last.seconds)
            let isFaster = lastRate > 0 && rate > lastRate * LaneGrowth.rampFactor
            let isRamp = isFaster && seconds <= maxRamp
            if isRamp { base = last }
            (last, lastRate) = ((bytes, seconds), rate)
            return !isRamp
        }
    }
    /// True while the number may still grow.
    package private(set) var isGrowing: Bool

    /// Starts with one connection for `automatic`, and with all of them for a fixed number.
    ///
    /// - Parameter interval: the seconds between two looks, if they are known.
    package init(limit: ConnectionLimit, interval: Double = LaneGrowth.intervals.lowerBound) {
        self.interval = interval
        switch limit {
        case .fixed(let count):
            self.limit = min(max(count, 1), 256)
            isAutomatic = false
            isGrowing = false
        case .automatic:
            self.limit = 1
            isAutomatic = true
            isGrowing = true
        }
    }

    /// True if more than one connection was or may be used.
    package var isSegmented: Bool { limit > 1 || last != nil }

    /// Limits the number, because the server or the network accepts no more.
    package mutating func cap(at lanes: Int) {
        limit = max(1, min(limit, lanes))
        isGrowing = false
    }

    /// Sets the interval to the time from the file's first request to its answer.
    package mutating func answered(after seconds: Double) {
        interval = min(max(seconds, Self.intervals.lowerBound), Self.intervals.upperBound)
        isNear = seconds * Self.rampRoundTrips <= Self.intervals.lowerBound
    }

    /// Evaluates a measurement. Call it every `interval` seconds while `isGrowing` is true.
    ///
    /// - Parameters:
    ///   - bytes: received by all connections since `limit` last changed.
    ///   - seconds: the time since that change.
    ///   - lanes: the connections that receive bytes now.
    ///   - rest: the missing bytes. More connections for a small rest would end before they help.
    package mutating func measured(bytes: Int64, seconds: Double, lanes: Int, rest: Int64) {
        guard isAutomatic, isGrowing, seconds > 0, lanes > 0 else { return }
        if seconds <= trial.last.seconds { trial = Trial() }
        guard lanes >= limit else {
            trial.postpone(bytes, seconds)
            if seconds > Self.maxMissingSeconds { isGrowing = false }
            return
        }
        guard trial.add(bytes, seconds, maxRamp: Self.maxRampIntervals * interval * 1.01) else { return }
        let time = seconds - trial.base.seconds
        let rate = Double(bytes - trial.base.bytes) / time
        let isFast = rate / Double(lanes) > Self.fastConnection
        // Alarms may come a little early.
        guard time > (isNear && !isFast ? 1 : Self.minIntervals) * interval * 0.99 else { return }
        if let last, !trial.hasGained, lanes <= last.lanes || rate < last.rate * gain(after: time) {
            guard time > Self.maxTrialSeconds * 0.99 else { return }
            isGrowing = false
            limit = last.lanes
            return
        }
        trial.hasGained = true
        if isFast || limit >= Self.automaticMaximum {
            isGrowing = false
        } else if rate > 0, Double(rest) > rate * interval * Self.minRestIntervals {
            last = (rate, lanes)
            limit = min(Self.automaticMaximum, limit * Self.factor)
            trial = Trial()
        }
    }

    private func gain(after seconds: Double) -> Double {
        seconds > Self.minGainSeconds * 0.99 ? Self.leastGain : Self.largeGain
    }
}
