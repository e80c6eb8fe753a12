import Foundation

/// The one error type of the project. It is `Codable` because a task's last error is kept in its info file.
///
/// Match on the code, which is open so that middlewares can add their own:
///
/// ```swift
/// do {
///     try await Builder("ftp://example.com/a").prepare(in: downloader)
/// } catch let error as DownloadError where error.code == .unsupportedScheme {
///     …
/// }
/// ```
public struct DownloadError: Error, Codable, Sendable, Hashable {
    /// What kind of failure it is. The raw value is what `fk --json` prints.
    public struct Code: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
        /// Words in lower case, joined by hyphens.
        public var rawValue: String
        /// Any text is a code.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// The same without a label.
        public init(_ rawValue: String) { self.rawValue = rawValue }
        /// The raw value.
        public var description: String { rawValue }
        public init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(String.self)
        }
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(rawValue)
        }
    }

    /// What kind of failure it is.
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

    /// - Parameters:
    ///   - message: without secrets: it is stored and shown.
    ///   - isRetryable: true has the engine try again by itself, with back-off.
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
    /// The same as `description`.
    public var errorDescription: String? { description }
    /// Message, URL and cause in one line.
    public var description: String {
        var text = message
        if let url { text += " [\(url)]" }
        if let underlying, !message.contains(underlying) { text += " (\(underlying))" }
        return text
    }
}

/// Docs/Errors.md says for each what is retried and what to do.
extension DownloadError.Code {
    // MARK: Input

    /// The text is no URL of a host.
    public static let invalidURL = Self("invalid-url")
    /// The scheme is not http or https.
    public static let unsupportedScheme = Self("unsupported-scheme")
    /// A value is out of its range or form.
    public static let invalidArgument = Self("invalid-argument")

    // MARK: Lookup and life cycle

    /// No task, barrel or work path by that name.
    public static let notFound = Self("not-found")
    /// The work path cannot change while a downloader is live.
    public static let configurationLocked = Self("configuration-locked")
    /// Another engine owns the work path, or it does not answer.
    public static let workPathBusy = Self("work-path-busy")
    /// The work path is no safe folder of the user's own, or its file system has no locks.
    public static let workPathUnusable = Self("work-path-unusable")
    /// A later version of this software wrote it.
    public static let laterVersion = Self("later-version")
    /// An info or barrel file cannot be read.
    public static let corruptInfo = Self("corrupt-info")

    // MARK: Network

    /// The host's name could not be looked up.
    public static let nameLookup = Self("name-lookup")
    /// The server could not be reached.
    public static let connect = Self("connect")
    /// Connecting took too long, or the server was silent.
    public static let timeout = Self("timeout")
    /// The connection ended in the middle.
    public static let connectionLost = Self("connection-lost")
    /// The certificate was refused, or there is no secure connection.
    public static let tls = Self("tls")
    /// The proxy could not be used.
    public static let proxy = Self("proxy")

    // MARK: HTTP

    /// The server answered with an error status: `status` has it.
    public static let httpStatus = Self("http-status")
    /// The answer is not valid HTTP.
    public static let protocolViolation = Self("protocol-violation")
    /// The body ended before its end.
    public static let incompleteBody = Self("incomplete-body")
    /// The server answers range requests wrongly.
    public static let badRange = Self("bad-range")
    /// A redirect is refused.
    public static let redirect = Self("redirect")
    /// The server compressed the body though the plain bytes were asked for.
    public static let encodedBody = Self("encoded-body")
    /// The file, or a record, exceeds its limit.
    public static let tooLarge = Self("too-large")

    // MARK: Content and disk

    /// The digest is not the one that was given.
    public static let checksumMismatch = Self("checksum-mismatch")
    /// The file on the server is another one than before. For middlewares: the engine itself starts the file again.
    public static let changedOnServer = Self("changed-on-server")
    /// A file that is not this task's has the name.
    public static let fileExists = Self("file-exists")
    /// The folder or file cannot be made or written.
    public static let destination = Self("destination")
    /// The disk or the quota is full.
    public static let noSpace = Self("no-space")
    /// Reading, writing or syncing failed in another way.
    public static let disk = Self("disk")

    // MARK: Middleware

    /// A request middleware threw, or a response middleware asked for the file again.
    public static let middleware = Self("middleware")
    /// A response middleware refused the finished file.
    public static let rejected = Self("rejected")
    /// The downloader is closed, or the task is being trashed.
    public static let cancelled = Self("cancelled")
}
