import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Turns SIGINT, SIGTERM and SIGHUP into calls on an ordinary thread, where everything is allowed.
///
/// The signals are blocked in every thread and one thread waits for them (`sigwait`), so no code ever runs inside a
/// signal handler. The second signal ends the process at once, with 128 + its number, because somebody who presses
/// Ctrl-C twice does not want to wait any longer.
final class SignalTrap: Sendable {
    /// What the process exits with after this signal: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
    static func exitStatus(_ signal: Int32) -> Int32 { 128 + signal }

    private let handler: Locked<(@Sendable (Int32) -> Void)?>
    private let received = Locked<Int32?>(nil)

    /// The first signal that came, or nil.
    var signal: Int32? { received.withLock { $0 } }

    /// Call it before any other thread is started: threads inherit the blocked signals.
    ///
    /// - Parameter onSignal: called once, on the trap's thread, for the first signal.
    init(onSignal: @escaping @Sendable (Int32) -> Void) {
        handler = Locked(onSignal)
        var set = Self.signals
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let thread = Thread { [self] in wait() }
        thread.name = "fk.signals"
        thread.stackSize = 256 << 10
        thread.start()
    }

    /// Lets writing to a closed pipe or socket fail with an error instead of ending the process, and a file that grows
    /// beyond the limit likewise.
    static func ignoreWriteSignals() {
        _ = Foundation.signal(SIGPIPE, SIG_IGN)
        _ = Foundation.signal(SIGXFSZ, SIG_IGN)
    }

    private static var signals: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGINT)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGHUP)
        return set
    }

    private func wait() {
        var set = Self.signals
        while true {
            var number: Int32 = 0
            guard sigwait(&set, &number) == 0 else { continue }
            let isFirst = received.withLock { first in
                defer { if first == nil { first = number } }
                return first == nil
            }
            if !isFirst { _exit(Self.exitStatus(number)) }
            let call = handler.withLock { handler in
                defer { handler = nil }
                return handler
            }
            call?(number)
        }
    }
}
