import FKEngine
import FKMiddleware
import Foundation

/// Detects that the engine of another process is stopped or hung: it holds the lock but shows no sign of life.
///
/// A sign of life is any change of the lock file, which an engine writes about once a second. The watch uses only its
/// own monotonic clock, which stops while the machine sleeps, so wall clocks that differ or jump have no effect. Time
/// in which the watcher itself was blocked does not count either.
package struct EngineWatch: Sendable {
    /// A change of the engine's condition.
    package enum News: Sendable, Equatable {
        /// It has shown no sign of life for `limit` seconds.
        case silent
        /// It shows a sign of life again.
        case back
    }

    /// The seconds without a sign of life after which an engine counts as silent.
    package static let limit = EngineLock.silenceLimit

    private let longestGap: Int64
    private var content: [UInt8]?
    /// The time of the last sign of life, and the time of the last look.
    private var since: Int64?
    private var lastLook: Int64 = 0
    /// True while the engine counts as silent.
    package private(set) var isSilent = false

    /// Creates a watch.
    ///
    /// - Parameter interval: the seconds between two looks. A much longer gap does not count as silence.
    package init(interval: Double) { longestGap = Int64(max(2, 2 * interval) * 1e9) }

    /// Nanoseconds of a monotonic clock that stops while the machine sleeps.
    package static var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }

    /// The seconds since the last sign of life; 0 before the first look.
    package func silence(_ now: Int64) -> Double { since.map { Double(now - $0) / 1e9 } ?? 0 }

    /// Compares the lock file with the last look.
    ///
    /// - Parameters:
    ///   - content: the content of the lock file; nil if it is missing.
    ///   - now: nanoseconds of a monotonic clock.
    /// - Returns: the change, once for each; nil if there is none.
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
