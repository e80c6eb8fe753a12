import FKEngine
import FKMiddleware
import Foundation

/// A clock for tests: its time changes only by `advance`. Its dates are whole milliseconds, like those of the system clock.
public final class ManualClock: EngineClock {
    private struct State {
        var now: Int64 = 1_000_000_000
        /// Nanoseconds since 1970.
        var date: Int64 = 1_800_000_000_000_000_000
        var listeners: [@Sendable () -> Void] = []
    }
    private let state = Locked(State())

    /// Creates a clock.
    public init() {}

    package var now: Int64 { state.withLock { $0.now } }
    /// The wall clock.
    public var date: Date {
        Date(timeIntervalSince1970: Double(state.withLock { $0.date } / 1_000_000) / 1_000)
    }
    package var isManual: Bool { true }

    package func onManualChange(_ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.listeners.append(wake) }
    }

    /// Moves the time forward and wakes everything that waits for it.
    public func advance(by time: Duration) { advance(seconds: time.inSeconds) }

    package func advance(seconds: Double) {
        let listeners = state.withLock { state in
            let time = Int64((seconds * 1e9).rounded())
            state.now += time
            state.date += time
            return state.listeners
        }
        listeners.forEach { $0() }
    }

    /// Sets the wall clock alone, as an administrator or a time server does.
    public func setDate(_ date: Date) {
        state.withLock { $0.date = Int64((date.timeIntervalSince1970 * 1_000).rounded()) * 1_000_000 }
    }
}
