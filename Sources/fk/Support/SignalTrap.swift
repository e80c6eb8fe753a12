import Foundation
import Synchronization

/// Turns SIGINT, SIGTERM and SIGHUP into a call on an ordinary thread, where everything is allowed.
///
/// The signal handler only counts and writes one byte to a pipe, which the thread reads. The second signal ends the
/// process at once inside the handler, because a user who presses Ctrl-C twice does not want to wait. What comes within
/// 100 ms counts as the first one: `timeout` signals the process and then its group, so each signal comes twice. A signal that
/// the parent process ignored (`nohup`, a background job of a script) stays ignored. Child processes are not
/// affected: unlike blocked signals, handlers do not survive `exec`.
///
/// SIGTERM ends the process within 3 seconds, whatever it waits for: a reader of standard output that does not read, a
/// callback, a disk. What takes longer is left to the next run, as after a kill.
///
/// Create only one per process: a second one would take the signals from the first.
final class SignalTrap: Sendable {
    /// The exit status after this signal: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP.
    static func exitStatus(_ signal: Int32) -> Int32 { 128 + signal }

    /// Starts to catch these signals; the default is SIGINT, SIGTERM and SIGHUP.
    ///
    /// - Parameters:
    ///   - farewell: a line that the second signal writes to standard error, with its line feed; nil, the default, for none.
    ///   - onSignal: called once, with the number of the first signal, on its own thread.
    init(
        _ signals: [Int32] = [SIGINT, SIGTERM, SIGHUP], farewell: StaticString? = nil,
        onSignal: @escaping @Sendable (Int32) -> Void
    ) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // Both globals are initialised here, so that the handler is never the first to use them.
        firstSignal.store(0, ordering: .sequentiallyConsistent)
        signalPipe.store(ends[1], ordering: .sequentiallyConsistent)
        farewellLength.store(farewell?.utf8CodeUnitCount ?? 0, ordering: .sequentiallyConsistent)
        farewellStart.store(
            farewell.map { UInt(bitPattern: $0.utf8Start) } ?? 0, ordering: .sequentiallyConsistent)
        let readEnd = ends[0]
        let thread = Thread {
            var number: UInt8 = 0
            let count = withUnsafeMutableBytes(of: &number) { Glue.read(readEnd, $0) }
            guard count == 1 else { return }
            onSignal(Int32(number))
            guard Int32(number) == SIGTERM else { return }
            Thread.sleep(forTimeInterval: Self.patience)
            TerminalGuard.restore()
            _exit(Self.exitStatus(SIGTERM))
        }
        thread.name = "fk.signals"
        thread.stackSize = 256 << 10
        thread.start()
        for number in signals { TerminalGuard.catchUnlessIgnored(number, signalCaught) }
    }

    /// Seconds from SIGTERM to the end of the process.
    private static let patience = 2.5

    /// True if a further signal is one of its own, and not the first one again.
    ///
    /// - Parameters:
    ///   - first: when the first signal came, in nanoseconds.
    ///   - now: when this one came.
    static func isAnother(first: Int64, now: Int64) -> Bool { now - first >= 100_000_000 }

    /// Makes writing to a closed pipe or socket, and writing beyond the limit on file sizes, fail with an error
    /// instead of ending the process.
    static func ignoreWriteSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }
}

/// When the first signal came, in nanoseconds of the monotonic clock; 0 before it.
private let firstSignal = Atomic<Int64>(0)
private let signalPipe = Atomic<Int32>(-1)
/// The text of the second signal, which is part of the program.
private let farewellStart = Atomic<UInt>(0)
private let farewellLength = Atomic<Int>(0)

/// Runs in signal context: only atomics, `clock_gettime`, `write`, `tcsetattr` and `_exit` are allowed.
private func signalCaught(_ number: Int32) {
    let savedError = errno
    defer { errno = savedError }
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    let now = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    let (isFirst, first) = firstSignal.compareExchange(expected: 0, desired: now, ordering: .relaxed)
    guard isFirst else {
        guard SignalTrap.isAnother(first: first, now: now) else { return }
        TerminalGuard.restore()
        if let text = UnsafeRawPointer(bitPattern: farewellStart.load(ordering: .relaxed)) {
            _ = write(2, text, farewellLength.load(ordering: .relaxed))
        }
        _exit(SignalTrap.exitStatus(number))
    }
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(signalPipe.load(ordering: .relaxed), &byte, 1)
}
