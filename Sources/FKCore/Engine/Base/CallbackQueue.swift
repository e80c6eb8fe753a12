import FKMiddleware
import Foundation

/// Runs the application's callbacks and download middlewares, one after the other, on a queue that is neither the
/// engine's thread nor the main one.
///
/// Only callbacks wait for callbacks. Results, waits and sequences are reported by the engine itself (`Observers`), so a
/// callback that blocks cannot delay them.
package final class CallbackQueue: Sendable {
    private let queue = DispatchQueue(label: "fk.callbacks")
    private let waiting = Locked<[@Sendable () -> Void]>([])
    private let engine = Locked<ObjectIdentifier?>(nil)

    package init() {}

    /// Sets the engine of the callbacks (`MiddlewareCall`).
    package func connect(_ engine: ObjectIdentifier) { self.engine.withLock { $0 = engine } }

    /// Adds a callback. It never blocks. Callbacks run in the order in which they were added. Those that are added while
    /// others wait to run need no wake-up of their own.
    package func async(_ callback: @escaping @Sendable () -> Void) {
        let isFirst = waiting.withLock { waiting in
            defer { waiting.append(callback) }
            return waiting.isEmpty
        }
        if isFirst { queue.async { self.drain() } }
    }

    /// Returns when all callbacks added before have run.
    package func drained() async { await withCheckedContinuation { continuation in async { continuation.resume() } } }

    private func drain() {
        let callbacks = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        guard let engine = engine.withLock({ $0 }) else { return }
        MiddlewareCall.inCallback(of: engine) { callbacks.forEach { $0() } }
    }
}
