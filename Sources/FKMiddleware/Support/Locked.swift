import Foundation

/// The project's only lock. Its value can be reached only while the lock is held.
///
/// It is an `NSLock` because the thread sanitizer does not see `Synchronization.Mutex` on Linux and then reports
/// races in correct code.
package final class Locked<Value>: @unchecked Sendable {
    // Sendable because `value` is touched only between `lock.lock()` and `lock.unlock()`. It is behind a pointer, and the
    // function can be inlined in other modules: a small file takes 20 locks, and each took 500 instructions otherwise.
    @usableFromInline let lock = NSLock()
    @usableFromInline let value: UnsafeMutablePointer<Value>

    package init(_ value: Value) {
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the lock held. `body` must not call back into the same `Locked`.
    @inlinable
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value.pointee)
    }
}
