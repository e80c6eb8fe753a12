import FKMiddleware

/// Decides about redirects (RFC 9110 section 15.4). One value per transfer receives each redirect in turn, so that
/// every transport follows the same rules.
///
/// - More redirects than allowed are an error. A URL may occur twice, and may redirect to itself: servers do that to
///   set a cookie, or until a file is ready.
/// - A host outside ASCII becomes its IDNA form, as in a typed URL (`URLNormalizer`).
/// - Only http and https are followed; https to http only if the options allow it.
/// - A redirect from a public address to a private one is followed only if the options allow it. They can also refuse every
///   redirect to a private address, except within the origin that was asked for.
/// - After a redirect to another origin, secrets are never sent again, even if a later redirect leads back, because
///   the other origin chose that path.
package struct RedirectRules: Sendable {
    /// The next request.
    package struct Hop: Sendable, Hashable {
        /// The absolute URL. It may contain userinfo, which then came from the redirecting server.
        package var url: String
        /// The method: GET after a redirect that changes it, else the original one.
        package var method: String
        /// False if a POST became a GET.
        package var keepsBody: Bool
        /// True if Authorization, Cookie, secret header fields, the first URL's userinfo and .netrc still apply.
        package var keepsSecrets: Bool
    }

    private let maxRedirects: Int
    private let allowsInsecure: Bool
    private let allowsPrivate: Bool
    private let refusesPrivate: Bool
    /// True if an address may be refused.
    package var checksAddresses: Bool { refusesPrivate || !allowsPrivate }
    private let firstURL: String
    private var url: String
    private var method: String
    private var keepsBody = true
    private var keepsSecrets = true
    /// The number of redirects followed so far.
    package private(set) var count = 0
    /// The fields of the redirects followed so far that describe the file, and of the first one those that announce limits
    /// (`ResponseHead.carried`), at most 100.
    package private(set) var carried: [HeaderField] = []
    /// The URLs that redirected, after the first one.
    package private(set) var via: [String] = []
    private static let carriedNames = ["Link", "X-Linked-ETag", "X-Linked-Size"]

    /// Creates the rules for one transfer.
    package init(url: String, method: String, options: TransportOptions) {
        maxRedirects = options.maxRedirects
        allowsInsecure = options.allowsInsecureRedirect
        allowsPrivate = options.allowsPrivateRedirect
        refusesPrivate = options.refusesPrivate == true
        firstURL = url
        self.url = url
        self.method = method
    }

    /// True if a response of that status with a Location field is a redirect to follow. 304 is not.
    package static func isRedirect(status: Int) -> Bool {
        switch status {
        case 300, 301, 302, 303, 307, 308: true
        default: false
        }
    }

    /// Decides about a response head; nil if it is final.
    ///
    /// - Parameters:
    ///   - fromAddress: same as in `follow(status:to:fromAddress:)`.
    ///   - resolve: makes a Location field absolute against a URL; returns nil if the result is not a URL.
    /// - Throws: `DownloadError` of code `redirect`.
    package mutating func follow(
        _ head: ResponseHead, fromAddress: @autoclosure () -> String? = nil,
        resolve: (_ location: String, _ base: String) -> String?
    ) throws(DownloadError) -> Hop? {
        guard Self.isRedirect(status: head.status) else { return nil }
        let locations = Set(head.values(of: "Location"))
        guard let location = locations.first, !location.isEmpty else { return nil }
        var fault = Self.fault(inLocation: location)
        if locations.count > 1 { fault = "it has contradicting Location fields" }
        guard fault == nil, let target = resolve(location, url) else {
            if fault == nil, let scheme = Self.foreignScheme(location) { throw schemeRefusal(scheme) }
            throw DownloadError(
                .redirect, "The redirect is refused: \(fault ?? "its Location field is not a URL").",
                url: url.masked, status: head.status)
        }
        let hop = try follow(status: head.status, to: target, fromAddress: fromAddress())
        carried += head.fields.filter { field in
            Self.carriedNames.contains(where: field.name.caseInsensitiveEquals)
                || count == 1 && RateLimitFields.contains(field.name)
        }.prefix(100 - carried.count)
        return hop
    }

    /// The reason to refuse a Location field before it is resolved; nil if it is acceptable.
    package static func fault(inLocation location: String) -> String? {
        location.utf8.contains { $0 < 0x20 || $0 == 0x7f } ? "its Location field holds control characters" : nil
    }

    /// Decides about the next redirect.
    ///
    /// - Parameters:
    ///   - target: the Location field, resolved against the current URL.
    ///   - fromAddress: the numeric address that sent the redirect, if it is known to be the host's own (no proxy).
    /// - Throws: `DownloadError` of code `redirect`.
    package mutating func follow(status: Int, to target: String, fromAddress: String? = nil) throws(DownloadError)
        -> Hop
    {
        guard count < maxRedirects else {
            throw refusal(
                maxRedirects == 0
                    ? "The server redirects, and redirects are not allowed."
                    : "The server redirects more than \(maxRedirects) times.")
        }
        if let fault = Self.fault(inLocation: target) {
            throw refusal("The redirect is refused: \(fault).")
        }
        let target = try inASCII(target)
        if let scheme = Self.foreignScheme(target) { throw schemeRefusal(scheme) }
        guard let from = URLOrigin(url), let to = URLOrigin(target), ["http", "https"].contains(to.scheme) else {
            throw noHost
        }
        if from.scheme == "https", to.scheme == "http", !allowsInsecure {
            throw refusal("The redirect from https to http is refused because it gives up encryption.")
        }
        if AddressClass.isPrivate(host: to.host) == true {
            if !allowsPrivate, !isPrivate(from.host, fromAddress) { throw refusal(privateRefusal(to.host)) }
            if refusesPrivate, to != URLOrigin(firstURL) { throw refusal(strictRefusal(to.host)) }
        }
        if (status == 303 && method != "HEAD") || ((300...302).contains(status) && method == "POST") {
            if method != "GET" { keepsBody = false }
            method = "GET"
        }
        if to != URLOrigin(firstURL) { keepsSecrets = false }
        if count > 0 { via.append(url) }
        url = target
        count += 1
        return Hop(url: target, method: method, keepsBody: keepsBody, keepsSecrets: keepsSecrets)
    }

    /// Checks the address of a redirect's target. Call it after the connection and before anything is sent, so that a
    /// host name cannot circumvent the rule about private addresses.
    ///
    /// - Throws: `DownloadError` of code `redirect`.
    package func checkConnected(to address: String, from: String?) throws(DownloadError) {
        guard count > 0, AddressClass.isPrivate(address: address) == true else { return }
        if refusesPrivate, URLOrigin(url) != URLOrigin(firstURL) { throw refusal(strictRefusal(address)) }
        guard !allowsPrivate, let from, AddressClass.isPrivate(address: from) == false else { return }
        throw refusal(privateRefusal(address))
    }

    private func isPrivate(_ host: String, _ address: String?) -> Bool {
        AddressClass.isPrivate(host: host) ?? address.flatMap(AddressClass.isPrivate(address:)) ?? false
    }

    private func privateRefusal(_ host: String) -> String {
        "The redirect from a public address to \(host) is refused: it is a loopback or private address."
    }

    private func strictRefusal(_ host: String) -> String {
        "The redirect to \(host) is refused: it is a loopback, link-local or private address of another server."
    }

    private func refusal(_ message: String) -> DownloadError {
        DownloadError(.redirect, message, url: url.masked)
    }

    private var noHost: DownloadError { refusal("The redirect leads to something that is not a URL with a host.") }

    /// The rules compare the host that is connected to. Libraries read a host outside ASCII, or a percent-encoded
    /// one, in different ways.
    private func inASCII(_ target: String) throws(DownloadError) -> String {
        if target.utf8.allSatisfy({ $0 < 0x80 }), !URLParts(target).hostPort.contains("%") { return target }
        do {
            return try target.normalizedURL()
        } catch {
            throw Self.foreignScheme(target).map(schemeRefusal) ?? noHost
        }
    }

    /// The scheme of a URL in lower case (RFC 3986 section 3.1), at most 20 characters; nil for http, https and a text without a
    /// scheme.
    private static func foreignScheme(_ text: String) -> String? {
        let scheme = text.prefix { $0 != ":" }
        guard scheme.utf8.count < text.utf8.count, scheme.utf8.first.map({ (0x61...0x7a).contains($0 | 0x20) }) == true,
            scheme.utf8.allSatisfy({ $0.isASCIIDigit || (0x61...0x7a).contains($0 | 0x20) || "+-.".utf8.contains($0) })
        else { return nil }
        let name = scheme.lowercased()
        return name == "http" || name == "https" ? nil : String(name.prefix(20))
    }

    private func schemeRefusal(_ scheme: String) -> DownloadError {
        // A scheme without a vowel is spelled: an ftp URL.
        let isSpelled = !scheme.contains { "aeiou".contains($0) }
        let article = scheme.prefix(1).contains { (isSpelled ? "fhlmnrsx" : "aeiou").contains($0) } ? "an" : "a"
        return refusal(
            "The redirect to \(article) \(scheme) URL is refused: only http and https are followed.")
    }
}
