import FKMiddleware
import Foundation

/// The end of one run of a program, and what it has written.
struct ProgramResult: Sendable, Hashable {
    /// How it ended.
    enum End: Sendable, Hashable {
        /// With this status, 0 to 255.
        case exited(Int32)
        /// By a signal that this process did not send.
        case signalled(Int32)
        /// It was killed after its time limit.
        case timedOut
        /// It was killed because it wrote more than `ProgramAnswer.maxBytes`.
        case flooded
        /// It exited, and a process that it had started kept its output open. That process was killed.
        case heldOpen
        /// It was not started.
        case notStarted(String, isRetryable: Bool)
    }

    var end: End
    /// What it wrote to standard output, at most `ProgramAnswer.maxBytes`.
    var output: [UInt8] = []
    /// The beginning of what it wrote to standard error.
    var errors: [UInt8] = []
}

extension ProgramResult.End {
    /// The reason why it did not do its work, which completes the sentence "The program …"; nil if it exited by itself.
    func fault(timeLimit: Duration) -> String? {
        switch self {
        case .exited: return nil
        case .signalled(let signal):
            return "was ended by signal \(signal) (\(String(cString: strsignal(signal))))"
        case .timedOut:
            let seconds = timeLimit.inSeconds
            let shown = seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)"
            return "did not end within \(shown) s and was killed"
        case .flooded: return "wrote more than \(ProgramAnswer.maxBytes >> 20) MiB and was killed"
        case .heldOpen: return "left a process behind that keeps its output open; its process group was killed"
        case .notStarted(let reason, _): return "did not run: \(reason)"
        }
    }
}

/// What one run of a program means for its task.
enum ProgramVerdict: Sendable, Hashable {
    /// It accepts, with these changes.
    case accept(ProgramAnswer)
    /// It asks for another attempt.
    case retry(String)
    /// It refuses.
    case reject(String)
    /// It did not do its work. The text completes the sentence "The program …".
    case broken(String, isRetryable: Bool)

    /// EX_TEMPFAIL of sysexits.h: asks for another attempt.
    static let retryStatus: Int32 = 75

    /// Judges a run.
    ///
    /// | end | verdict |
    /// | --- | --- |
    /// | status 0 and a valid answer | accept |
    /// | status 0 and anything else in its output | broken |
    /// | status 75 | retry |
    /// | any other status | reject |
    /// | a signal, its time limit, too much output, an output that stays open, not started | broken |
    ///
    /// - Parameter mask: masks the secrets that are known, in the reason.
    init(
        _ result: ProgramResult, _ stage: MiddlewareProgram.Stage, timeLimit: Duration,
        mask: (String) -> String = { $0 }
    ) {
        let reason = ProgramReason.text(result.errors, mask: mask)
        if let text = result.end.fault(timeLimit: timeLimit) {
            let isRetryable = if case .notStarted(_, let isRetryable) = result.end { isRetryable } else { false }
            let words = if case .signalled = result.end { reason.map { ": \($0)" } ?? "" } else { "" }
            self = .broken(text + words, isRetryable: isRetryable)
            return
        }
        switch result.end {
        case .exited(Self.retryStatus): self = .retry(reason ?? "exit status \(Self.retryStatus)")
        case .exited(let status) where status != 0: self = .reject(reason ?? "exit status \(status)")
        default:
            do throws(ProgramAnswer.Fault) {
                self = .accept(try ProgramAnswer(result.output, stage))
            } catch {
                self = .broken(mask(error.text), isRetryable: false)
            }
        }
    }

    /// The error of a task; nil if the program accepts.
    ///
    /// - Parameter verb: what a refusal does: "refused the request" or "rejected the file".
    func error(of name: String, _ verb: String) -> DownloadError? {
        switch self {
        case .accept: nil
        case .retry(let reason):
            DownloadError(.middleware, "The middleware program \(name) asks for a retry: \(reason)", isRetryable: true)
        case .reject(let reason): DownloadError(.rejected, "The middleware program \(name) \(verb): \(reason)")
        case .broken(let text, let isRetryable):
            DownloadError(
                .middleware, "The middleware program \(name) \(text).", underlying: isRetryable ? text : nil,
                isRetryable: isRetryable)
        }
    }
}
