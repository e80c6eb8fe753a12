import Foundation

/// The project's only error type. It is `Codable` because a task's info file stores its last error.
///
/// Match on the code. Codes are open, so middlewares can add their own:
///
/// ```swift
/// do {
///     try await downloader.add("ftp://example.com/a")
/// } catch where error.code == .unsupportedScheme {
///     …
/// }
/// ```
public struct DownloadError: Error, Codable, Sendable, Hashable {
    /// The kind of failure. `fk --json` prints the raw value.
    public struct Code: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
        /// Lower-case words, joined by hyphens.
        public var rawValue: String
        /// Creates a code from any text.
        public init(rawValue: String) { self.rawValue = rawValue }
        /// Creates a code from any text, without a label.
        public init(_ rawValue: String) { self.rawValue = rawValue }
        /// The raw value.
        public var description: String { rawValue }
        /// Decodes the raw value from a single string.
        ///
        /// - Throws: `DecodingError` when the value is not a string.
        public init(from decoder: any Decoder) throws {
            rawValue = try decoder.singleValueContainer().decode(String.self)
        }
        /// Encodes the raw value as a single string.
        ///
        /// - Throws: the encoder's error.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(rawValue)
        }
    }

    /// The values of an error. An error is one reference, because every result and every record has room for one.
    private struct Fields: Codable, Sendable, Hashable {
        var code: Code
        var message: String
        var remedyName: String?
        var url: String?
        var status: Int?
        var underlying: String?
        var isRetryable: Bool
        var retryAfterSeconds: Double?

        enum CodingKeys: String, CodingKey {
            case code, message, url, status, underlying, isRetryable
            case remedyName = "remedy"
            case retryAfterSeconds = "retryAfter"
        }
    }

    /// Changed only while one error has it.
    private final class Storage: @unchecked Sendable {
        var fields: Fields
        init(_ fields: Fields) { self.fields = fields }
    }

    private var storage: Storage

    private var own: Fields {
        _read { yield storage.fields }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.fields) }
            yield &storage.fields
        }
    }

    /// The kind of failure.
    public var code: Code {
        get { own.code }
        set { own.code = newValue }
    }
    /// What happened, in one or two sentences for a person. It never contains a secret.
    public var message: String {
        get { own.message }
        set { own.message = newValue }
    }
    /// What to change so that the task passes; nil if no setting helps. `description` says it in words.
    public var remedy: Remedy? {
        get { remedyName.flatMap(Remedy.init) }
        set { remedyName = newValue?.rawValue }
    }
    /// `remedy` as it is stored. A later version may store one that this version does not know.
    package var remedyName: String? {
        get { own.remedyName }
        set { own.remedyName = newValue }
    }
    /// The URL that failed, with userinfo and query values masked.
    public var url: String? {
        get { own.url }
        set { own.url = newValue }
    }
    /// The HTTP status (RFC 9110 section 15); `nil` when no server answered.
    public var status: Int? {
        get { own.status }
        set { own.status = newValue }
    }
    /// The text of the underlying error: libcurl's, the system's, or a middleware's.
    public var underlying: String? {
        get { own.underlying }
        set { own.underlying = newValue }
    }
    /// True for code `.cancelled`: a Swift task, a download or a downloader was cancelled or closed. It is rarely worth a message.
    public var isCancellation: Bool { code == .cancelled }
    /// True when the same attempt may succeed later without any change.
    public var isRetryable: Bool {
        get { own.isRetryable }
        set { own.isRetryable = newValue }
    }
    /// The time that the server asked to wait (Retry-After, RFC 9110 section 10.2.3), not yet capped.
    public var retryAfter: Duration? {
        get { retryAfterSeconds.map { Duration(inSeconds: $0) } }
        set { retryAfterSeconds = newValue?.inSeconds }
    }
    /// `retryAfter` in seconds, as it is stored.
    package var retryAfterSeconds: Double? {
        get { own.retryAfterSeconds }
        set { own.retryAfterSeconds = newValue }
    }

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - message: is stored and shown, so it must not contain secrets.
    ///   - isRetryable: true makes the engine retry with back-off. The default is false.
    ///   - retryAfter: the time that the server asked to wait. The default is nil.
    ///   - remedy: what to change so that the task passes. The default is nil.
    public init(
        _ code: Code, _ message: String, url: String? = nil, status: Int? = nil, underlying: String? = nil,
        isRetryable: Bool = false, retryAfter: Duration? = nil, remedy: Remedy? = nil
    ) {
        storage = Storage(
            Fields(
                code: code, message: message, remedyName: remedy?.rawValue, url: url, status: status,
                underlying: underlying, isRetryable: isRetryable, retryAfterSeconds: retryAfter?.inSeconds))
    }

    /// Decodes an error.
    ///
    /// - Throws: `DecodingError` if a member is missing or has another type.
    public init(from decoder: any Decoder) throws { storage = Storage(try Fields(from: decoder)) }

    /// Encodes an error; members without a value are left out.
    ///
    /// - Throws: the encoder's error.
    public func encode(to encoder: any Encoder) throws { try own.encode(to: encoder) }

    /// Compares the values.
    public static func == (one: Self, other: Self) -> Bool { one.storage === other.storage || one.own == other.own }

    /// Hashes the values.
    public func hash(into hasher: inout Hasher) { own.hash(into: &hasher) }

    /// Wraps any error; a `DownloadError` stays unchanged.
    public init(wrapping error: any Error, code: Code, message: String, url: String? = nil) {
        if let error = error as? DownloadError {
            self = error
        } else {
            self.init(code, message, url: url, underlying: String(describing: error))
        }
    }
}

