/// The number of connections of a file over time.
///
/// - A fixed number: all of them as soon as the file is known to be large enough.
/// - `automatic`: one at first, then four times as many while each step raises the throughput by at least 10 %, up to
///   16. A step that does not is undone. A single connection with more than 64 MB/s stays alone: it saturates the
///   link, and a second one would only cost processor time. Connections that still speed up (TCP starts slowly) are
///   waited for, because a server should not be asked for more than is needed.
///
/// Servers that limit a connection send in bursts (nginx: 2 MiB, then a pause; at 10 MiB/s one burst every 0.2 s).
/// Earlier steps of 0.1 s with a factor of 2 took the pause after a burst for a saturated link and stopped at two
/// connections.
package struct LaneGrowth: Sendable {
    /// The maximum number of connections with `ConnectionLimit.automatic`.
    package static let automaticMaximum = 16
    /// The seconds between two measurements.
    package static let step = 0.1
    /// The minimum seconds before a step can count as a gain.
    static let minGainSeconds = 0.2
    /// The seconds after which a step without a gain is undone.
    static let maxTrialSeconds = 0.6
    /// A step that is faster than the one before by this factor shows connections that still speed up.
    static let rampFactor = 1.5
    /// The maximum seconds for which they are waited for.
    static let maxRampSeconds = 1.0
    static let factor = 4
    static let leastGain = 1.1
    static let fastConnection = 64e6

    /// The number of connections that the file may have now.
    package private(set) var limit: Int
    private let isAutomatic: Bool
    /// The steps with fewer connections than allowed.
    private var misses = 0
    private var last: (rate: Double, lanes: Int)?
    /// What was measured of the present connections.
    private var trial = Trial()

    /// The measurements since the last change of `limit`.
    private struct Trial {
        /// Where the connections had reached their speed, as far as is known.
        var base = (bytes: Int64(0), seconds: 0.0)
        var last = (bytes: Int64(0), seconds: 0.0)
        var lastRate = 0.0

        /// Adds a measurement. Returns false if the connections still speed up.
        mutating func add(_ bytes: Int64, _ seconds: Double) -> Bool {
            let rate = Double(bytes - last.bytes) / (seconds - last.seconds)
            let isFaster = lastRate > 0 && rate > lastRate * LaneGrowth.rampFactor
            let isRamp = isFaster && seconds <= LaneGrowth.maxRampSeconds
            if isRamp { base = last }
            (last, lastRate) = ((bytes, seconds), rate)
            return !isRamp
        }
    }
    /// True while the number may still grow.
    package private(set) var isGrowing: Bool

    /// Starts with one connection for `automatic`, and with all of them for a fixed number.
    package init(limit: ConnectionLimit) {
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

    /// Evaluates a measurement. Call it every `step` seconds while `isGrowing` is true.
    ///
    /// - Parameters:
    ///   - bytes: received by all connections since `limit` last changed.
    ///   - seconds: the time since that change.
    ///   - lanes: the connections that receive bytes now.
    package mutating func measured(bytes: Int64, seconds: Double, lanes: Int) {
        guard isAutomatic, isGrowing, seconds > 0, lanes > 0 else { return }
        // Some connections of the last step do not exist yet, so the measurement continues for a while.
        guard lanes >= limit else {
            misses += 1
            if misses > 50 { isGrowing = false }
            return
        }
        misses = 0
        if seconds <= trial.last.seconds { trial = Trial() }
        guard trial.add(bytes, seconds) else { return }
        let time = seconds - trial.base.seconds
        let rate = Double(bytes - trial.base.bytes) / time
        guard time > Self.minGainSeconds * 0.99 else { return }
        if let last, rate < last.rate * Self.leastGain || lanes <= last.lanes {
            guard time > Self.maxTrialSeconds * 0.99 else { return }
            isGrowing = false
            limit = last.lanes
        } else if rate / Double(lanes) > Self.fastConnection || limit >= Self.automaticMaximum {
            isGrowing = false
        } else if rate > 0 {
            last = (rate, lanes)
            limit = min(Self.automaticMaximum, limit * Self.factor)
            trial = Trial()
        }
    }
}
