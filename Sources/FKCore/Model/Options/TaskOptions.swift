import FKMiddleware
import Foundation

/// How many connections one file may use. More than one requires a server that serves ranges under a strong
/// validator, and at least 2 MiB left to fetch.
public enum ConnectionLimit: Sendable, Hashable, Codable {
    /// Starts with one connection and uses four times as many while that raises the throughput by at least 10 %, up
    /// to 16. The default.
    case automatic
    /// Up to this many connections, 1 to 256; each needs at least 1 MiB left. Other numbers are refused with
    /// `.invalidArgument`.
    case fixed(Int)
}

/// The options of a task, stored in its info file.
///
/// A known task that is asked for again keeps the options that are not named (`Builder.replacing`).
/// `Builder`, `Downloader.add` and `Control.change` refuse values outside their ranges with `.invalidArgument`.
public struct TaskOptions: Codable, Sendable, Hashable {
    /// Header fields sent with every request of the task, in order. The default is none. A name must be a token (RFC
    /// 9110 section 5.6.2), and a value must not contain CR, LF or NUL.
    public var headers: [HeaderField]?
    /// Names of those header fields that no other origin may receive: no mirror and no target of a redirect. The default is none.
    /// `Authorization`, `Cookie`, `Proxy-Authorization` and names that look like a secret's, such as `X-Api-Key`, belong to them.
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
    /// Same as `TransportOptions.clientCertificate`; nil, the default, uses the downloader's. The info file has the paths alone.
    public var clientCertificate: ClientCertificate?
    /// Same as `TransportOptions.addressFamily`; nil, the default, uses the downloader's.
    public var addressFamily: AddressFamily?
    /// Same as `TransportOptions.interface`; nil, the default, uses the downloader's.
    public var interface: String?
    /// Same as `TransportOptions.proxy`; nil, the default, uses the downloader's, and an empty text no proxy.
    public var proxy: String?
    /// Same as `TransportOptions.netrc`; nil, the default, uses the downloader's.
    public var netrc: Bool?
    /// A partial file of another program, such as curl, wget, a browser or aria2 (with its `NAME.aria2`); nil, the default, for none. A
    /// new task copies its bytes and fetches the others. The bytes count if `checksum`, or the server's last 4 KiB before the first
    /// missing byte, prove them; otherwise the whole file is fetched. The partial file is never changed. If it has the name of the
    /// finished one, that one replaces it when its bytes are proven, and gets the next free name otherwise.
    public var adopts: URL? {
        get { adoptPath.map(URL.file) }
        set { adoptPath = newValue?.absoluteURL.filePath }
    }
    /// A host, as `HOST` or `HOST:PORT`, at which redirects may authenticate; nil, the default, is the one of the host's policy
    /// (`HostPolicy.loginHost`), or none. A redirect of the task's own origin that leads there gets the login that `~/.netrc` has for
    /// the host, over https or on this machine alone. The cookies of the sessions that begin there are kept in the work path.
    public var loginHost: String?
    /// What to do if the final name is taken; nil, the default, means `.refuse` for a name set by the application and
    /// `.rename` for any other.
    public var existing: ExistingFilePolicy?

    /// True takes the bytes from a finished file of the same work path that has the task's SHA-256 `checksum` and is
    /// unchanged: they are cloned or copied, and verified. Otherwise the file is fetched. nil, the default, means false.
    public var reuse: Bool?

    /// True gives the finished file the time that the server says of it (`Last-Modified`), if it says one. nil, the default, means
    /// false: the time of the last byte.
    public var remoteTime: Bool?

