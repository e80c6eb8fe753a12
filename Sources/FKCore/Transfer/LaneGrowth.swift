/// How many connections a file gets as time goes by.
///
/// - A fixed number: so many as soon as it is known that the file is worth it.
/// - `automatic`: one at first, then four times as many while each step raises the throughput by at least 10 %, up to 16;
///   back to the number before where it does not. One connection that brings more than 64 MB/s is left alone: it fills
///   what there is, and a second one would only cost.
///
/// Servers that limit a connection send in bursts (nginx: 2 MiB, then a pause; at 10 MiB/s one burst each 0.2 s). Steps of 0.1 s
/// that only doubled took the pause after a burst for the end of the link, and stopped at two connections.
package struct LaneGrowth: Sendable {
    package static let automaticMaximum = 16
    /// Seconds between two looks at what has come.
    package static let step = 0.1
    /// Seconds after which a number of connections may be said to bring more than the one before.
    static let shortest = 0.2
    /// Seconds after which it is said not to.
    static let longest = 0.6
    static let factor = 4
    static let leastGain = 1.1
    static let fastConnection = 64e6

    package private(set) var limit: Int
    private let isAutomatic: Bool
    /// Steps in which there were less connections than allowed.
    private var misses = 0
    private var last: (rate: Double, lanes: Int)?
    /// It may still grow.
    package private(set) var isGrowing: Bool

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

    /// More than one connection was or may be used.
    package var isSegmented: Bool { limit > 1 || last != nil }

    /// The server or the network does not bear more than so many.
    package mutating func cap(at lanes: Int) {
        limit = max(1, min(limit, lanes))
        isGrowing = false
    }

    /// Call every `step` seconds while `isGrowing`.
    ///
    /// - Parameters:
    ///   - bytes: received by all connections since there are so many.
    ///   - seconds: since when that is.
    ///   - lanes: connections that brought bytes all that time.
    package mutating func measured(bytes: Int64, seconds: Double, lanes: Int) {
        guard isAutomatic, isGrowing, seconds > 0, lanes > 0 else { return }
        let rate = Double(bytes) / seconds
        // Connections of the last step are not there yet: measure again, a while.
        guard lanes >= limit else {
            misses += 1
            if misses > 50 { isGrowing = false }
            return
        }
        misses = 0
        guard seconds > Self.shortest * 0.99 else { return }
        if let last, rate < last.rate * Self.leastGain || lanes <= last.lanes {
            guard seconds > Self.longest * 0.99 else { return }
            isGrowing = false
            limit = last.lanes
        } else if rate / Double(lanes) > Self.fastConnection || limit >= Self.automaticMaximum {
            isGrowing = false
        } else if rate > 0 {
            last = (rate, lanes)
            limit = min(Self.automaticMaximum, limit * Self.factor)
        }
    }
}
