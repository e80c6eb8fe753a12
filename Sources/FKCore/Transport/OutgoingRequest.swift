import FKMiddleware
import Foundation

/// One request of a transfer, the first one or a redirect's, as the underlying library receives it.
struct OutgoingRequest {
    /// The URL without userinfo and fragment.
    var url: String
    var method: String
    var body: Data?
    /// The fields in the order they are sent, with checked names and values.
    var headers: [HeaderField]
    var credentials: URLParts.Credentials?
    var usesNetrc: Bool
    /// The host at which redirects may authenticate.
    private var loginHost: LoginHost?
    /// True if the request goes to the login host.
    private(set) var isAtLogin = false
    /// The client's certificate, for the first origin.
    var certificate: ClientCertificate?

    /// Reads a transport's request.
    ///
    /// - Throws: `invalidURL`, `unsupportedScheme`, or `invalidArgument` for body streams and for header fields that
    ///   could add other fields (CR, LF, NUL).
    init(_ request: TransportRequest) throws(DownloadError) {
        let opened = request.opened
        usesNetrc = request.options.netrc
        certificate = request.options.clientCertificate
        if let plain = request.form.plainURL, request.options.userAgent == nil, opened.fields.isEmpty {
            (url, method, headers) = (plain, "GET", Self.usualHeaders)
            goesTo(login: request.options.loginHost)
            return
        }
        let text = request.form.url
        // The secrets that the URL may receive are among the fields from here on.
        let urlRequest = request.urlRequest
        let parts = URLParts(text)
        guard let origin = URLOrigin(parts) else {
            throw DownloadError(
                .invalidURL, "The request has no URL with a host.", url: text.isEmpty ? nil : text.masked)
        }
        guard origin.scheme == "http" || origin.scheme == "https" else {
            throw DownloadError(
                .unsupportedScheme, "Only http and https are supported, not \(origin.scheme).", url: text.masked)
        }
        url = parts.userinfo == nil && parts.fragment == nil ? text : parts.requestURL
        credentials = parts.credentials
        method = urlRequest.httpMethod ?? "GET"
        body = urlRequest.httpBody
        headers =
            urlRequest.allHTTPHeaderFields.map { $0.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) } } ?? []
        guard urlRequest.httpBodyStream == nil else {
            throw DownloadError(
                .invalidArgument, "A request body must be data; a stream cannot be sent again on a retry.")
        }
        guard method.isFieldName else {
            throw DownloadError(.invalidArgument, "The request's method is not a valid token.", url: text.masked)
        }
        if let agent = request.options.userAgent { addDefault("User-Agent", agent) }
        if let fault = headers.lazy.compactMap(\.fault).first {
            throw DownloadError(.invalidArgument, "The request was not sent: \(fault).", url: text.masked)
        }
        for field in Self.usualHeaders { addDefault(field.name, field.value) }
        goesTo(login: request.options.loginHost)
    }

    private mutating func goesTo(login host: String?) {
        guard let host, let login = LoginHost(host) else { return }
        loginHost = login
        useLogin()
    }

    /// The login of `~/.netrc` belongs to its host, wherever the redirect comes from.
    private mutating func useLogin() {
        isAtLogin = loginHost?.isAt(url) == true
        if isAtLogin { usesNetrc = true }
    }

    /// The fields of every request that has none of the same name.
    private static let usualHeaders: [HeaderField] = [
        .init("User-Agent", TransportOptions.defaultUserAgent), .init("Accept-Encoding", "identity"),
        // RFC 9530 section 4: a server may send a digest, with which the file is checked.
        .init("Want-Repr-Digest", "sha-256=10, sha-512=5"),
    ]

    /// True if the URL is one of https, and not of http.
    var isTLS: Bool { url.utf8.dropFirst(4).first.map { $0 | 0x20 } == UInt8(ascii: "s") }

    /// The request that follows a redirect. Once it has left the first origin, no secret is sent any more.
    ///
    /// - Parameter secrets: the lower-case names of header fields that are sent to the first origin only.
    func following(_ hop: RedirectRules.Hop, secrets: Set<String>) -> OutgoingRequest {
        var next = self
        let parts = URLParts(hop.url)
        next.url = parts.requestURL
        next.method = hop.method
        if !hop.keepsBody {
            next.body = nil
            next.headers.removeAll { $0.name.lowercased().hasPrefix("content-") }
        }
        if !hop.keepsSecrets {
            next.headers.removeAll {
                let name = $0.name.lowercased()
                // Host is not a secret, but it contains the first origin and would be wrong for another.
                return name == "host" || secrets.contains(name) || HeaderField.isSecret(name)
            }
            next.credentials = nil
            next.usesNetrc = false
            next.certificate = nil
        }
        if let own = parts.credentials { next.credentials = own }
        next.useLogin()
        return next
    }

    private mutating func addDefault(_ name: String, _ value: String) {
        if !headers.contains(where: { $0.name.caseInsensitiveEquals(name) }) { headers.append(.init(name, value)) }
    }
}
