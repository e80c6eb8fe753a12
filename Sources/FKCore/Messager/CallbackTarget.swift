import FKEngine
import FKMiddleware
import Foundation

/// Takes the application's callbacks away from the engine's thread: to a queue of the application, or to the library's
/// serial queue.
struct CallbackTarget: Sendable {
    /// nil for the library's serial queue.
    let queue: DispatchQueue?
    let callbacks: CallbackQueue
    /// Off once the callback is removed.
    let calls = CallbackSwitch()

    /// A listener for the engine. It never blocks.
    func calling<Value: Sendable>(_ body: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        let body = calls.guarding(body)
        guard let queue else { return { [callbacks] value in callbacks.async { body(value) } } }
        return { value in queue.async { body(value) } }
    }
}

/// Lets the calls of a callback through until it is removed: some may wait on a queue at that time.
final class CallbackSwitch: Sendable, Hashable {
    private let isOn = Locked(true)

    func turnOff() { isOn.withLock { $0 = false } }

    /// A callback that calls `body` while this is on.
    func guarding<Value: Sendable>(_ body: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        { value in if self.isOn.withLock(\.self) { body(value) } }
    }

    static func == (one: CallbackSwitch, other: CallbackSwitch) -> Bool { one === other }

    func hash(into hasher: inout Hasher) { ObjectIdentifier(self).hash(into: &hasher) }
}
