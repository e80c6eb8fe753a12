import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sets `Authorization: Bearer <token>` (RFC 6750 section 2.1). A closure returns the token for each attempt.
///
/// ```swift
/// chains.register(request: BearerTokenMiddleware { task in
///     try await session.freshToken(for: task.originalURL.host())
/// })
/// ```
///
/// The closure runs on every attempt, so a retry gets a fresh token. The field never follows a redirect to another
/// origin and is never stored.
public struct BearerTokenMiddleware: RequestMiddleware {
    /// Returns the token, or nil to send the request without one, for example to other hosts.
    public typealias Token = @Sendable (TaskContext) async throws -> String?

    /// The position in the chain. The default is 100.
    public let priority: Int
    private let token: Token

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - priority: the position in the chain; the default is 100.
    ///   - token: may be called for several tasks at once. An error it throws fails the attempt: a `DownloadError`
    ///     with `isRetryable` is retried, any other error ends the task in `error`.
    public init(priority: Int = 100, token: @escaping Token) {
        self.priority = priority
        self.token = token
    }

    /// Adds the field, unless the closure returns nil.
    ///
    /// - Throws: the closure's error; `.middleware` for a token that a header field cannot contain.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let token = try await token(task) else { return request }
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw DownloadError(.middleware, "The bearer token is empty or has a character that a header cannot hold.")
        }
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return request
    }

    /// `Authorization`: the token never follows a redirect to another origin.
    public var secretHeaders: [String] { ["Authorization"] }
}
