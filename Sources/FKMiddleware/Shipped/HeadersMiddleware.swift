import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Adds header fields to every request, replacing fields of the same name.
///
/// ```swift
/// chains.register(request: try HeadersMiddleware(["X-Api-Key": key], secret: ["X-Api-Key"]))
/// ```
///
/// Runs again on each attempt and is never stored.
public struct HeadersMiddleware: RequestMiddleware {
    /// Position in the chain.
    public let priority: Int
    /// Names among the fields that must not follow a redirect to another origin.
    public let secretHeaders: [String]
    private let fields: [String: String]

    /// - Parameters:
    ///   - fields: names and values. A name must be a token (RFC 9110 section 5.6.2); a value holds no control
    ///     character but a tab, so that nothing can be smuggled into the request.
    ///   - secret: names among them that must not follow a redirect to another origin.
    ///   - priority: position in the chain; 100 by default.
    /// - Throws: `.invalidArgument` naming the field; its value is not shown.
    public init(_ fields: [String: String], secret: [String] = [], priority: Int = 100) throws {
        for (name, value) in fields { try Self.validate(name: name, value: value) }
        self.fields = fields
        self.secretHeaders = secret
        self.priority = priority
    }

    /// Sets the fields. Never throws.
    public func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    static func validate(name: String, value: String) throws {
        guard HTTPToken.isFieldName(name) else {
            throw DownloadError(
                .invalidArgument, "\(String(reflecting: String(name.prefix(60)))) is not a name of a header field.")
        }
        guard value.utf8.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7f) }) else {
            throw DownloadError(.invalidArgument, "The value of the header field \(name) has a control character.")
        }
    }
}
