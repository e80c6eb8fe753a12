import FKCore
import FKMiddleware
import Foundation

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
