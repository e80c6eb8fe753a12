import Foundation

/// Bytes a second, smoothed so that a person can read it: what happened t seconds ago counts e^(-t/5).
///
/// The first samples are not pulled towards 0. A counter that goes back (a transfer that starts again) and a clock that
/// goes back count as nothing, so that a rate is never negative. A value type without locks.
package struct SpeedMeter: Sendable {
    /// Seconds of the smoothing. Default 5.
    private let window: Double
    private var last: (time: Int64, bytes: Int64)?
    private var sum: Double = 0
    private var weight: Double = 0

    package init(window: Double = 5) { self.window = max(window, 0.001) }

    /// - Parameters:
    ///   - time: nanoseconds of a monotonic clock.
    ///   - bytes: how many bytes have arrived in all.
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
        // Two samples at one moment: the bytes count with the next one.
        guard elapsed > 0 else { return }
        let seconds = Double(elapsed) / 1e9
        let kept = exp(-seconds / window)
        sum = sum * kept + Double(bytes - last.bytes) / seconds * (1 - kept)
        weight = weight * kept + (1 - kept)
        self.last = (time, bytes)
    }

    /// 0 before two samples.
    package var bytesPerSecond: Double { weight > 0 ? sum / weight : 0 }
}
