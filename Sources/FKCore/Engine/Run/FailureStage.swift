import FKMiddleware
import Foundation

/// The retry middlewares of a task, and what their decision means.
enum FailureStage {
    /// Asks the middlewares in order. The first decision other than `.useRules` counts.
    static func run(_ chain: [any RetryMiddleware], _ failure: AttemptFailure) async -> RetryDecision {
        for middleware in chain {
            let decision = await middleware.decide(failure)
            if decision == .useRules { continue }
            MiddlewareCall.record(middleware.name, text(decision))
            return decision
        }
        return .useRules
    }

    /// A line for the task's history.
    private static func text(_ decision: RetryDecision) -> String {
        switch decision {
        case .useRules: "leaves the failure to the rules for retries"
        case .retry(let after): "asks for another attempt" + (after > .zero ? " in \(after.inSeconds) s" : "")
        case .relinked(let url): "asks for another attempt from \(url.absoluteString.masked)"
        case .renewed: "has renewed the credential"
        case .fail(let error): "fails the task: \(error.message)"
        }
    }

    /// What is known when the middlewares have decided.
    struct Facts: Hashable {
        /// What the rules for retries decide.
        var rules: RetryRules.Decision
        /// The number of attempts so far, and their limit.
        var attempts: Int
        var maxAttempts: Int
        /// The entry of the plan that follows.
        var nextURLIndex: Int
        /// True if the attempt before has failed with the same status, and no byte has arrived since.
        var isRepeated: Bool
        /// `RetryPolicy.maxRetryAfter` in seconds.
        var longestDelay: Double
    }

    /// The decision about the next attempt.
    ///
    /// | decision | below the limit of attempts | at it |
    /// | --- | --- | --- |
    /// | use the rules | the rules | the rules |
    /// | retry after a time | after it, with the next entry of the plan | fail |
    /// | retry from an address | at once, with that address | fail |
    /// | renewed | the attempt does not count; it counts if it repeats | the same; fail if it repeats |
    /// | fail | fail | fail |
    static func next(_ decision: RetryDecision, _ facts: Facts) -> RetryRules.Decision {
        let mayRetry = facts.attempts < facts.maxAttempts
        switch decision {
        case .useRules: return facts.rules
        case .fail: return .fail
        case .renewed where !facts.isRepeated: return .askAgain
        case _ where !mayRetry: return .fail
        case .retry(let after):
            let seconds = after.inSeconds
            return .retry(
                after: seconds > 0 ? min(seconds, facts.longestDelay) : 0, nextURLIndex: facts.nextURLIndex,
                hostPause: nil)
        case .relinked: return .retry(after: 0, nextURLIndex: 0, hostPause: nil)
        case .renewed: return .retry(after: 0, nextURLIndex: facts.nextURLIndex, hostPause: nil)
        }
    }

    /// Asks response middlewares whether they accept a head. The first error ends it.
    ///
    /// - Returns: why the file is refused; nil if it is not.
    static func accept(
        _ chain: [any ResponseMiddleware], _ head: HTTPURLResponse, _ context: TaskContext
    ) async -> DownloadError? {
        for middleware in chain {
            do {
                try await middleware.accept(head, for: context)
            } catch let retry as RetryRequest {
                return DownloadError(
                    .middleware, "\(middleware.name) asks for another attempt: \(retry.reason)", isRetryable: true,
                    retryAfter: retry.delay)
            } catch {
                return error as? DownloadError
                    ?? DownloadError(.rejected, "\(middleware.name) refused the file by its head: \(error)")
            }
        }
        return nil
    }
}
