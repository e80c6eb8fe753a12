import FKMiddleware
import Foundation

/// Checks which transport options URLSession supports.
enum URLSessionOptions {
    /// The reason to refuse a transfer with these options; nil if they are supported. An unsupported option is
    /// refused and never ignored, because most of them are about trust and routing.
    ///
    /// | option | reason |
    /// | --- | --- |
    /// | `caFile`, `crlFile`, `pinnedPublicKey`, `insecure` | FoundationNetworking has no callback and no setting for certificates |
    /// | `proxy` other than the environment's | no setting is read (swift-corelibs-foundation #5199) |
    /// | `clientCertificate` | its challenge is answered with an identity of the keychain, not with files |
    /// | `interface`, `addressFamily`, `netrc`, `httpVersion`, `cookieFile`, `loginHost`, `dnsServers`, `dohURL` | there is no setting |
    static func refusal(
        of options: TransportOptions, url: String, environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> DownloadError? {
        var refused: [String] = []
        if options.caPath != nil { refused.append("certificate authorities of its own") }
        if options.crlPath != nil { refused.append("certificate revocation lists") }
        if options.pinnedPublicKey != nil { refused.append("pinned public keys") }
        if options.insecure { refused.append("accepting any certificate") }
        if let proxy = options.proxy, !proxy.isEmpty { refused.append("a proxy of its own") }
        if options.interface != nil { refused.append("a network interface") }
        if options.clientCertificate != nil { refused.append("a client's certificate") }
        if options.addressFamily != nil { refused.append("a version of IP") }
        if options.loginHost != nil { refused.append("a login host") }
        if options.hostAddresses != nil { refused.append("addresses of hosts") }
        if options.netrc { refused.append("~/.netrc") }
        if options.cookiePath != nil { refused.append("a file of cookies") }
        if options.dnsServers != nil { refused.append("name servers") }
        if options.dohURL != nil { refused.append("DNS over HTTPS") }
        if options.httpVersion != .automatic { refused.append("a version of HTTP") }
        if options.proxy?.isEmpty == true, let name = proxyVariable(url, environment) {
            refused.append("using no proxy although the variable \(name) is set")
        }
        guard !refused.isEmpty else { return nil }
        return DownloadError(
            .invalidArgument,
            "URLSession cannot do this: \(refused.joined(separator: ", ")).",
            url: url.masked, remedy: .useCurl)
    }

    /// The variable from which libcurl, the library underneath FoundationNetworking, takes a proxy.
    private static func proxyVariable(_ url: String, _ environment: [String: String]) -> String? {
        let isTLS = URLOrigin(url)?.scheme == "https"
        let names = isTLS ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        return (names + ["all_proxy", "ALL_PROXY"]).first { environment[$0]?.isEmpty == false }
    }

    static let noBackPressure = DownloadError(
        .invalidArgument,
        "The URLSession of this system cannot be paused, so memory use would be unbounded.", remedy: .useCurl)

    /// Resolves a Location field against the URL of its response (RFC 3986 section 5), and percent-encodes characters
    /// that URLs must not contain. nil if the result is not a URL.
    static func resolve(_ location: String, against base: String) -> String? {
        URL(string: location, relativeTo: URL(string: base))?.absoluteString
    }
}

/// The size limits of a head, for libraries that deliver a whole head at once.
enum HeadLimits {
    /// The exceeded limit in words; nil if there is none. A field counts as its name, its value and four more bytes.
    static func violation(of head: ResponseHead, _ options: TransportOptions) -> String? {
        if head.fields.count > options.maxHeaderLines {
            return "its header has more than \(options.maxHeaderLines) lines"
        }
        let bytes = head.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        return bytes > options.maxHeaderBytes ? "its header is longer than \(options.maxHeaderBytes) bytes" : nil
    }
}

extension OutgoingRequest {
    /// The request as Foundation's type; nil if Foundation cannot read the URL. User and password become an
    /// Authorization field if there is none, because Foundation would include them in errors.
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
        let fields = response.allHeaderFields.map { HeaderField("\($0.key)", "\($0.value)") }.sorted {
            $0.name < $1.name
        }
        self.init(status: response.statusCode, fields: fields, url: url, redirects: redirects)
    }
}
