import Foundation

/// One header field line of a request or a response.
public struct HeaderField: Sendable, Hashable, Codable {
    /// The field name, a token (RFC 9110 section 5.6.2), as it was given or as the server spelled it.
    public var name: String
    /// The field value, without surrounding whitespace.
    public var value: String

    /// Creates a field. It checks neither value: those that take fields do.
    @inlinable
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension HeaderField {
    /// A name and a password as Basic authentication (RFC 7617).
    package static func login(_ user: String, _ password: String) -> Self {
        Self("Authorization", "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }
}
