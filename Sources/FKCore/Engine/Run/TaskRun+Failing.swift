import FKMiddleware
import Foundation

/// The end of a failed attempt: the failure stage, the rules for retries, and the response chain before the task fails.
extension TaskRun {
    /// The retry middlewares that handle the task.
    private var failureStage: [any RetryMiddleware] {
        room.chains.failureStage(for: entry.context, url: URL(string: url))
    }

    /// True if middlewares have a say in the failure.
    func asksMiddlewares(about rules: RetryRules.Decision) -> Bool {
        rules == .fail && entry.isHandled(by: room.chains.response) || !failureStage.isEmpty
    }

    /// Asks the middlewares about the failure, and then ends the attempt. It has no slot meanwhile.
    func decide(_ error: DownloadError, _ rules: RetryRules.Decision, isolation: isolated (any Actor)? = #isolation)
        async
    {
        guard let context = entry.context else { return follow(rules, error) }
        let stage = failureStage
        let failure = AttemptFailure(
            task: context, error: error, response: refusedHead?.httpURLResponse, received: entry.record.received,
            progress: max(0, entry.record.received - attempt.receivedBefore), previousError: attempt.previousError,
            began: attempt.instant)
        guard let decision = await ask({ await FailureStage.run(stage, failure) }) else { return stopped() }
        let previous = attempt.previousError
        let facts = FailureStage.Facts(
            rules: rules, attempts: entry.record.attempts,
            maxAttempts: entry.record.task.option { $0.maxAttempts } ?? configure.retry.maxAttempts,
            nextURLIndex: entry.record.attempts % entry.record.plan.count,
            isRepeated: failure.progress == 0 && previous?.code == error.code && previous?.status == error.status,
            longestDelay: configure.retry.maxRetryAfterSeconds)
        var next = FailureStage.next(decision, facts)
        var error = error
        if case .fail(let given) = decision { error = given }
        if case .relinked(let url) = decision, next != .fail {
            do throws(DownloadError) { try relink(to: url) } catch {
                return await giveUp(error, facts)
            }
            // A repair asks a mirror first, unless an address was named.
            let plan = entry.record.plan
            let own = (plan.count - entry.record.firstOfPlan) % plan.count
            next = .retry(after: 0, nextURLIndex: own, hostPause: nil)
        }
        if case .retry(let seconds, _, _) = next, case .retry = decision { error.retryAfterSeconds = seconds }
        if next == .fail { return await giveUp(error, facts) }
        follow(next, error)
    }

    /// Tells response middlewares of the failure. `RetryRequest` of one of them begins another attempt.
    private func giveUp(
        _ error: DownloadError, _ facts: FailureStage.Facts, isolation: isolated (any Actor)? = #isolation
    ) async {
        let chain = entry.middlewares(of: room.chains.response)
        guard !chain.isEmpty, let context = entry.context else { return follow(.fail, error) }
        let response = DownloadResponse(
            task: context, response: (refusedHead ?? head)?.httpURLResponse, error: error)
        guard let end = await ask({ await ResponseChainEnd.run(chain, response) }) else { return stopped() }
        guard let retry = end.retry else { return follow(.fail, error) }
        let next = FailureStage.next(.retry(after: retry.request.delay ?? .zero), facts)
        guard case .retry(let seconds, _, _) = next else { return follow(.fail, error) }
        appendHistory(by: retry.name, "asks for another attempt: \(retry.request.reason)")
        var error = error
        error.retryAfterSeconds = seconds
        follow(next, error)
    }

    /// Runs middlewares. nil if the run was stopped meanwhile.
    private func ask<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: @Sendable () async -> Value
    ) async -> Value? {
        isResponding = true
        let (value, notes) = await MiddlewareCall.inChain(of: room.engine, entry.id, body)
        isResponding = false
        notes.forEach(note)
        return stop == nil ? value : nil
    }

    private func relink(to url: URL) throws(DownloadError) {
        entry.record.relink(to: try URLNormalizer.normalize(url.absoluteString))
    }
}
