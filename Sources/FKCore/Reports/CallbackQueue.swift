import FKMiddleware
import Foundation

/// Runs the application's callbacks, one after the other, on a queue that is neither the engine's thread nor the main
/// one.
///
/// Callbacks are collected for 5 ms, so that a burst of small files costs one wake-up instead of one for each change
/// of state. (Of 16,900 wake-ups for 2,000 files of 8 KiB, 10,000 were these.) Changes of state that follow each other are
/// passed on together, without a closure for each.
final class CallbackQueue: Sendable {
    /// What waits to run, in order.
    private struct Waiting {
        private(set) var callbacks: [@Sendable () -> Void] = []
        /// Changes of state after these callbacks, and who receives them.
        private var changes: [DownloadInfo] = []
        private var listeners = StateListeners()

        var isEmpty: Bool { callbacks.isEmpty && changes.isEmpty }

        mutating func add(_ callback: @escaping @Sendable () -> Void) {
            endChanges()
            callbacks.append(callback)
        }

        mutating func add(_ change: DownloadInfo, for listeners: StateListeners) {
            if listeners !== self.listeners { endChanges() }
            self.listeners = listeners
            if changes.isEmpty { changes.reserveCapacity(32) }
            changes.append(change)
        }

        mutating func endChanges() {
            if changes.isEmpty { return }
            callbacks.append { [changes, listeners] in listeners.receive(changes) }
            changes = []
        }
    }

    private let queue = DispatchQueue(label: "fk.callbacks")
    private let waiting = Locked(Waiting())
    private let engine = Locked<ObjectIdentifier?>(nil)

    /// Sets the engine of the callbacks (`MiddlewareCall`).
    func connect(_ engine: ObjectIdentifier) { self.engine.withLock { $0 = engine } }

    /// Adds a callback. It never blocks. Callbacks run in the order in which they were added.
    func async(_ callback: @escaping @Sendable () -> Void) { add { $0.add(callback) } }

    /// Adds a change of state for its listeners, as `async` adds a callback.
    func report(_ change: DownloadInfo, to listeners: StateListeners) { add { $0.add(change, for: listeners) } }

    private func add(_ add: (inout Waiting) -> Void) {
        let isFirst = waiting.withLock { waiting in
            defer { add(&waiting) }
            return waiting.isEmpty
        }
        if isFirst { queue.asyncAfter(deadline: .now() + .milliseconds(5)) { self.drain() } }
    }

    /// Runs `body` after all callbacks added before it, and returns when it has returned.
    func sync(_ body: () -> Void = {}) {
        queue.sync {
            drain()
            body()
        }
    }

    private func drain() {
        let callbacks = waiting.withLock { waiting in
            waiting.endChanges()
            defer { waiting = Waiting() }
            return waiting.callbacks
        }
        guard !callbacks.isEmpty, let engine = engine.withLock({ $0 }) else { return }
        MiddlewareCall.inCallback(of: engine) { callbacks.forEach { $0() } }
    }
}

/// The listeners for every change of state of every task. Another set of listeners is another object.
final class StateListeners: Sendable {
    private let callbacks: [UInt64: @Sendable ([DownloadInfo]) -> Void]

    init(_ callbacks: [UInt64: @Sendable ([DownloadInfo]) -> Void] = [:]) { self.callbacks = callbacks }

    var isEmpty: Bool { callbacks.isEmpty }

    func receive(_ changes: [DownloadInfo]) { for callback in callbacks.values { callback(changes) } }

    /// The listeners with another one, or without one.
    func setting(_ number: UInt64, _ callback: (@Sendable ([DownloadInfo]) -> Void)?) -> StateListeners {
        var callbacks = callbacks
        callbacks[number] = callback
        return StateListeners(callbacks)
    }
}
