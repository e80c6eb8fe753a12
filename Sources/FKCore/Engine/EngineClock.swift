import FKMiddleware
import Foundation

/// Where the engine takes its time from: monotonic for waiting, wall clock only for dates that people read.
package protocol EngineClock: Sendable {
    /// Nanoseconds since some fixed moment; never goes back, also when the wall clock is set.
    var now: Int64 { get }
    /// The wall clock in whole milliseconds, as info files keep it: a value in memory equals the one read back.
    var date: Date { get }
    /// Calls `wake` whenever time has moved by hand. The system clock never does.
    func onManualChange(_ wake: @escaping @Sendable () -> Void)
    /// True when time only moves by hand: nobody may wait for it with a time-out.
    var isManual: Bool { get }
}

extension EngineClock {
    /// When a date is reached on the monotonic clock; nil when it is past.
    ///
    /// The monotonic clock is read first: where time passes between the two looks, the deadline is early by that and never late.
    ///
    /// - Parameter longest: seconds; a wall clock that was set back must not make anybody wait for hours.
    func deadline(of date: Date, atMost longest: @autoclosure () -> Double) -> Int64? {
        let now = now
        let seconds = date.timeIntervalSince(self.date)
        return seconds > 0 ? now + Int64(min(seconds, longest()) * 1e9) : nil
    }
}

package struct SystemClock: EngineClock {
    package init() {}
    package var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }
    package var date: Date { Date(timeIntervalSince1970: Double(JSONText.milliseconds(Date())) / 1000) }
    package func onManualChange(_ wake: @escaping @Sendable () -> Void) {}
    package var isManual: Bool { false }
}