extension DownloadError: LocalizedError, CustomStringConvertible {
    /// Same as `description`.
    public var errorDescription: String? { description }
    /// The message, the remedy, the URL and the underlying error in one line.
    public var description: String {
        var text = sentence(\.setting)
        if let url { text += " [\(url)]" }
        if let underlying, !message.contains(underlying) { text += " (\(underlying))" }
        return text
    }
}

/// Docs/Errors.md says which codes are retried and what to do about each.
extension DownloadError.Code {
    // MARK: Input

    /// The text is not a URL with a host.
    public static let invalidURL = Self("invalid-url")
    /// The scheme is not http or https.
    public static let unsupportedScheme = Self("unsupported-scheme")
    /// A value is outside its range or malformed.
    public static let invalidArgument = Self("invalid-argument")

    // MARK: Lookup and life cycle

    /// No task, barrel or work path has that name.
    public static let notFound = Self("not-found")
    /// The work path cannot change while a downloader is live.
    public static let configurationLocked = Self("configuration-locked")
    /// Another engine owns the work path, or the owner does not answer.
    public static let workPathBusy = Self("work-path-busy")
    /// The work path is not a safe folder owned by the user, or its file system has no locks.
    public static let workPathUnusable = Self("work-path-unusable")
    /// A later version of this software wrote the file or the work path.
    public static let laterVersion = Self("later-version")
    /// An info or barrel file cannot be read.
    public static let corruptInfo = Self("corrupt-info")

    // MARK: Network

    /// The host name could not be resolved.
    public static let nameLookup = Self("name-lookup")
    /// The connection to the server failed.
    public static let connect = Self("connect")
    /// Connecting took too long, or the server sent nothing for too long.
    public static let timeout = Self("timeout")
    /// The file was not complete at the task's deadline.
    public static let deadlineExceeded = Self("deadline-exceeded")
    /// The connection was lost during the transfer.
    public static let connectionLost = Self("connection-lost")
    /// The server's certificate was refused, or no secure connection could be made.
    public static let tls = Self("tls")
    /// The proxy could not be used.
    public static let proxy = Self("proxy")

    // MARK: HTTP

    /// The server answered with an error status, which is in `status`.
    public static let httpStatus = Self("http-status")
    /// The response is not valid HTTP.
    public static let protocolViolation = Self("protocol-violation")
    /// The body ended before its announced length.
    public static let incompleteBody = Self("incomplete-body")
    /// The server's response to a range request is wrong.
    public static let badRange = Self("bad-range")
    /// The redirect was refused.
    public static let redirect = Self("redirect")
    /// The server sent a content coding although the request asked for the plain bytes.
    public static let encodedBody = Self("encoded-body")
    /// The file or a record exceeds its size limit.
    public static let tooLarge = Self("too-large")

    // MARK: Content and disk

    /// The digest of the file differs from the expected one, or its signature is not the expected key's.
    public static let checksumMismatch = Self("checksum-mismatch")
    /// The file on the server has changed. Only middlewares use this code: the engine itself starts the file again.
    public static let changedOnServer = Self("changed-on-server")
    /// The name is taken by a file that does not belong to this task.
    public static let fileExists = Self("file-exists")
    /// The folder or file cannot be created or written.
    public static let destination = Self("destination")
    /// The disk or the quota is full.
    public static let noSpace = Self("no-space")
    /// Reading, writing or syncing failed for another reason.
    public static let disk = Self("disk")

    // MARK: Middleware

    /// A request middleware threw an error, or a response middleware asked to fetch the file again.
    public static let middleware = Self("middleware")
    /// A response middleware rejected the finished file.
    public static let rejected = Self("rejected")
    /// The downloader is closed, or the task is being trashed.
    public static let cancelled = Self("cancelled")

    /// Every code of this library, without those of middlewares.
    package static let known: Set<Self> = [
        .invalidURL, .unsupportedScheme, .invalidArgument, .notFound, .configurationLocked, .workPathBusy,
        .workPathUnusable, .laterVersion, .corruptInfo, .nameLookup, .connect, .timeout, .deadlineExceeded,
        .connectionLost, .tls, .proxy, .httpStatus, .protocolViolation, .incompleteBody, .badRange, .redirect,
        .encodedBody, .tooLarge, .checksumMismatch, .changedOnServer, .fileExists, .destination, .noSpace,
        .disk, .middleware, .rejected, .cancelled,
    ]
}
