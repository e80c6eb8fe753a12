import Foundation

/// Sets `Authorization: Bearer <token>` (RFC 6750 section 2.1), and renews the token when a server refuses it.
///
/// ```swift
/// chains.register(request: BearerTokenMiddleware(refresh: { _ in try await session.renew() }) { task in
///     await session.token(for: task.originalURL.host())
/// })
/// ```
///
/// The token's closure runs on every attempt. The token is sent to the host of the scope `.host`, and with any other scope to the
/// origin of the task's own URL: mirrors and other addresses of a file do not receive it. The field never follows a redirect to
/// another origin and is never stored.
public struct BearerTokenMiddleware: RequestMiddleware, RetryMiddleware {
    /// Returns the token, or nil to send the request without one, for example to other hosts.
    public typealias Token = @Sendable (TaskContext) async throws -> String?
    /// Renews the token after the status 401, as `Authenticator.refresh` does.
    public typealias Refresh = @Sendable (AttemptFailure) async throws -> Void

    /// The position in the chain. The default is 100.
    public let priority: Int
    private var authentication: AuthenticationMiddleware
    private let canRefresh: Bool

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - priority: the position in the chain; the default is 100.
    ///   - refresh: renews the token, once for all tasks that were refused. nil, the default, renews none: a 401 fails the
    ///     task.
    ///   - token: may be called for several tasks at once. An error it throws fails the attempt: a `DownloadError`
    ///     with `isRetryable` is retried, any other error ends the task in `error`.
    public init(priority: Int = 100, refresh: Refresh? = nil, token: @escaping Token) {
        self.priority = priority
        authentication = AuthenticationMiddleware(BearerToken(token: token, renew: refresh), priority: priority)
        canRefresh = refresh != nil
    }

    /// Adds the field, unless the closure returns nil.
    ///
    /// - Throws: the closure's error; `.middleware` for a token that a header field cannot contain.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        try await authentication.process(request, for: task)
    }

    /// Renews the token after the status 401.
    public func decide(_ failure: AttemptFailure) async -> RetryDecision {
        canRefresh ? await authentication.decide(failure) : .useRules
    }

    /// `Authorization`: the token never follows a redirect to another origin.
    public var secretHeaders: [String] { authentication.secretHeaders }
}

private struct BearerToken: Authenticator {
    let token: BearerTokenMiddleware.Token
    let renew: BearerTokenMiddleware.Refresh?

    func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
        guard let token = try await token(task) else { return }
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw DownloadError(.middleware, "The bearer token is empty or has a character that a header cannot hold.")
        }
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    }

    func refresh(after failure: AttemptFailure) async throws { try await renew?(failure) }
}

extension BearerTokenMiddleware: CredentialMiddleware {
    var scopeHost: String? {
        get { authentication.scopeHost }
        set { authentication.scopeHost = newValue }
    }
}
