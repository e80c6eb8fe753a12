import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sets `Authorization: Bearer <token>` (RFC 6750 section 2.1) with a token that a closure gives for each attempt.
///
/// ```swift
/// chains.register(request: BearerTokenMiddleware { task in
///     try await session.freshToken(for: task.originalURL.host())
/// })
/// ```
///
/// The closure is asked on every attempt, so an expired token is renewed by the retry. The field never follows a
/// redirect to another origin and is never stored.
public struct BearerTokenMiddleware: RequestMiddleware {
    /// Gives the token, or nil to send the request without one, for example to other hosts.
    public typealias Token = @Sendable (TaskContext) async throws -> String?

    /// Position in the chain.
    public let priority: Int
    private let token: Token

    /// - Parameters:
    ///   - priority: position in the chain; 100 by default.
    ///   - token: may be called for several tasks at once. What it throws fails the attempt: a `DownloadError` with
    ///     `isRetryable` is retried, everything else ends the task in error.
    public init(priority: Int = 100, token: @escaping Token) {
        self.priority = priority
        self.token = token
    }

    /// - Throws: what the closure throws; `.middleware` for a token that a header cannot hold.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard let token = try await token(task) else { return request }
        guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw DownloadError(.middleware, "The bearer token is empty or has a character that a header cannot hold.")
        }
        var request = request
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return request
    }

    /// The token never leaves its origin.
    public var secretHeaders: [String] { ["Authorization"] }
}
