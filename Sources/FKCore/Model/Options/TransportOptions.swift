import Foundation

/// The options of requests. `Configure` contains the defaults; a task may override them.
public struct TransportOptions: Sendable, Hashable, Codable {
    /// The HTTP version of a request.
    public enum HTTPVersion: String, Sendable, Hashable, Codable {
        /// HTTP/2 for several tasks, if TLS negotiates it; HTTP/1.1 for a single task, for a file with several
        /// connections, and for a server that supports nothing else. The default.
        ///
        /// Over HTTP/2, small files share the round trips of one connection. One large file takes a sixth longer,
        /// because its frames have to be processed one by one (Docs/Performance.md).
        case automatic
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 if TLS negotiates it; over plain http without negotiation (RFC 9113 section 3.3).
        case http2
        /// HTTP/3 over https, or what the server has instead. A libcurl without HTTP/3 refuses the transfer with
        /// `.invalidArgument`.
        case http3
    }

    /// The maximum time to connect, including name lookup and TLS. The default is 30 seconds; the range is 0 to 1e9
    /// seconds, and values below 0.1 s count as 0.1 s.
    public var connectTimeout: Duration {
        get { Duration(inSeconds: connectSeconds) }
        set { connectSeconds = newValue.inSeconds }
    }
    /// The time without a byte, of the head or the body, after which the transfer ends with `.timeout`. The default is
    /// 60 seconds; the range is 0 to 1e9 seconds, and values below one second count as one. A task's own option
    /// overrides it. The whole transfer has no time limit but `TaskOptions.deadline`.
    public var stallTimeout: Duration {
        get { Duration(inSeconds: stallSeconds) }
        set { stallSeconds = newValue.inSeconds }
    }
    /// The minimum rate of a body in bytes per second, measured over `stallTimeout`. A slower body counts as silent,
    /// because otherwise a server could hold a slot with a byte now and then. The default is 16; the minimum is 0,
    /// which disables the check.
    public var stallRate: Int = 16
    /// The maximum number of redirects. The default is 20; the minimum is 0, which makes a redirect an error.
    public var maxRedirects: Int = 20
    /// Whether redirects from https to http are followed. The default is false.
    public var allowsInsecureRedirect: Bool = false
    /// Whether redirects from a public address to a loopback or private one are followed. The default is true.
    public var allowsPrivateRedirect: Bool = true
    /// The proxy: `http://host:port`, `socks5://…`. nil, the default, uses the environment's `https_proxy`,
    /// `http_proxy` and `no_proxy`; an empty text uses no proxy.
    public var proxy: String?
    /// A PEM file with the certificate authorities to trust; nil, the default, trusts the system's.
    public var caFile: URL? {
        get { caPath.map(URL.file) }
        set { caPath = newValue?.absoluteURL.filePath }
    }
    /// A PEM file with certificate revocation lists; nil, the default, uses none.
    public var crlFile: URL? {
        get { crlPath.map(URL.file) }
        set { crlPath = newValue?.absoluteURL.filePath }
    }
    /// A file with cookies in Netscape's form, at most 16 MiB; nil, the default, uses none. The transfer sends those
    /// that libcurl's rules allow (domain, path, secure, expiry). The file is read at the beginning of each transfer, so
    /// also at a retry; a file that cannot be read fails the transfer with `.invalidArgument` before anything is sent.
    public var cookieFile: URL? {
        get { cookiePath.map(URL.file) }
        set { cookiePath = newValue?.absoluteURL.filePath }
    }
    /// The public keys that servers may have, like curl's `--pinnedpubkey`: one or more `sha256//BASE64` of the key's SHA-256,
    /// separated by `;`. A server with another key is refused, also with `insecure`. nil, the default, accepts any key that a
    /// trusted certificate has. Plain http has no keys and is not checked.
    public var pinnedPublicKey: String?
    /// The name servers to ask instead of the system's, as `address[:port]`, several separated by commas. nil, the default, asks
    /// the system's. Only a libcurl with c-ares has this; another refuses the transfer with `.invalidArgument`.
    public var dnsServers: String?
    /// The https URL of a server for DNS over HTTPS (RFC 8484); nil, the default, uses none. It is found by the system's name
    /// servers and needs a trusted certificate, also with `insecure`. A libcurl without it refuses the transfer with
    /// `.invalidArgument`.
    public var dohURL: String?
    /// Whether any server certificate is accepted. The default is false; `fk info` shows true.
    public var insecure: Bool = false
    /// Whether user and password are read from `~/.netrc`, for the first host only. The default is false.
    public var netrc: Bool = false
    /// The HTTP version. The default is `.automatic`.
    public var httpVersion: HTTPVersion = .automatic
    /// The network interface or address to send from, for example `eth1` or `192.0.2.7`; nil, the default, lets the
    /// system choose.
    public var interface: String?
    /// The addresses to connect to: IPv4 or IPv6 only; nil, the default, takes what answers first (RFC 8305).
    public var addressFamily: AddressFamily?
    /// The certificate of this client; nil, the default, shows none. Only the origin that was asked for sees it: no mirror of another
    /// origin, and no other origin behind a redirect.
    public var clientCertificate: ClientCertificate?
    /// The maximum size of all header fields in bytes. The default is 300 KiB; the minimum is 1. A larger head is an
    /// error.
    package var maxHeaderBytes: Int = 300 << 10
    /// The maximum number of header lines. The default is 5,000; the minimum is 1. A longer head is an error.
    package var maxHeaderLines: Int = 5_000
    /// The `User-Agent` of requests without one; nil, the default, sends `fk/<version>`.
    public var userAgent: String?

