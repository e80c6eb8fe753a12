import Foundation

/// Adds a credential to requests and renews it when a server refuses it.
///
/// ```swift
/// struct Session: Authenticator {
///     let tokens: TokenStore
///     func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
///         request.setValue("Bearer \(await tokens.current)", forHTTPHeaderField: "Authorization")
///     }
///     func refresh(after failure: AttemptFailure) async throws { try await tokens.renew() }
/// }
/// chains.register(authenticator: Session(tokens: tokens), for: .host("files.example.com"))
/// ```
///
/// A credential belongs to a server. With a scope that names a host, `authenticate` runs for the requests to that host; with any
/// other scope, for the requests to the origin of the task's own URL, and not for those to its mirrors, to addresses that a list or a
/// server named, and to a new address of `DownloadTask.relink(to:)`.
///
/// `refresh` runs once for any number of tasks whose requests were refused, and never twice at the same time. While it runs, the
/// tasks of the scope send nothing: those that were refused wait for it, and so do those whose turn comes meanwhile. They hold no
/// slot. They then begin another attempt, which does not count. A task whose next attempt is refused as well fails with that
/// error. If `refresh` throws, the waiting tasks fail with its error. At most 5 renewals begin in 30 s: later refusals fail their
/// tasks. `refresh` must not wait for a download of the same scope, which would wait for it.
public protocol Authenticator: Sendable {
    /// Adds the credential. It runs before each request.
    ///
    /// - Throws: any error fails the attempt, as for `RequestMiddleware.process`.
    func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws
    /// Renews the credential.
    ///
    /// - Parameter failure: the first refusal. Others may wait for the same renewal.
    func refresh(after failure: AttemptFailure) async throws
    /// True if the server has refused the credential. The default is true for the status 401.
    func isRefusal(_ failure: AttemptFailure) -> Bool
    /// The names of the header fields that `authenticate` sets. They never follow a redirect to another origin. The default
    /// is `Authorization`.
    var secretHeaders: [String] { get }
}

extension Authenticator {
    /// True for the status 401.
    public func isRefusal(_ failure: AttemptFailure) -> Bool { failure.error.status == 401 }
    /// `Authorization`.
    public var secretHeaders: [String] { ["Authorization"] }
}

extension MiddlewareChains {
    /// Registers an authenticator, for the requests and for their failures.
    ///
    /// - Parameters:
    ///   - priority: the position in the chain; the default is 100.
    ///   - scope: the tasks it handles; the default is all. `.host` is the usual one, and the only one whose credential goes to
    ///     mirrors of that host.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func register(
        authenticator: any Authenticator, priority: Int = 100, for scope: MiddlewareScope = .all
    ) -> RequestRegistration {
        register(request: AuthenticationMiddleware(authenticator, priority: priority), for: scope)
    }
}

/// A request middleware of this library that sets a credential without a look at the request's URL.
protocol CredentialMiddleware: RequestMiddleware {
    /// The host of its scope, which receives the credential, as `MiddlewareScope.hostName` returns it; nil for any other scope.
    var scopeHost: String? { get set }
}

extension CredentialMiddleware {
    /// The middleware as it is registered for a scope.
    func bound(to scope: MiddlewareScope) -> Self {
        var bound = self
        bound.scopeHost = scope.host
        return bound
    }

    /// True if a request may receive the credential: it goes to the host of the scope, or with another scope to the origin of the
    /// task's own URL. A middleware before this one may have sent it elsewhere.
    func mayAuthenticate(_ request: URLRequest, of task: TaskContext) -> Bool {
        guard let url = request.url?.absoluteString else { return false }
        if let scopeHost { return MiddlewareScope.hostName(of: url).isExactly(scopeHost) }
        return URLOrigin(url) == URLOrigin(task.originalURL.absoluteString)
    }
}

/// An authenticator in the request chain and in the failure stage.
struct AuthenticationMiddleware: CredentialMiddleware, RetryMiddleware {
    private let authenticator: any Authenticator
    private let renewal: CredentialRenewal
    let priority: Int
    var scopeHost: String?
    var name: String { String(describing: type(of: authenticator)) }
    var secretHeaders: [String] { authenticator.secretHeaders }

    /// - Parameter now: the clock of the renewals; the default is the system's.
    init(
        _ authenticator: any Authenticator, priority: Int,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.authenticator = authenticator
        renewal = CredentialRenewal(now: now)
        self.priority = priority
    }

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard mayAuthenticate(request, of: task) else { return request }
        try await renewal.awaitEnd(for: task.id)
        var request = request
        try await authenticator.authenticate(&request, for: task)
        return request
    }

    func decide(_ failure: AttemptFailure) async -> RetryDecision {
        if renewal.claimHeld(failure) { return await renewal.decideHeld() }
        guard authenticator.isRefusal(failure) else { return .useRules }
        var before = failure
        if let previous = failure.previousError { before.error = previous }
        let isRepeated = failure.previousError != nil && failure.progress == 0 && authenticator.isRefusal(before)
        return await renewal.decide(failure, isRepeated: isRepeated) { [authenticator] in
            try await authenticator.refresh(after: failure)
        }
    }
}

