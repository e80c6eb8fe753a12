import FKMiddleware

/// The requests of one transfer over URLSession: the one in progress, and the next one after a redirect. Confined to one
/// thread at a time.
struct RequestRoute {
    private let request: TransportRequest
    private var rules: RedirectRules?
    /// The request in progress; nil before the first one.
    private(set) var current: OutgoingRequest?
    /// The request that follows the one in progress; nil without a redirect.
    private(set) var next: OutgoingRequest?

    init(_ request: TransportRequest) { self.request = request }

    /// The first request.
    ///
    /// - Throws: `.invalidURL` or another code for a request that cannot be sent.
    mutating func first() throws(DownloadError) -> OutgoingRequest {
        let first = try OutgoingRequest(request)
        rules = RedirectRules(url: first.url, method: first.method, options: request.options)
        return first
    }

    /// A request is sent.
    mutating func send(_ request: OutgoingRequest) {
        current = request
        next = nil
    }

    /// Follows a redirect. Returns false if the head is not one.
    ///
    /// - Throws: `.redirect` for one that is refused.
    mutating func follow(_ head: ResponseHead) throws(DownloadError) -> Bool {
        let from = url
        guard let hop = try rules?.follow(head, resolve: URLSessionOptions.resolve) else { return false }
        // The address of a host name is unknown before the request is sent.
        if !request.options.allowsPrivateRedirect, let host = URLOrigin(hop.url)?.host, host != URLOrigin(from)?.host,
            AddressClass.isPrivate(host: host) == nil
        {
            throw DownloadError(
                .redirect,
                "The redirect to \(host) is refused: URLSession cannot tell whether it is a private address.",
                url: maskedURL)
        }
        next = current?.following(hop, secrets: request.secretHeaders)
        return true
    }

    /// The number of redirects so far.
    var redirects: Int { rules?.count ?? 0 }

    /// The fields of the redirects that describe the file.
    var carried: [HeaderField] { rules?.carried ?? [] }

    /// The URLs that redirected, after the first one.
    var via: [String] { rules?.via ?? [] }

    /// The URL of the request in progress; empty before the first one.
    var url: String { current?.url ?? "" }

    /// True if the request in progress asks for the head only.
    var isHead: Bool { current?.method == "HEAD" }

    /// The URL for messages.
    var maskedURL: String { (current?.url ?? request.form.url).masked }
}
