import FKMiddleware
import Foundation

/// How many connections one file may use. More than one requires a server that serves ranges under a strong
/// validator, and at least 2 MiB left to fetch.
public enum ConnectionLimit: Sendable, Hashable, Codable {
    /// Starts with one connection and uses four times as many while that raises the throughput by at least 10 %, up
    /// to 16. The default.
    case automatic
    /// Up to this many connections, 1 to 256; each needs at least 1 MiB left. `TaskOptions.validate` refuses other
    /// numbers.
    case fixed(Int)
}

/// The options of a task, stored in its info file.
///
/// Asking for an existing task again replaces all its options; options left out are reset (`Builder.prepare(in:)`).
/// Values outside their ranges are refused with `.invalidArgument` (`validate()`).
public struct TaskOptions: Codable, Sendable, Hashable {
    /// Header fields sent with every request of the task, in order. The default is none. A name must be a token (RFC
    /// 9110 section 5.6.2), and a value must not contain CR, LF or NUL.
    public var headers: [HeaderField]?
    /// Names of those header fields that must not follow a redirect to another origin. The default is none.
    public var secretHeaders: [String]?
    /// The digest that the finished file must have; nil, the default, accepts any. A file with another digest fails
    /// with `.checksumMismatch`.
    public var checksum: Checksum?
    /// The signature that the finished file must have; nil, the default, needs none. The file gets its name only when it is
    /// proven. Another file fails with `.checksumMismatch`; without the program that verifies this kind of signature, the
    /// task fails with `.invalidArgument` and its bytes stay.
    public var signature: FileSignature?
    /// The maximum length of the file in bytes, at least 0; nil, the default, sets no limit. A longer file fails with
    /// `.tooLarge`.
    public var maxSize: Int64?
    /// The length that the file must have in bytes, at least 0; nil, the default, accepts any. A longer file fails with
    /// `.tooLarge` and a shorter one with `.changedOnServer`, before its body is fetched if the server tells its length.
    public var size: Int64?
    /// The media type that the server must send, such as `application/zip` or `image/*`, or `file` for anything but a web
    /// page; nil, the default, refuses a web page only under the name of an archive, image, medium, package or document.
    /// Another type fails with `.protocolViolation` before the body is fetched.
    public var expectedType: String?
    /// Bytes to keep free on the disk of the file, at least 0; nil, the default, uses `Configure.minFree`.
    public var minFree: Int64?
    /// The number of connections; nil, the default, uses `Configure.connections`.
    public var connections: ConnectionLimit?
    /// When bytes of several sources may be combined; nil, the default, uses `Configure.mirrorPolicy`.
    public var mirrorPolicy: MirrorPolicy?
    /// The rate limit of this task in bytes per second, at least 0. nil, the default, and 0 set no limit. The lowest
    /// of all limits applies.
    public var rateLimit: Int64?
    /// The number of attempts including the first, 1 to 1001; nil, the default, uses
    /// `RetryPolicy.maxAttempts`.
    public var maxAttempts: Int?
    /// The time for connecting and for receiving nothing, 1 ms to 1e9 seconds; nil, the default, uses the downloader's
    /// timeouts.
    public var timeout: Duration? {
        get { timeoutSeconds.map { Duration(inSeconds: $0) } }
        set { timeoutSeconds = newValue?.inSeconds }
    }
    /// The time without a byte after which an attempt fails with `.timeout`, 1 ms to 1e9 seconds; below one second
    /// counts as one. nil, the default, uses `timeout`, else `TransportOptions.stallTimeout`.
    public var stallTimeout: Duration? {
        get { stallSeconds.map { Duration(inSeconds: $0) } }
        set { stallSeconds = newValue?.inSeconds }
    }
    /// When the file must be complete; nil, the default, sets no limit. A task that is queued or running at that time,
    /// or that starts after it, fails with `.deadlineExceeded` and is not tried again. Its bytes are kept. The range is
    /// 1970 to `Date.distantFuture`; a time in the past is allowed.
    public var deadline: Date?
    /// Same as `TransportOptions.caFile`; nil, the default, uses the downloader's.
    public var caFile: URL? {
        get { caPath.map(URL.file) }
        set { caPath = newValue?.absoluteURL.filePath }
    }
    /// Same as `TransportOptions.cookieFile`; nil, the default, uses the downloader's. The info file has the path alone.
    public var cookieFile: URL? {
        get { cookiePath.map(URL.file) }
        set { cookiePath = newValue?.absoluteURL.filePath }
    }
    /// Same as `TransportOptions.pinnedPublicKey`; nil, the default, uses the downloader's.
    public var pinnedPublicKey: String?
    /// Same as `TransportOptions.insecure`; nil, the default, uses the downloader's.
    public var insecure: Bool?
    /// Same as `TransportOptions.proxy`; nil, the default, uses the downloader's, and an empty text no proxy.
    public var proxy: String?
    /// Same as `TransportOptions.netrc`; nil, the default, uses the downloader's.
    public var netrc: Bool?
    /// What to do if the final name is taken; nil, the default, means `.refuse` for a name set by the application and
    /// `.rename` for any other.
    public var existing: ExistingFilePolicy?