/// Renews one credential for all tasks that need it.
package final class CredentialRenewal: Sendable {
    /// The maximum number of renewals that begin in `window`.
    static let most = 5
    static let window: Duration = .seconds(30)

    private struct State {
        /// The renewal in progress.
        var flight: Task<Void, any Error>?
        /// The begins of the last renewals.
        var begins: [ContinuousClock.Instant] = []
        /// The end of the last one, and its error.
        var last: (ended: ContinuousClock.Instant, error: DownloadError?)?
        /// The tasks whose attempts ended before their requests, because a renewal was in progress.
        var held: Set<TaskID> = []
    }

    /// True in a request chain whose attempt may end, so that its task waits without a slot. The default is false: the chain waits.
    @TaskLocal package static var endsAttempts = false

    private static let heldMessage = "The request waits for the renewal of its credential."

    /// Waits for the renewal in progress, if there is one.
    ///
    /// - Throws: the error of the renewal; with `endsAttempts` the error by which `claimHeld` knows the attempt.
    func awaitEnd(for id: TaskID) async throws {
        let flight = state.withLock { state in
            if state.flight != nil, Self.endsAttempts { state.held.insert(id) }
            return state.flight
        }
        guard let flight else { return }
        if Self.endsAttempts { throw DownloadError(.middleware, Self.heldMessage, isRetryable: true) }
        do {
            try await Waiting.value(of: flight)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Self.wrapped(error)
        }
    }

    /// True if the attempt has ended because a renewal was in progress.
    func claimHeld(_ failure: AttemptFailure) -> Bool {
        let isHeld = state.withLock { $0.held.remove(failure.task.id) != nil }
        return isHeld && failure.error.code == .middleware && failure.error.message == Self.heldMessage
    }

    /// Decides what follows for such an attempt, when the renewal has ended.
    func decideHeld() async -> RetryDecision {
        let (flight, error) = state.withLock { ($0.flight, $0.last?.error) }
        guard let flight else { return error.map { .fail($0) } ?? .renewed }
        return await decision(after: flight)
    }

    private func decision(after flight: Task<Void, any Error>) async -> RetryDecision {
        do {
            try await Waiting.value(of: flight)
            return .renewed
        } catch is CancellationError {
            return .useRules
        } catch {
            return .fail(Self.wrapped(error))
        }
    }

    private enum Step {
        case wait(Task<Void, any Error>)
        case done(RetryDecision)
    }

    private let state = Locked(State())
    private let now: @Sendable () -> ContinuousClock.Instant

    init(now: @escaping @Sendable () -> ContinuousClock.Instant) { self.now = now }

    /// Decides what follows a refusal.
    ///
    /// - Parameters:
    ///   - isRepeated: true if the attempt before was refused as well, and no byte has arrived since.
    ///   - refresh: renews the credential.
    func decide(
        _ failure: AttemptFailure, isRepeated: Bool, refresh: @escaping @Sendable () async throws -> Void
    ) async -> RetryDecision {
        switch state.withLock({ step(&$0, failure, isRepeated, refresh) }) {
        case .done(let decision): return decision
        case .wait(let flight): return await decision(after: flight)
        }
    }

    private func step(
        _ state: inout State, _ failure: AttemptFailure, _ isRepeated: Bool,
        _ refresh: @escaping @Sendable () async throws -> Void
    ) -> Step {
        if let flight = state.flight { return isRepeated ? .done(.useRules) : .wait(flight) }
        // The request may have been made with the credential of before the last renewal.
        if let last = state.last, failure.began < last.ended {
            return .done(last.error.map { .fail($0) } ?? .renewed)
        }
        if isRepeated { return .done(.useRules) }
        let now = now()
        state.begins.removeAll { now - $0 > Self.window }
        guard state.begins.count < Self.most else {
            return .done(state.last?.error.map { .fail($0) } ?? .useRules)
        }
        state.begins.append(now)
        let flight = Task { [self] in
            do {
                try await refresh()
                end(nil)
            } catch {
                end(Self.wrapped(error))
                throw error
            }
        }
        state.flight = flight
        return .wait(flight)
    }

    private func end(_ error: DownloadError?) {
        let now = now()
        state.withLock {
            $0.flight = nil
            $0.last = (now, error)
        }
    }

    private static func wrapped(_ error: any Error) -> DownloadError {
        DownloadError(wrapping: error, code: .middleware, message: "The credential could not be renewed: \(error)")
    }

    /// Waits for a task. A cancelled waiter does not wait on.
    private enum Waiting {
        static func value(of flight: Task<Void, any Error>) async throws {
            let result = Locked<CheckedContinuation<Void, any Error>?>(nil)
            let finish: @Sendable (Result<Void, any Error>) -> Void = { value in
                result.withLock { $0.take() }?.resume(with: value)
            }
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    result.withLock { $0 = continuation }
                    if Task.isCancelled { return finish(.failure(CancellationError())) }
                    Task { finish(await flight.result) }
                }
            } onCancel: {
                finish(.failure(CancellationError()))
            }
        }
    }
}