    /// The addresses to connect to for some hosts, in place of those of their names.
    package var hostAddresses: [HostAddress]?
    /// The path of `caFile`.
    package var caPath: String?
    /// The path of `crlFile`.
    package var crlPath: String?
    /// The path of `cookieFile`.
    package var cookiePath: String?
    /// Same as `TaskOptions.loginHost`.
    package var loginHost: String?
    /// The path of the file with the sessions of login hosts (`SessionFile`); nil, the default, keeps none.
    package var sessionPath: String?
    /// True follows no redirect to a loopback or private address, wherever it comes from, except within the origin that was asked
    /// for. nil, the default, leaves it to `allowsPrivateRedirect`.
    package var refusesPrivate: Bool?
    /// `connectTimeout` in seconds.
    package var connectSeconds: Double = 30
    /// `stallTimeout` in seconds.
    package var stallSeconds: Double = 60

    /// The stored form has seconds and paths.
    private enum CodingKeys: String, CodingKey {
        case stallRate, maxRedirects, allowsInsecureRedirect, allowsPrivateRedirect, refusesPrivate, proxy, insecure
        case dnsServers, dohURL, pinnedPublicKey, netrc, httpVersion, interface, maxHeaderBytes,
            maxHeaderLines, userAgent, addressFamily, clientCertificate, hostAddresses, loginHost, sessionPath
        case caPath = "caFile"
        case crlPath = "crlFile"
        case cookiePath = "cookieFile"
        case connectSeconds = "connectTimeout"
        case stallSeconds = "stallTimeout"
    }

    /// Creates the default options.
    public init() {}

    /// Follows no redirect to a loopback, link-local or private address.
    package mutating func refusePrivateRedirects() {
        allowsPrivateRedirect = false
        refusesPrivate = true
    }

    /// `stallTimeout` in seconds, clamped to 1...1e9.
    package var allowedSilence: Double { min(max(stallSeconds, 1), 1e9) }
    /// The body bytes that end a silence.
    package var silenceBreakingBytes: Int { max(1, Int(Double(min(max(stallRate, 0), 1 << 30)) * allowedSilence)) }

    /// The `User-Agent` for a `userAgent` of nil.
    package static let defaultUserAgent = "fk/\(Version.text)"
}
