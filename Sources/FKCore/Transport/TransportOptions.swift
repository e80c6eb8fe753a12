/// How requests travel. A `Configure` holds the defaults; a task may override them.
public struct TransportOptions: Sendable, Hashable, Codable {
    /// Which version of HTTP is spoken.
    public enum HTTPVersion: String, Sendable, Hashable, Codable {
        /// HTTP/2 for several tasks, where TLS negotiates it; HTTP/1.1 for a task that is alone, for the connections of a
        /// file that has several, and where the server knows nothing else. The default.
        ///
        /// Over HTTP/2 small files share a connection's round trips; one large file takes a sixth longer, because it comes
        /// in frames that have to be looked at one by one (Docs/Performance.md).
        case automatic
        /// HTTP/1.1 only.
        case http1
        /// HTTP/2 where TLS negotiates it; over plain http without negotiation (RFC 9113 section 3.3).
        case http2
    }

    /// Seconds to get a connection, name lookup and TLS included. Default 30, 0...1e9; below 0.1 counts as 0.1.
    public var connectTimeout: Double = 30
    /// Seconds without a single byte, while waiting for the head or in the body, after which the transfer ends with
    /// `.timeout`. Default 60, 0...1e9; below 1 counts as 1. There is no limit on the whole transfer.
    public var stallTimeout: Double = 60
    /// A body that brings fewer bytes a second than this, measured over `stallTimeout`, counts as silent: a server that
    /// sends a byte now and then would else hold a slot for ever. Default 16, at least 0; 0 disables the check.
    public var stallRate: Int = 16
    /// How many redirects are followed. Default 20, at least 0; 0 makes a redirect an error.
    public var maxRedirects: Int = 20
    /// Follow a redirect from https to http. Default false.
    public var allowsInsecureRedirect: Bool = false
    /// Follow a redirect from a public address to a loopback or private one. Default true.
    public var allowsPrivateRedirect: Bool = true
    /// `http://host:port`, `socks5://…`; nil uses the environment's `https_proxy`, `http_proxy`, `no_proxy`;
    /// an empty text uses none.
    public var proxy: String?
    /// A PEM file of certificate authorities to trust instead of the system's.
    public var caFile: String?
    /// A PEM file of certificate revocation lists.
    public var crlFile: String?
    /// Accept any server certificate. Default false; shown in `fk info`.
    public var insecure: Bool = false
    /// Take user and password from `~/.netrc`, for the first host only. Default false.
    public var netrc: Bool = false
    /// Default `.automatic`.
    public var httpVersion: HTTPVersion = .automatic
    /// Send from this network interface or address, for example `eth1` or `192.0.2.7`; nil leaves it to the system.
    public var interface: String?
    /// At most so many bytes of header are read; more is an error. Default 300 KiB, at least 1.
    public var maxHeaderBytes: Int = 300 << 10
    /// At most so many header lines. Default 5,000, at least 1.
    public var maxHeaderLines: Int = 5_000
    /// `User-Agent`, unless the request has one. Default `fk/<version>`.
    public var userAgent: String?

    /// The defaults.
    public init() {}

    /// `stallTimeout` as it counts, in seconds.
    package var allowedSilence: Double { min(max(stallTimeout, 1), 1e9) }
    /// Bytes of a body that end a silence.
    package var silenceBreakingBytes: Int { max(1, Int(Double(min(max(stallRate, 0), 1 << 30)) * allowedSilence)) }

    /// What `userAgent` stands for when it is nil.
    package static let defaultUserAgent = "fk/\(Version.text)"
}
