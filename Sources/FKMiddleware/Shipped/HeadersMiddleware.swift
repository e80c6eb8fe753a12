import Foundation

/// Adds header fields to every request and replaces fields of the same name.
///
/// ```swift
/// chains.register(request: try HeadersMiddleware([HeaderField("X-Api-Key", key)], secret: ["X-Api-Key"]))
/// ```
///
/// It runs again on each attempt. The fields are never stored. Secret fields are sent to the host of the scope `.host`, and with any
/// other scope to the origin of the task's own URL; the other fields are sent with every request.
public struct HeadersMiddleware: RequestMiddleware {
    /// The position in the chain. The default is 100.
    public let priority: Int
    /// The names of the secret fields, which no other origin receives, also after a redirect. The default is none.
    public let secretHeaders: [String]
    private let fields: [HeaderField]
    var scopeHost: String?

    /// Creates the middleware.
    ///
    /// - Parameters:
    ///   - fields: of several with one name, the last one counts. A name must be a token (RFC 9110 section 5.6.2). A value must not contain
    ///     control characters except tab, so that it cannot add another field or request.
    ///   - secret: the names among them that no other origin may receive; the default is none. `Authorization`, `Cookie` and
    ///     names that look like a secret's, such as `X-Api-Key`, always belong to them.
    ///   - priority: the position in the chain; the default is 100.
    /// - Throws: `.invalidArgument` with the name of the invalid field, never with its value.
    public init(_ fields: [HeaderField], secret: [String] = [], priority: Int = 100) throws(DownloadError) {
        for field in fields { try Self.validate(name: field.name, value: field.value) }
        self.fields = fields
        self.secretHeaders = secret
        self.priority = priority
    }

    /// Sets the fields. It never throws.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        let isOwn = mayAuthenticate(request, of: task)
        for field in fields where isOwn || !isSecret(field.name) {
            request.setValue(field.value, forHTTPHeaderField: field.name)
        }
        return request
    }

    private func isSecret(_ name: String) -> Bool {
        name.isSecretName || secretHeaders.contains { $0.lowercased() == name.lowercased() }
    }

    static func validate(name: String, value: String) throws(DownloadError) {
        guard name.isFieldName else {
            throw DownloadError(
                .invalidArgument, "\(String(reflecting: String(name.prefix(60)))) is not a name of a header field.")
        }
        guard value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }) else {
            throw DownloadError(.invalidArgument, "The value of the header field \(name) has a control character.")
        }
    }
}

extension HeadersMiddleware: CredentialMiddleware {}
