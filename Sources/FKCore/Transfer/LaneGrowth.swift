/// How many connections a file gets as time goes by.
///
/// - A fixed number: so many as soon as it is known that the file is worth it.
/// - `automatic`: one at first, then twice as many while each step raises the throughput by at least 10 %, up to 16. One
///   connection that brings more than 64 MB/s is left alone: it fills what there is, and a second one would only cost.
package struct LaneGrowth: Sendable {
    package static let automaticMaximum = 16
    /// Seconds over which a step is measured.
    package static let step = 0.1
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
    package var isSegmented: Bool { limit > 1 }

    /// The server or the network does not bear more than so many.
    package mutating func cap(at lanes: Int) {
        limit = max(1, min(limit, lanes))
        isGrowing = false
    }

    /// Call every `step` seconds while `isGrowing`.
    ///
    /// - Parameters:
    ///   - bytes: received in this step by all connections.
    ///   - seconds: how long the step was.
    ///   - lanes: connections that brought bytes in it.
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
        if let last, rate < last.rate * Self.leastGain || lanes <= last.lanes {
            isGrowing = false
        } else if rate / Double(lanes) > Self.fastConnection || limit >= Self.automaticMaximum {
            isGrowing = false
        } else if rate > 0 {
            last = (rate, lanes)
            limit = min(Self.automaticMaximum, limit * 2)
        }
    }
}
