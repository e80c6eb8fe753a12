import FKEngine
import FKMiddleware
import Foundation

/// Ends a command at a signal while it reads a source or a list, when it has nothing to save. A run takes the signals over.
enum ReadingTrap {
    /// Catches the signals from now on.
    static func set(_ context: CommandContext) {
        _ = SignalTrap { number in
            // Source programs have groups of their own, which the terminal does not signal.
            ProgramRun.killAll()
            TerminalGuard.restore()
            if !context.global.json {
                context.errors.writeLine("Stopped before anything was fetched. Go on with the same command.")
            }
            _exit(SignalTrap.exitStatus(number))
        }
    }
}
