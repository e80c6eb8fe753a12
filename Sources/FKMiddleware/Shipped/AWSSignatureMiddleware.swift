import Foundation

/// Signs requests with AWS Signature Version 4, for private objects of S3 and compatible servers.
///
/// ```swift
/// chains.register(request: try AWSSignatureMiddleware(), for: .host("bucket.s3.eu-west-1.amazonaws.com"))
/// ```
///
/// It runs for each attempt, so a signature is always fresh. Host, path and query are signed, and the range is not. The fields
/// are never stored and never follow a redirect to another origin. Requests to the host of the scope `.host` are signed, and with any
/// other scope those to the origin of the task's own URL. Register it before the queue starts, because tasks of an
/// earlier run need it too.
public struct AWSSignatureMiddleware: RequestMiddleware {
    /// Returns the credentials for a task.
    public typealias Credentials = @Sendable (TaskContext) async throws -> AWSCredentials

    /// The position in the chain. The default is 100; a middleware behind it must not change the URL.
    public let priority: Int
    private let signature: AWSSignature
    private let credentials: Credentials
    var scopeHost: String?

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - provider: `PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]]`, as curl's `--aws-sigv4`; the default is `aws:amz`. The region is
    ///     otherwise that of the credentials, of the host's name, or `us-east-1`, and the service `s3`.
    ///   - priority: the position in the chain; the default is 100.
    ///   - credentials: may be called for several tasks at once; the default is `AWSCredentials.usual()`.
    /// - Throws: `.invalidArgument` for another provider.
    public init(
        _ provider: String = "aws:amz", priority: Int = 100,
        credentials: @escaping Credentials = { _ in try AWSCredentials.usual() }
    ) throws(DownloadError) {
        signature = try AWSSignature(provider)
        self.priority = priority
        self.credentials = credentials
    }

    /// Adds the fields of the signature.
    ///
    /// - Throws: the error of `credentials`.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard mayAuthenticate(request, of: task) else { return request }
        var request = request
        signature.sign(&request, try await credentials(task), at: Date())
        return request
    }

    /// `Authorization`, and the field of the session's token.
    public var secretHeaders: [String] { ["Authorization", signature.tokenField] }
}

extension AWSSignatureMiddleware: CredentialMiddleware {}
