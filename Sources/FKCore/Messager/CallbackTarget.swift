import FKMiddleware
import Foundation

extension DispatchQueue? {
    /// A callback that runs `body` on this queue; `body` itself if there is none, for the library's serial queue.
    func calling<Value: Sendable>(_ body: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        guard let queue = self else { return body }
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
