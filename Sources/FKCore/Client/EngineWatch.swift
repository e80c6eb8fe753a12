import FKMiddleware
import Foundation

/// Notices that the engine of another process is stopped or hung: it still holds the lock and shows no sign of life.
///
/// A sign of life is any change of the lock file, which an engine writes about once a second. Only the watcher's own
/// monotonic clock is asked for the time, which stands still while the machine sleeps: wall clocks that differ or jump change
/// nothing. Time in which the watcher itself was held up does not count either.
package struct EngineWatch: Sendable {
    package enum News: Sendable, Equatable {
        case silent
        case back
    }

    /// Seconds without a sign of life after which an engine counts as silent.
    package static let limit: Double = 5

    private let longestGap: Int64
    private var content: [UInt8]?
    /// When the last sign of life was seen, and when the watcher last looked.
    private var since: Int64?
    private var lastLook: Int64 = 0
    package private(set) var isSilent = false

    /// - Parameter interval: seconds between two looks; a gap of much more does not count as silence.
    package init(interval: Double) { longestGap = Int64(max(2, 2 * interval) * 1e9) }

    /// Monotonic, without the time in which the machine slept.
    package static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }

    /// Seconds for which there has been no sign of life.
    package func silence(_ now: Int64) -> Double { since.map { Double(now - $0) / 1e9 } ?? 0 }

    /// - Parameters:
    ///   - content: what the lock file holds; nil when there is none.
    ///   - now: nanoseconds of a monotonic clock.
    /// - Returns: what has changed, once each time.
    package mutating func look(_ content: [UInt8]?, now: Int64) -> News? {
        defer { lastLook = now }
        if content != self.content || since == nil || now - lastLook > longestGap {
            self.content = content
            since = now
            guard isSilent else { return nil }
            isSilent = false
            return .back
        }
        guard !isSilent, silence(now) >= Self.limit else { return nil }
        isSilent = true
        return .silent
    }
}