    /// True takes the bytes from a finished file of the same work path that has the task's SHA-256 `checksum` and is
    /// unchanged: they are cloned or copied, and verified. Otherwise the file is fetched. nil, the default, means false.
    public var reuse: Bool?

    /// The names of `headers`, in lower case, that a list gives for all addresses of its entry, as aria2 does: mirrors of other
    /// origins get them too, secret ones included. nil, the default, without any.
    package var listHeaders: [String]?
    /// The digests of the file's pieces, from a list; nil, the default, without any.
    package var pieces: PieceDigests?
    /// Same as `TransportOptions.httpVersion`; nil, the default, uses the downloader's.
    package var httpVersion: TransportOptions.HTTPVersion?
    /// Same as `TransportOptions.dnsServers`; nil, the default, uses the downloader's.
    package var dnsServers: String?
    /// Same as `TransportOptions.dohURL`; nil, the default, uses the downloader's.
    package var dohURL: String?
    /// The provider of `AWSSignature` that signs requests to the origin of the task's URL; nil, the default, signs none. The
    /// credentials are those of `AWSCredentials.usual()` at each attempt, and are not stored.
    package var awsSignature: String?
    /// The list that gave `checksum` or `pieces`, or that was signed; nil, the default, without any.
    package var list: ListOrigin?
    /// The path of `caFile`.
    package var caPath: String?
    /// The path of `cookieFile`.
    package var cookiePath: String?
    /// `timeout` in seconds.
    package var timeoutSeconds: Double?
    /// `stallTimeout` in seconds.
    package var stallSeconds: Double?

    /// The stored form has seconds and paths.
    private enum CodingKeys: String, CodingKey {
        case headers, secretHeaders, checksum, maxSize, size, minFree, connections, rateLimit, maxAttempts, deadline,
            signature
        case pinnedPublicKey, insecure, proxy, netrc, existing, reuse, pieces, mirrorPolicy, listHeaders, expectedType,
            list, httpVersion, dnsServers, dohURL, awsSignature
        case caPath = "caFile"
        case cookiePath = "cookieFile"
        case timeoutSeconds = "timeout"
        case stallSeconds = "stallTimeout"
    }

    /// Creates options that leave everything to the downloader.
    public init() {}

    /// The header fields for a URL of the task. Another origin than that of the task's own URL, such as a mirror's, gets none of
    /// the secret ones, as curl and browsers do with redirects: they belong to the server that they were given for. Those of
    /// `listHeaders` were given for all.
    package func headers(for url: String, of task: String) -> [HeaderField] {
        guard let headers, !headers.isEmpty, url != task, URLOrigin(url) != URLOrigin(task) else {
            return headers ?? []
        }
        let secret = Set((secretHeaders ?? []).map { $0.lowercased() }).union(HeaderField.alwaysSecret)
            .subtracting(listHeaders ?? [])
        return headers.filter { !secret.contains($0.name.lowercased()) }
    }

    /// The downloader's transport options, overridden by this task's.
    package func transportOptions(over base: TransportOptions) -> TransportOptions {
        var options = base
        if let timeoutSeconds {
            options.connectSeconds = timeoutSeconds
            options.stallSeconds = timeoutSeconds
        }
        if let stallSeconds { options.stallSeconds = stallSeconds }
        if let caPath { options.caPath = caPath }
        if let cookiePath { options.cookiePath = cookiePath }
        if let pinnedPublicKey { options.pinnedPublicKey = pinnedPublicKey }
        if let insecure { options.insecure = insecure }
        if let proxy { options.proxy = proxy }
        if let netrc { options.netrc = netrc }
        if let httpVersion { options.httpVersion = httpVersion }
        if let dnsServers { options.dnsServers = dnsServers }
        if let dohURL { options.dohURL = dohURL }
        return options
    }
}
