import FKMiddleware
import Foundation

/// Where the engine takes its time from: monotonic for waiting, wall clock only for dates that people read.
package protocol EngineClock: Sendable {
    /// Nanoseconds since some fixed moment; never goes back, also when the wall clock is set.
    var now: Int64 { get }
    var date: Date { get }
    /// Calls `wake` whenever time has moved by hand. The system clock never does.
    func onManualChange(_ wake: @escaping @Sendable () -> Void)
    /// True when time only moves by hand: nobody may wait for it with a time-out.
    var isManual: Bool { get }
}

package struct SystemClock: EngineClock {
    package init() {}
    package var now: Int64 { Int64(DispatchTime.now().uptimeNanoseconds) }
    package var date: Date { Date() }
    package func onManualChange(_ wake: @escaping @Sendable () -> Void) {}
    package var isManual: Bool { false }
}

/// A clock for tests: time stands still until `advance`.
package final class ManualClock: EngineClock {
    private struct State {
        var now: Int64 = 1_000_000_000
        var date = Date(timeIntervalSince1970: 1_800_000_000)
        var listeners: [@Sendable () -> Void] = []
    }
    private let state = Locked(State())

    package init() {}

    package var now: Int64 { state.withLock { $0.now } }
    package var date: Date { state.withLock { $0.date } }
    package var isManual: Bool { true }

    package func onManualChange(_ wake: @escaping @Sendable () -> Void) {
        state.withLock { $0.listeners.append(wake) }
    }

    /// Moves both clocks forward and wakes whoever waits.
    package func advance(seconds: Double) {
        let listeners = state.withLock { state in
            state.now += Int64(seconds * 1e9)
            state.date += seconds
            return state.listeners
        }
        listeners.forEach { $0() }
    }

    /// Sets the wall clock alone, as an administrator or a time server does.
    package func setDate(_ date: Date) {
        state.withLock { $0.date = date }
    }
}
