import CSystem
import Foundation

/// A thread that can be joined. `join` also covers the clean-up that libraries do at a thread's end: a program that
/// calls `exit` during it would unload the libraries in use. Foundation's `Thread` cannot be joined.
package final class WorkThread: @unchecked Sendable {
    // Sendable because mutable state is accessed only with `lock` held.
    private let lock = NSCondition()
    /// Nil before the start and after the join.
    private var thread: fk_thread?
    private var isAwaited = false

    private final class Start {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// A thread that has not started.
    package init() {}

    deinit {
        if let thread { fk_detach_thread(thread) }
    }

    /// Starts the thread; call it once. The thread retains `body` and its captures; this object does not.
    ///
    /// - Parameters:
    ///   - name: for debuggers; at most 15 bytes.
    ///   - stackSize: in bytes; 0 for the system's default.
    package func start(name: String, stackSize: Int = 0, _ body: @escaping @Sendable () -> Void) {
        let start = Unmanaged.passRetained(Start(name, body))
        lock.lock()
        defer { lock.unlock() }
        var made = fk_thread()
        let code = fk_start_thread(&made, stackSize, Self.main, start.toOpaque())
        precondition(code == 0, "the system has no thread for a downloader")
        thread = made
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        if let context {
            let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
            fk_name_thread(start.name)
            start.body()
        }
        return nil
    }

    /// True on the thread itself.
    package var isCurrent: Bool {
        lock.lock()
        defer { lock.unlock() }
        return thread.map { fk_is_current_thread($0) != 0 } ?? false
    }

    /// Waits until the thread has ended. Several callers may wait. On the thread itself it returns immediately.
    package func join() {
        lock.lock()
        defer { lock.unlock() }
        guard let thread, fk_is_current_thread(thread) == 0 else { return }
        guard !isAwaited else {
            while self.thread != nil { lock.wait() }
            return
        }
        isAwaited = true
        lock.unlock()
        fk_join_thread(thread)
        lock.lock()
        self.thread = nil
        lock.broadcast()
    }
}
