import FKMiddleware
import Foundation

/// The engine's source of time. The monotonic clock is for waiting, the wall clock only for dates that people read.
package protocol EngineClock: Sendable {
    /// Nanoseconds since a fixed moment. The value never decreases, even if the wall clock is set.
    var now: Int64 { get }
    /// The wall clock in whole milliseconds, as info files store it, so a value in memory equals the one read back.
    var date: Date { get }
    /// Registers a closure that runs whenever time is moved by hand. The system clock never calls it.
    func onManualChange(_ wake: @escaping @Sendable () -> Void)
    /// True if time moves only by hand, so a wait with a time-out never ends.
    var isManual: Bool { get }
}

extension EngineClock {
    /// The time of a date on the monotonic clock; nil if the date is past.
    ///
    /// The monotonic clock is read first. Time that passes between the two reads makes the deadline early, never
    /// late.
    ///
    /// - Parameter longest: the maximum in seconds. Without it, a wall clock that was set back would cause a wait of
    ///   hours.
    package func deadline(of date: Date, atMost longest: @autoclosure () -> Double) -> Int64? {
        let now = now
        let seconds = date.timeIntervalSince(self.date)
        return seconds > 0 ? now + Int64(min(seconds, longest()) * 1e9) : nil
    }
}

/// The clocks of the system.
package struct SystemClock: EngineClock {
    /// The clocks of this system.
    package init() {}
    /// Nanoseconds since the system started.
    package var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }
    /// The wall clock in whole milliseconds.
    package var date: Date { Date(timeIntervalSince1970: Double(JSONText.milliseconds(Date())) / 1000) }
    /// Does nothing.
    package func onManualChange(_ wake: @escaping @Sendable () -> Void) {}
    /// False: time moves by itself.
    package var isManual: Bool { false }
}
