import Foundation
import Synchronization

/// Changes a terminal while the program draws on it, and changes it back on every way out.
///
/// ```text
/// enter -> drawing -> leave
///             | Ctrl-Z: restored, stopped, changed again by SIGCONT
///             | second Ctrl-C, SIGQUIT, a crash: restored, then the signal's own effect
/// ```
///
/// Only `kill -KILL` leaves a terminal changed. The signal handlers use only atomics, `write`, `tcsetattr`, `signal` and
/// `raise`. One guard is in use at a time.
enum TerminalGuard {
    /// What a program changes.
    enum Mode: Sendable, Hashable {
        /// The cursor is hidden, and typed characters are not echoed. Signals of the keyboard stay.
        case live
        /// The alternate screen, with every key, click and turn of the wheel delivered at once.
        case fullScreen
    }

    /// Changes the terminal. In the background it does nothing until SIGCONT.
    ///
    /// - Parameters:
    ///   - output: where sequences are written.
    ///   - input: the terminal whose keys are read; nil leaves its settings.
    static func enter(_ mode: Mode, output: Int32, input: Int32?) {
        prepare(mode, input: input)
        guardOutput.store(output, ordering: .sequentiallyConsistent)
        guardInput.store(input ?? -1, ordering: .sequentiallyConsistent)
        isGuarding.store(true, ordering: .sequentiallyConsistent)
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGQUIT] { signal(number, endingSignal) }
        catchUnlessIgnored(SIGTSTP, stoppingSignal)
        signal(SIGCONT, continuingSignal)
        apply()
    }

    /// Changes the terminal back. A second call does nothing.
    static func leave() {
        guard isGuarding.exchange(false, ordering: .sequentiallyConsistent) else { return }
        restore()
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGQUIT, SIGTSTP, SIGCONT] {
            signal(number, SIG_DFL)
        }
    }

    /// True if a terminal's keys are guarded.
    static var hasKeys: Bool { isGuarding.load(ordering: .relaxed) && guardInput.load(ordering: .relaxed) >= 0 }

    /// Delivers every key from now on at once, without those typed before, or leaves keys to lines again.
    ///
    /// - Returns: false if no terminal's keys are guarded here.
    static func readKeys(_ on: Bool) -> Bool {
        guard hasKeys else { return false }
        let input = guardInput.load(ordering: .relaxed)
        if on {
            changedSettings.pointee.c_lflag &= ~tcflag_t(ICANON)
        } else {
            changedSettings.pointee.c_lflag |= tcflag_t(ICANON)
        }
        if isChanged.load(ordering: .relaxed) { tcsetattr(input, on ? TCSAFLUSH : TCSANOW, changedSettings) }
        return true
    }

    /// True once after SIGCONT, because the screen may have changed.
    static func drainContinued() -> Bool { wasContinued.exchange(false, ordering: .sequentiallyConsistent) }

    /// False if the program runs in the background of the terminal's session. Without such a session it is true.
    static func isForeground(_ descriptor: Int32) -> Bool {
        let group = tcgetpgrp(descriptor)
        return group < 0 || group == getpgrp()
    }

    /// Changes the terminal back, for a handler that ends the process. It is safe in signal context.
    static func restore() {
        guard isChanged.exchange(false, ordering: .sequentiallyConsistent) else { return }
        let input = guardInput.load(ordering: .relaxed)
        if input >= 0 { tcsetattr(input, TCSANOW, savedSettings) }
        put(leaving, leavingCount.load(ordering: .relaxed))
    }

    /// Changes the terminal, if the program is in the foreground. It is safe in signal context.
    fileprivate static func apply() {
        guard isForeground(guardOutput.load(ordering: .relaxed)) else { return }
        if isChanged.exchange(true, ordering: .sequentiallyConsistent) { return }
        let input = guardInput.load(ordering: .relaxed)
        if input >= 0 { tcsetattr(input, TCSANOW, changedSettings) }
        put(entering, enteringCount.load(ordering: .relaxed))
    }

    /// Changes the terminal of a program that came from the background without a signal.
    static func applyIfNeeded() {
        if isGuarding.load(ordering: .relaxed), !isChanged.load(ordering: .relaxed) { apply() }
    }

    private static func prepare(_ mode: Mode, input: Int32?) {
        let (enter, leave) =
            switch mode {
            case .live: ("\u{1b}[?25l", "\u{1b}[?25h\u{1b}[?7h\u{1b}[0m")
            case .fullScreen:
                (
                    "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[?1000h\u{1b}[?1006h\u{1b}[H\u{1b}[2J",
                    "\u{1b}[?1006l\u{1b}[?1000l\u{1b}[0m\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l"
                )
            }
        fill(entering, enteringCount, enter)
        fill(leaving, leavingCount, leave)
        guard let input else { return }
        tcgetattr(input, savedSettings)
        changedSettings.pointee = savedSettings.pointee
        changedSettings.pointee.c_lflag &= ~tcflag_t(ECHO | ECHONL)
        guard mode == .fullScreen else { return }
        changedSettings.pointee.c_lflag &= ~tcflag_t(ICANON | IEXTEN)
        changedSettings.pointee.c_iflag &= ~tcflag_t(ICRNL | IXON)
        withUnsafeMutableBytes(of: &changedSettings.pointee.c_cc) { characters in
            characters[Int(VMIN)] = 1
            characters[Int(VTIME)] = 0
        }
    }

    private static func fill(_ buffer: UnsafeMutablePointer<UInt8>, _ count: borrowing Atomic<Int>, _ text: String) {
        for (index, byte) in text.utf8.enumerated() { buffer[index] = byte }
        count.store(text.utf8.count, ordering: .sequentiallyConsistent)
    }

    private static func put(_ buffer: UnsafeMutablePointer<UInt8>, _ count: Int) {
        _ = write(guardOutput.load(ordering: .relaxed), buffer, count)
    }

    /// Installs a handler. A signal that the parent process ignored stays ignored.
    static func catchUnlessIgnored(_ number: Int32, _ handler: @escaping @convention(c) (Int32) -> Void) {
        let previous = signal(number, handler)
        if unsafeBitCast(previous, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) { signal(number, SIG_IGN) }
    }
}

