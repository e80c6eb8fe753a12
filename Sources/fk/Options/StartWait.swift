import FKCore
import FKMiddleware
import Foundation

/// Waits for the time of `--at`. It follows the wall clock, so that a computer that was asleep starts at the right time.
struct StartWait: Sendable {
    let time: Date
    let context: CommandContext
    private var global: GlobalOptions { context.global }

    /// Waits, and says for what.
    ///
    /// - Returns: nil at that time; the exit status if a signal came first.
    /// - Throws: `DownloadError` if the work path cannot be used. This is checked before the wait, because the user may have
    ///   left when it ends.
    func run() async throws -> Int32? {
        try WorkPath(global.workPath).open(create: true)
        let signal = Locked<Int32?>(nil)
        let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
        let trap = SignalTrap { number in
            signal.withLock { $0 = number }
            continuation.yield()
        }
        if !global.quiet { context.errors.writeLine(Self.text(time, now: Date())) }
        let sleeper = Task {
            while !Task.isCancelled, case let pause = Self.pause(until: time, now: Date()), pause > 0 {
                try? await Task.sleep(for: .seconds(pause))
            }
            continuation.yield()
        }
        for await _ in ended { break }
        sleeper.cancel()
        withExtendedLifetime(trap) {}
        guard let number = signal.withLock(\.self) else { return nil }
        if !global.quiet { context.errors.writeLine("Stopped before the start: nothing was fetched.") }
        return SignalTrap.exitStatus(number)
    }

    /// The seconds until the clock is to be read again: at most 10, because it may be set; 0 at the time.
    static func pause(until time: Date, now: Date) -> Double { max(0, min(time.timeIntervalSince(now), 10)) }

    /// `Waiting until 2026-11-23 06:00:00, for 7h30m; Ctrl-C ends it.`
    static func text(_ time: Date, now: Date) -> String {
        var parts = tm()
        var seconds = time_t(time.timeIntervalSince1970.rounded())
        localtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = "\(parts.tm_year + 1_900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        let rest = Formatting.duration(max(0, time.timeIntervalSince(now)).rounded())
        return "Waiting until \(day) \(clock), for \(rest); Ctrl-C ends it."
    }
}
