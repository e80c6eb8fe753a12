#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// One request of a transfer as libcurl is told of it: the first one or a redirect's.
    struct CurlRequest {
        /// Without userinfo and fragment.
        var url: String
        var method: String
        var body: Data?
        /// In the order they go on the wire; names and values were checked.
        var headers: [ResponseHead.Field]
        var credentials: URLParts.Credentials?
        var usesNetrc: Bool

        /// - Throws: `invalidURL`, `unsupportedScheme`, or `invalidArgument` for header fields that could smuggle in
        ///   others (CR, LF, NUL) and for body streams.
        init(_ request: TransportRequest) throws(DownloadError) {
            let text = request.urlRequest.url?.absoluteString ?? ""
            let parts = URLParts(text)
            guard let origin = URLOrigin(parts) else {
                throw DownloadError(
                    .invalidURL, "The request has no URL with a host.",
                    url: request.urlRequest.url.map { URLMasking.mask($0.absoluteString) })
            }
            guard origin.scheme == "http" || origin.scheme == "https" else {
                throw DownloadError(
                    .unsupportedScheme, "Only http and https are supported, not \(origin.scheme).",
                    url: URLMasking.mask(text))
            }
            url = parts.userinfo == nil && parts.fragment == nil ? text : parts.requestURL
            credentials = parts.credentials
            usesNetrc = request.options.netrc
            method = request.urlRequest.httpMethod ?? "GET"
            body = request.urlRequest.httpBody
            headers = (request.urlRequest.allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }.map {
                .init($0.key, $0.value)
            }
            guard request.urlRequest.httpBodyStream == nil else {
                throw DownloadError(
                    .invalidArgument, "A request body must be data; a stream cannot be sent again on a retry.")
            }
            guard HTTPToken.isFieldName(method) else {
                throw DownloadError(.invalidArgument, "The request's method is not a word.", url: URLMasking.mask(text))
            }
            for field in headers where !HTTPToken.isFieldName(field.name) || !HTTPToken.isFieldValue(field.value) {
                throw DownloadError(
                    .invalidArgument,
                    "A request header field has a name or a value with characters that are not allowed there (CR, LF, NUL).",
                    url: URLMasking.mask(text))
            }
            addDefault("Accept-Encoding", "identity")
            addDefault("User-Agent", request.options.userAgent ?? TransportOptions.defaultUserAgent)
        }

        /// The request that follows a redirect.
        ///
        /// - Parameter secrets: names of header fields, in lower case, that stay behind with the first origin.
        func following(_ hop: RedirectRules.Hop, secrets: Set<String>) -> CurlRequest {
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
                    return Self.alwaysSecret.contains(name) || secrets.contains(name)
                }
                next.credentials = nil
                next.usesNetrc = false
            }
            if let own = parts.credentials { next.credentials = own }
            return next
        }

        /// Host is no secret, but names the first origin and would be wrong for another.
        private static let alwaysSecret: Set<String> = ["authorization", "cookie", "proxy-authorization", "host"]

        private mutating func addDefault(_ name: String, _ value: String) {
            if !headers.contains(where: { $0.name.caseInsensitiveEquals(name) }) { headers.append(.init(name, value)) }
        }
    }

    extension CurlEasy {
        /// Sets everything but the callbacks.
        ///
        /// - Returns: false when libcurl has no memory.
        func configure(_ request: CurlRequest, _ options: TransportOptions) -> Bool {
            reset()
            set(CURLOPT_NOSIGNAL, true)
            fk_easy_set_http_only(pointer)
            fk_easy_set_quick_exit(pointer)
            fk_easy_set_close_on_exec(pointer)
            set(CURLOPT_URL, request.url)
            configureMethod(request)
            if let credentials = request.credentials {
                set(CURLOPT_USERNAME, credentials.user)
                set(CURLOPT_PASSWORD, credentials.password)
            }
            if request.usesNetrc { set(CURLOPT_NETRC, Int(CURL_NETRC_OPTIONAL.rawValue)) }
            set(CURLOPT_HTTP_CONTENT_DECODING, false)
            set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)
            configureConnection(options, isTLS: request.url.lowercased().hasPrefix("https:"))
            configureTrust(options)
            // "Name;" is libcurl's way to write a field without a value.
            return setHeaders(request.headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" })
        }

        private func configureMethod(_ request: CurlRequest) {
            if let body = request.body {
                set(CURLOPT_POSTFIELDSIZE, body.count)
                body.withUnsafeBytes { set(CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: $0.baseAddress)) }
            }
            switch request.method {
            case "GET" where request.body == nil: break
            case "HEAD": set(CURLOPT_NOBODY, true)
            default: set(CURLOPT_CUSTOMREQUEST, request.method)
            }
        }

        private func configureConnection(_ options: TransportOptions, isTLS: Bool) {
            set(CURLOPT_BUFFERSIZE, CurlTransport.receiveBufferSize)
            set(CURLOPT_TCP_NODELAY, true)
            set(CURLOPT_TCP_KEEPALIVE, true)
            set(CURLOPT_CONNECTTIMEOUT_MS, Int(max(options.connectTimeout, 0.1) * 1_000))
            if let proxy = options.proxy { set(CURLOPT_PROXY, proxy) }
            if let interface = options.interface { set(CURLOPT_INTERFACE, interface) }
            switch options.httpVersion {
            case .http1: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            case .http2 where !isTLS: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
            case .automatic, .http2:
                set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
                // Wait for a connection that may multiplex rather than open another.
                if isTLS { set(CURLOPT_PIPEWAIT, true) }
            }
        }

        private func configureTrust(_ options: TransportOptions) {
            if options.insecure {
                set(CURLOPT_SSL_VERIFYPEER, false)
                set(CURLOPT_SSL_VERIFYHOST, 0)
            }
            if let file = options.caFile {
                set(CURLOPT_CAINFO, file)
                set(CURLOPT_CAPATH, nil as String?)  // else the system's directory would still be trusted
            } else if Self.hasSystemCAFile {
                // libcurl keeps the parsed authorities between connections only where no directory is set; parsing
                // takes longer than the rest of a handshake.
                set(CURLOPT_CAPATH, nil as String?)
            }
            if let file = options.crlFile { set(CURLOPT_CRLFILE, file) }
        }

        /// Whether the file of authorities that libcurl was built with is there.
        private static let hasSystemCAFile: Bool = {
            guard let easy = curl_easy_init() else { return false }
            defer { curl_easy_cleanup(easy) }
            return fk_easy_default_ca_file(easy).map { access($0, R_OK) == 0 } ?? false
        }()
    }
#endif
