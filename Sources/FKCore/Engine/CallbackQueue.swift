import FKMiddleware
import Foundation

/// Runs other people's callbacks, one after the other, on a queue that is neither the engine's thread nor the main one.
///
/// What comes while callbacks run is handled in the same go: a burst of small files costs one wake-up, not one for
/// each change of state.
final class CallbackQueue: Sendable {
    private let queue = DispatchQueue(label: "fk.callbacks")
    private let waiting = Locked<[@Sendable () -> Void]>([])

    /// Never blocks. Callbacks run in the order in which they were given.
    func async(_ callback: @escaping @Sendable () -> Void) {
        let isFirst = waiting.withLock { waiting in
            waiting.append(callback)
            return waiting.count == 1
        }
        if isFirst { queue.async { self.drain() } }
    }

    /// Runs `body` behind everything given before, and returns then.
    func sync(_ body: () -> Void = {}) { queue.sync(execute: body) }

    private func drain() {
        let callbacks = waiting.withLock { waiting in
            defer { waiting.removeAll(keepingCapacity: true) }
            return waiting
        }
        callbacks.forEach { $0() }
    }
}
