import FKMiddleware
import Foundation

/// A failed attempt whose middlewares decide what follows: the failure stage, the rules for retries, and the response chain
/// before the task fails. It has no slot and no file. Confined to the engine.
final class FailedAttempt {
    let heads: Heads
    /// True while a middleware runs.
    private(set) var isAsking = false
    private unowned let run: TaskRun
    private let error: DownloadError
    /// What the rules for retries decide.
    private let rules: RetryRules.Decision
    /// The retry middlewares that handle the task.
    private let stage: [any RetryMiddleware]
    private let chains: MiddlewareChains

    private var entry: TaskEntry { run.entry }

    /// - Parameter url: the URL of the attempt.
    init(_ run: TaskRun, _ error: DownloadError, _ rules: RetryRules.Decision, from url: String) {
        self.run = run
        self.error = error
        self.rules = rules
        heads = run.heads
        chains = run.book.chains
        stage = chains.failureStage(for: run.entry.context, url: url)
    }

    /// True if middlewares have a say in the failure.
    var asksMiddlewares: Bool { rules == .fail && entry.isHandled(by: chains.response) || !stage.isEmpty }

    /// Asks the middlewares about the failure, and then ends the attempt.
    func decide(isolation: isolated (any Actor)? = #isolation) async {
        let (attempt, stage) = (run.attempt, stage)
        let failure = AttemptFailure(
            task: entry.context, error: error, response: heads.refused?.httpURLResponse,
            received: entry.record.received,
            progress: attempt.progress(received: entry.record.received), previousError: attempt.previousError,
            began: attempt.instant)
        guard let decision = await ask({ await FailureStage.run(stage, failure) }) else { return run.stopped() }
        let previous = attempt.previousError
        // Bytes that were dropped again are no step forward.
        let hasKept = entry.record.received > attempt.receivedBefore
        let retry = run.configure.retry
        let facts = FailureStage.Facts(
            rules: rules, attempts: entry.record.countedAttempts,
            maxAttempts: entry.record.task.optionsBox?.value.maxAttempts ?? retry.maxAttempts,
            nextURLIndex: entry.record.attempts % entry.record.plan.count,
            isRepeated: !hasKept && previous?.code == error.code && previous?.status == error.status,
            longestDelay: retry.maxRetryAfterSeconds)
        var next = FailureStage.next(decision, facts)
        var error = error
        if case .fail(let given) = decision { error = given }
        if case .relinked(let url) = decision, next != .fail {
            do throws(DownloadError) {
                entry.record.relink(to: try url.absoluteString.normalizedURL())
            } catch {
                return await giveUp(error, facts)
            }
            // A repair asks a mirror first, unless an address was named.
            let plan = entry.record.plan
            let own = (plan.count - entry.record.firstOfPlan) % plan.count
            next = .retry(after: 0, nextURLIndex: own, hostPause: nil)
        }
        if case .retry(let seconds, _, _) = next, case .retry = decision { error.retryAfterSeconds = seconds }
        if next == .fail { return await giveUp(error, facts) }
        run.follow(next, error)
    }

    /// Tells response middlewares of the failure. `RetryRequest` of one of them begins another attempt.
    private func giveUp(
        _ error: DownloadError, _ facts: FailureStage.Facts, isolation: isolated (any Actor)? = #isolation
    ) async {
        let chain = entry.middlewares(of: chains.response)
        guard !chain.isEmpty else { return run.follow(.fail, error) }
        let response = DownloadResponse(
            task: entry.context, response: (heads.refused ?? heads.last)?.httpURLResponse, error: error,
            destination: URL(fileURLWithPath: entry.record.destination(in: run.book.workPath)))
        guard let end = await ask({ await ResponseChainEnd.run(chain, response) }) else { return run.stopped() }
        guard let retry = end.retry else { return run.follow(.fail, error) }
        let next = FailureStage.next(.retry(after: retry.request.delay ?? .zero), facts)
        guard case .retry(let seconds, _, _) = next else { return run.follow(.fail, error) }
        run.appendHistory(by: retry.name, "asks for another attempt: \(retry.request.reason)")
        var error = error
        error.retryAfterSeconds = seconds
        run.follow(next, error)
    }

    /// Runs middlewares. nil if the run was stopped during the wait.
    private func ask<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: @Sendable () async -> Value
    ) async -> Value? {
        isAsking = true
        let value = await run.inChain(body)
        isAsking = false
        return run.stop == nil ? value : nil
    }
}
