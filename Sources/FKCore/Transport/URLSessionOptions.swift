import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What URLSession can be told, and what it cannot.
enum URLSessionOptions {
    /// Why a transfer with these options must not begin, or nil. An option that cannot be kept is refused, never left
    /// out: most of them are about whom to trust and which way to go.
    ///
    /// | option | why not |
    /// | --- | --- |
    /// | `caFile`, `crlFile`, `insecure` | FoundationNetworking asks nobody about a certificate and has no setting |
    /// | `proxy` other than the environment's | no setting is read (swift-corelibs-foundation #5199) |
    /// | `interface`, `netrc`, `httpVersion` | there is no setting |
    static func objection(
        to options: TransportOptions, url: String, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> DownloadError? {
        var refused: [String] = []
        if options.caFile != nil { refused.append("certificate authorities of its own (caFile)") }
        if options.crlFile != nil { refused.append("certificate revocation lists (crlFile)") }
        if options.insecure { refused.append("accepting any certificate (insecure)") }
        if let proxy = options.proxy, !proxy.isEmpty { refused.append("a proxy of its own (proxy)") }
        if options.interface != nil { refused.append("a network interface (interface)") }
        if options.netrc { refused.append("~/.netrc (netrc)") }
        if options.httpVersion != .automatic { refused.append("a version of HTTP (httpVersion)") }
        if options.proxy?.isEmpty == true, let name = proxyVariable(url, environment) {
            refused.append("going without the proxy that the variable \(name) names (proxy)")
        }
        guard !refused.isEmpty else { return nil }
        return DownloadError(
            .invalidArgument,
            "URLSession cannot do this: \(refused.joined(separator: ", ")). Use the transport over libcurl, or leave it out.",
            url: URLMasking.mask(url))
    }

    /// The variable that libcurl, which is under FoundationNetworking, takes a proxy from.
    private static func proxyVariable(_ url: String, _ environment: [String: String]) -> String? {
        let isTLS = URLOrigin(url)?.scheme == "https"
        let names = isTLS ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        return (names + ["all_proxy", "ALL_PROXY"]).first { environment[$0]?.isEmpty == false }
    }

    static let noBackPressure = DownloadError(
        .invalidArgument,
        "The URLSession of this system cannot be held back, so that memory would have no bound. Use the transport over libcurl."
    )

    /// Makes a Location field absolute against the URL it came with (RFC 3986 section 5), and encodes what must not
    /// stand in a URL. Nil when the outcome is not a URL.
    static func resolve(_ location: String, against base: String) -> String? {
        URL(string: location, relativeTo: URL(string: base))?.absoluteString
    }
}

/// The limits of a head's size, for libraries that hand over a whole head at once.
enum HeadLimits {
    /// Which limit is exceeded, in words, or nil. Counts a field as its name, its value and the four bytes around them.
    static func violation(of head: ResponseHead, _ options: TransportOptions) -> String? {
        if head.fields.count > options.maxHeaderLines {
            return "its header has more than \(options.maxHeaderLines) lines"
        }
        let bytes = head.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        return bytes > options.maxHeaderBytes ? "its header is longer than \(options.maxHeaderBytes) bytes" : nil
    }
}

extension OutgoingRequest {
    /// The same as Foundation's type; nil when it cannot read the URL. User and password become an Authorization field,
    /// where there is none: Foundation would put them into errors.
    var urlRequest: URLRequest? {
        guard let target = URL(string: url) else { return nil }
        var request = URLRequest(url: target)
        request.httpMethod = method
        request.httpBody = body
        if let credentials {
            let text = "\(credentials.user):\(credentials.password)"
            request.setValue("Basic \(Data(text.utf8).base64EncodedString())", forHTTPHeaderField: "Authorization")
        }
        for field in headers { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}

extension ResponseHead {
    init(_ response: HTTPURLResponse, url: String, redirects: Int) {
        let fields = response.allHeaderFields.map { Field("\($0.key)", "\($0.value)") }.sorted { $0.name < $1.name }
        self.init(status: response.statusCode, fields: fields, url: url, redirects: redirects)
    }
}