// Globals, because signal handlers have no context. They are first used outside of handlers (`enter`).
private let guardOutput = Atomic<Int32>(-1)
private let guardInput = Atomic<Int32>(-1)
private let isGuarding = Atomic<Bool>(false)
private let isChanged = Atomic<Bool>(false)
private let wasContinued = Atomic<Bool>(false)
private let enteringCount = Atomic<Int>(0)
private let leavingCount = Atomic<Int>(0)
// Written by `enter` before the handlers are installed, and only read after it.
private nonisolated(unsafe) let entering = UnsafeMutablePointer<UInt8>.allocate(capacity: 64)
private nonisolated(unsafe) let leaving = UnsafeMutablePointer<UInt8>.allocate(capacity: 64)
private nonisolated(unsafe) let savedSettings = UnsafeMutablePointer<termios>.allocate(capacity: 1)
private nonisolated(unsafe) let changedSettings = UnsafeMutablePointer<termios>.allocate(capacity: 1)

/// Runs in signal context.
private func endingSignal(_ number: Int32) {
    TerminalGuard.restore()
    signal(number, SIG_DFL)
    raise(number)
}

/// Runs in signal context. The process stops before `raise` returns.
private func stoppingSignal(_ number: Int32) {
    let savedError = errno
    TerminalGuard.restore()
    signal(number, SIG_DFL)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    raise(number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    signal(number, stoppingSignal)
    errno = savedError
}

/// Runs in signal context.
private func continuingSignal(_ number: Int32) {
    let savedError = errno
    if isGuarding.load(ordering: .relaxed) { TerminalGuard.apply() }
    wasContinued.store(true, ordering: .sequentiallyConsistent)
    errno = savedError
}
