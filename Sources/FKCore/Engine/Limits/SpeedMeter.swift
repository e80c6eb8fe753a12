import Foundation

/// A smoothed speed in bytes a second: bytes from t seconds ago count with the weight e^(-t/5).
///
/// The first samples are not biased towards 0. A counter that decreases (a transfer that starts again) or a clock
/// that goes back contributes nothing, so the speed is never negative. A value type without locks.
package struct SpeedMeter: Sendable {
    /// The time constant in seconds.
    private let window: Double
    private var last: (time: Int64, bytes: Int64)?
    private var sum: Double = 0
    private var weight: Double = 0

    /// Creates a meter without samples.
    ///
    /// - Parameter window: the time constant in seconds, at least 0.001. The default is 5.
    package init(window: Double = 5) { self.window = max(window, 0.001) }

    /// Adds a sample.
    ///
    /// - Parameters:
    ///   - time: nanoseconds of a monotonic clock.
    ///   - bytes: the number of bytes received in total.
    package mutating func add(time: Int64, bytes: Int64) {
        guard let last else {
            self.last = (time, bytes)
            return
        }
        let (elapsed, overflow) = time.subtractingReportingOverflow(last.time)
        if overflow || elapsed < 0 || bytes < last.bytes {
            self.last = (time, bytes)
            return
        }
        // The bytes of a second sample at the same moment count with the next one.
        guard elapsed > 0 else { return }
        let seconds = Double(elapsed) / 1e9
        let kept = exp(-seconds / window)
        sum = sum * kept + Double(bytes - last.bytes) / seconds * (1 - kept)
        weight = weight * kept + (1 - kept)
        self.last = (time, bytes)
    }

    /// True from the second sample on.
    package var isMeasured: Bool { weight > 0 }

    /// The speed; 0 before the second sample.
    package var bytesPerSecond: Double { weight > 0 ? sum / weight : 0 }
}