    /// The URL of the origin that the secrets of these options were given for: secret header fields, the login of `netrc`, the
    /// cookies and the signer. nil, the default, is the origin of the task's own URL; an empty text belongs to no origin. Tasks of a
    /// list from a server have the URL that the owner has named.
    package var secretOrigin: String?
    /// The names of `headers`, in lower case, that a list gives for all addresses of its entry, as aria2 does: mirrors of other
    /// origins get them too, secret ones included. A mirror that another word names does not
    /// (`TaskDescription.joined`). nil, the default, without any.
    package var listHeaders: [String]?
    /// The digests of the file's pieces, from a list; nil, the default, without any.
    package var pieces: PieceDigests?
    /// Same as `TransportOptions.httpVersion`; nil, the default, uses the downloader's.
    package var httpVersion: TransportOptions.HTTPVersion?
    /// Same as `TransportOptions.dnsServers`; nil, the default, uses the downloader's.
    package var dnsServers: String?
    /// Same as `TransportOptions.dohURL`; nil, the default, uses the downloader's.
    package var dohURL: String?
    /// The addresses to connect to for some hosts, in place of those of their names; nil, the default, for none.
    package var hostAddresses: [HostAddress]?
    /// True follows no redirect to a loopback, link-local or private address; nil, the default, uses the downloader's policy.
    package var noPrivate: Bool?
    /// The provider of `AWSSignature` that signs requests to the origin of the secrets (`secretOrigin`); nil, the default, signs none. The
    /// credentials are those of `AWSCredentials.usual()` at each attempt, and are not stored.
    package var awsSignature: String?
    /// The list that gave `checksum` or `pieces`, or that was signed; nil, the default, without any.
    package var list: ListOrigin?
    /// The entity tag that the file must have at the task's own URL, in quotes, as a listing has named it; nil, the default, accepts any.
    /// Another file fails with `.changedOnServer`.
    package var entityTag: String?
    /// The path of `adopts`.
    package var adoptPath: String?
    /// The path of `caFile`.
    package var caPath: String?
    /// The path of `cookieFile`.
    package var cookiePath: String?
    package var timeoutSeconds: Double?
    /// `stallTimeout` in seconds.
    package var stallSeconds: Double?
    /// The seconds after which each run of the task must be complete, 1 ms to 1e9; nil, the default, sets no limit, and `deadline` replaces
    /// it. An engine counts from the moment at which it may start the task. A verb that queues the task, and another engine, begin anew. A
    /// task that is late fails as at its deadline.
    package var runSeconds: Double?

    /// The stored form has seconds and paths.
    private enum CodingKeys: String, CodingKey {
        case headers, secretHeaders, checksum, maxSize, size, minFree, connections, rateLimit, maxAttempts, deadline,
            signature
        case pinnedPublicKey, insecure, proxy, netrc, existing, reuse, pieces, mirrorPolicy, listHeaders, secretOrigin,
            expectedType, list, httpVersion, dnsServers, dohURL, awsSignature, noPrivate, clientCertificate,
            addressFamily,
            interface, hostAddresses, remoteTime, entityTag, loginHost, runSeconds
        case caPath = "caFile"
        case adoptPath = "adopts"
        case cookiePath = "cookieFile"
        case timeoutSeconds = "timeout"
        case stallSeconds = "stallTimeout"
    }

    /// Creates options that leave everything to the downloader.
    public init() {}

    /// The header fields for a URL of the task. Another origin than that of the secrets, such as a mirror's, gets none of the secret
    /// ones, as curl and browsers do with redirects: they belong to the server that they were given for. Those of `listHeaders` were
    /// given for all addresses of the task.
    ///
    /// - Parameter isListed: false if the URL is no address of the task's description. The default is true.
    package func headers(
        for url: String, of task: String, isListed: @autoclosure () -> Bool = true
    ) -> [HeaderField] {
        guard let headers, !headers.isEmpty, secretOrigin != nil || url != task,
            URLOrigin(url) != secretOrigin(of: task)
        else { return headers ?? [] }
        let secret = Set((secretHeaders ?? []).map { $0.lowercased() })
        let shared = listHeaders.map { isListed() ? Set($0) : [] } ?? []
        return headers.filter { field in
            let name = field.name.lowercased()
            return shared.contains(name) || !secret.contains(name) && !HeaderField.isSecret(name)
        }
    }

    /// True if a header field is a login.
    package var hasAuthorization: Bool { (headers ?? []).contains { $0.name.caseInsensitiveEquals("Authorization") } }

    /// The origin that may receive the secrets of these options; nil for none.
    ///
    /// - Parameter task: the URL of the task.
    package func secretOrigin(of task: String) -> URLOrigin? {
        guard let secretOrigin else { return URLOrigin(task) }
        return URLOrigin(secretOrigin)
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
        if let loginHost { options.loginHost = loginHost }
        if let httpVersion { options.httpVersion = httpVersion }
        if let dnsServers { options.dnsServers = dnsServers }
        if let dohURL { options.dohURL = dohURL }
        if let clientCertificate { options.clientCertificate = clientCertificate }
        if let addressFamily { options.addressFamily = addressFamily }
        if let interface { options.interface = interface }
        if let hostAddresses { options.hostAddresses = hostAddresses }
        if noPrivate == true { options.refusePrivateRedirects() }
        return options
    }
}
