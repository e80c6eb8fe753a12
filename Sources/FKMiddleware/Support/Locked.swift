import Foundation

/// The project's only lock. Its value can be reached only while the lock is held.
///
/// It is an `NSLock` because the thread sanitizer does not see `Synchronization.Mutex` on Linux and then reports
/// races in correct code.
package final class Locked<Value>: @unchecked Sendable {
    // Sendable because `value` is touched only between `lock.lock()` and `lock.unlock()`.
    private let lock = NSLock()
    private var value: Value

    /// Creates a lock around a value.
    package init(_ value: Value) {
        self.value = value
    }

    /// Runs `body` with the lock held. `body` must not call back into the same `Locked`.
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
