import Foundation

/// The one error type of the project. It is `Codable` because a task's last error is kept in its info file.
///
/// Match on the code, which is open so that middlewares can add their own:
///
/// ```swift
/// do { try await downloader.builder.build("ftp://example.com/a") }
/// catch let error as DownloadError where error.code == .unsupportedScheme { … }
/// ```
public struct DownloadError: Error, Codable, Sendable, Hashable {
    /// What kind of failure it is. The raw value is what `fk --json` prints.
    public struct Code: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(_ rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }
        public init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(String.self)
        }
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(rawValue)
        }
    }

    public var code: Code
    /// What happened and what to do next, in one or two sentences for a person. Never holds a secret.
    public var message: String
    /// The URL it happened to, with userinfo and query values masked.
    public var url: String?
    /// The HTTP status, where a server answered (RFC 9110 section 15).
    public var status: Int?
    /// The text of the cause underneath: libcurl's, the system's, or a middleware's.
    public var underlying: String?
    /// True when the same attempt may succeed later without anybody changing anything.
    public var isRetryable: Bool
    /// Seconds the server asked us to wait (Retry-After, RFC 9110 section 10.2.3), not yet capped.
    public var retryAfter: Double?

    public init(
        _ code: Code, _ message: String, url: String? = nil, status: Int? = nil, underlying: String? = nil,
        isRetryable: Bool = false, retryAfter: Double? = nil
    ) {
        self.code = code
        self.message = message
        self.url = url
        self.status = status
        self.underlying = underlying
        self.isRetryable = isRetryable
        self.retryAfter = retryAfter
    }

    /// Wraps any error; a `DownloadError` comes back unchanged.
    public init(wrapping error: any Error, code: Code, message: String, url: String? = nil) {
        if let error = error as? DownloadError {
            self = error
        } else {
            self.init(code, message, url: url, underlying: String(describing: error))
        }
    }
}

extension DownloadError: LocalizedError, CustomStringConvertible {
    public var errorDescription: String? { description }
    public var description: String {
        var text = message
        if let url { text += " [\(url)]" }
        if let underlying, !message.contains(underlying) { text += " (\(underlying))" }
        return text
    }
}

extension DownloadError.Code {
    // Input
    public static let invalidURL = Self("invalid-url")
    public static let unsupportedScheme = Self("unsupported-scheme")
    public static let invalidArgument = Self("invalid-argument")
    // Lookup and life cycle
    public static let notFound = Self("not-found")
    public static let configurationLocked = Self("configuration-locked")
    public static let workPathBusy = Self("work-path-busy")
    public static let workPathUnusable = Self("work-path-unusable")
    public static let laterVersion = Self("later-version")
    public static let corruptInfo = Self("corrupt-info")
    // Network
    public static let nameLookup = Self("name-lookup")
    public static let connect = Self("connect")
    public static let timeout = Self("timeout")
    public static let connectionLost = Self("connection-lost")
    public static let tls = Self("tls")
    public static let proxy = Self("proxy")
    // HTTP
    public static let httpStatus = Self("http-status")
    public static let protocolViolation = Self("protocol-violation")
    public static let incompleteBody = Self("incomplete-body")
    public static let badRange = Self("bad-range")
    public static let redirect = Self("redirect")
    public static let encodedBody = Self("encoded-body")
    public static let tooLarge = Self("too-large")
    // Content and disk
    public static let checksumMismatch = Self("checksum-mismatch")
    public static let changedOnServer = Self("changed-on-server")
    public static let fileExists = Self("file-exists")
    public static let destination = Self("destination")
    public static let noSpace = Self("no-space")
    public static let disk = Self("disk")
    // Middleware
    public static let middleware = Self("middleware")
    public static let rejected = Self("rejected")
    public static let cancelled = Self("cancelled")
}
