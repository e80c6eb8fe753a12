import Foundation

/// Decides what follows a failed attempt, before the rules for retries do.
///
/// ```swift
/// chains.onFailure("busy mirror") { failure in
///     failure.error.status == 503 ? .retry(from: URL(string: "https://mirror.example.com/file")!) : .useRules
/// }
/// ```
///
/// The failure stage asks the retry middlewares of all chains in the order of their priorities: the ones registered with
/// `MiddlewareChains.register(failure:)`, and the request and response middlewares that are retry middlewares as well. The
/// first decision other than `.useRules` counts. A task holds no slot meanwhile.
public protocol RetryMiddleware: Middleware {
    /// Called once after each failed attempt, so at most as often as the task may have attempts, and once more for each
    /// `.renewed`.
    func decide(_ failure: AttemptFailure) async -> RetryDecision
}

/// A failed attempt.
public struct AttemptFailure: Sendable {
    /// The task. `attempt` is the number of the failed attempt.
    public var task: TaskContext
    /// Why it failed.
    public var error: DownloadError
    /// The head of the answer that failed; nil when no server answered.
    public var response: HTTPURLResponse?
    /// The number of bytes of the file that are there.
    public var received: Int64
    /// The number of bytes that this attempt has received, also those that a wrong digest has dropped since.
    public var progress: Int64
    /// Why the attempt before failed; nil for the first one.
    public var previousError: DownloadError?
    /// When the attempt began.
    public var began: ContinuousClock.Instant

    /// Creates a failure for tests of a middleware. The engine creates its own.
    public init(
        task: TaskContext, error: DownloadError, response: HTTPURLResponse? = nil, received: Int64 = 0,
        progress: Int64 = 0, previousError: DownloadError? = nil, began: ContinuousClock.Instant = .now
    ) {
        self.task = task
        self.error = error
        self.response = response
        self.received = received
        self.progress = progress
        self.previousError = previousError
        self.began = began
    }
}

/// What follows a failed attempt. The limit of attempts applies to every retry.
public enum RetryDecision: Sendable, Hashable {
    /// The next middleware decides, and after the last one the rules for retries (`RetryPolicy`).
    case useRules
    /// Another attempt after that time, at most `RetryPolicy.maxRetryAfter`; immediately if it is zero or less.
    case retry(after: Duration)
    /// Another attempt at once, with this address in place of the task's URL, as `DownloadTask.relink(to:)` does.
    case relinked(URL)
    /// A credential was renewed: another attempt at once, which does not count. If the attempt before has failed with the
    /// same status and no byte has arrived since, it counts.
    case renewed
    /// The task fails with this error.
    case fail(DownloadError)

    /// `.relinked`: another attempt at once, from this address.
    public static func retry(from url: URL) -> Self { .relinked(url) }
}
