#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    extension CurlEasy {
        /// The options of a request besides its URL. A handle that has them already needs only the URL: resetting a
        /// handle and setting everything again took a tenth of a small file's processor time.
        final class Setup {
            private let isTLS: Bool
            private let headers: [HeaderField]
            private let options: TransportOptions

            /// nil for a request with an option of its own.
            init?(_ request: OutgoingRequest, _ options: TransportOptions) {
                guard request.method == "GET", request.body == nil, request.credentials == nil, !request.usesNetrc,
                    request.certificate == nil
                else { return nil }
                isTLS = request.isTLS
                headers = request.headers
                self.options = options
            }

            /// True if a request needs the same options.
            func isFor(_ request: OutgoingRequest, _ options: TransportOptions) -> Bool {
                request.method == "GET" && request.body == nil && request.credentials == nil && !request.usesNetrc
                    && request.certificate == nil && isTLS == request.isTLS && headers == request.headers
                    && self.options == options
            }
        }

        /// Sets everything except the callbacks.
        ///
        /// - Returns: false if libcurl has no memory.
        func configure(_ request: OutgoingRequest, _ options: TransportOptions) -> Bool {
            if let setup, setup.isFor(request, options) {
                clearError()
                set(CURLOPT_URL, request.url)
                return true
            }
            reset()
            guard configureAll(request, options) else { return false }
            setup = Setup(request, options)
            return true
        }

        private func configureAll(_ request: OutgoingRequest, _ options: TransportOptions) -> Bool {
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
            guard configureConnection(options, isTLS: request.isTLS) else { return false }
            configureTrust(options)
            if let certificate = request.certificate {
                set(CURLOPT_SSLCERT, certificate.path)
                set(CURLOPT_SSLKEY, certificate.keyPath ?? certificate.path)
            }
            let cookies = request.headers.filter { $0.isCookie }
            // Sent in one field together with the cookies of redirects, because a second Cookie field is not allowed
            // (RFC 6265 section 5.4).
            if let value = cookies.first?.value { set(CURLOPT_COOKIE, value) }
            // `Name;` is libcurl's syntax for a field without a value.
            return setList(
                CURLOPT_HTTPHEADER,
                request.headers.filter { !$0.isCookie }
                    .map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" })
        }

        private func configureMethod(_ request: OutgoingRequest) {
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

        /// - Returns: false if libcurl has no memory.
        private func configureConnection(_ options: TransportOptions, isTLS: Bool) -> Bool {
            set(CURLOPT_BUFFERSIZE, CurlTransport.receiveBufferSize)
            set(CURLOPT_TCP_NODELAY, true)
            set(CURLOPT_TCP_KEEPALIVE, true)
            set(CURLOPT_CONNECTTIMEOUT_MS, Int(min(max(options.connectSeconds, 0.1), 1e6) * 1_000))
            // Without a proxy in the environment, libcurl need not look there five times a request.
            if let proxy = options.proxy ?? (ProxyAddress.isInEnvironment ? nil : "") { set(CURLOPT_PROXY, proxy) }
            if let interface = options.interface { set(CURLOPT_INTERFACE, interface) }
            switch options.addressFamily {
            case .ipv4: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
            case .ipv6: set(CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
            case nil: break
            }
            if let servers = options.dnsServers { set(CURLOPT_DNS_SERVERS, servers) }
            if let url = options.dohURL { set(CURLOPT_DOH_URL, url) }
            switch options.httpVersion {
            case .http1: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            case .http2 where !isTLS: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE))
            case .http3: set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_3))
            case .automatic, .http2:
                set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
                // Waits for a connection that may multiplex instead of opening another.
                if isTLS { set(CURLOPT_PIPEWAIT, true) }
            }
            return options.hostAddresses.map { setList(CURLOPT_CONNECT_TO, $0.map(\.connectTo)) } ?? true
        }

        private func configureTrust(_ options: TransportOptions) {
            if options.insecure {
                set(CURLOPT_SSL_VERIFYPEER, false)
                set(CURLOPT_SSL_VERIFYHOST, 0)
            }
            if let file = options.caPath {
                set(CURLOPT_CAINFO, file)
                set(CURLOPT_CAPATH, nil as String?)  // else the system's directory would still be trusted
            } else if Self.hasSystemCAFile {
                // libcurl caches the parsed authorities between connections only if no directory is set. Parsing
                // takes longer than the rest of a handshake.
                set(CURLOPT_CAPATH, nil as String?)
            }
            if let file = options.crlPath { set(CURLOPT_CRLFILE, file) }
            if let keys = options.pinnedPublicKey { set(CURLOPT_PINNEDPUBLICKEY, keys) }
        }

        /// True if libcurl's built-in file of authorities exists.
        private static let hasSystemCAFile: Bool = {
            guard let easy = curl_easy_init() else { return false }
            defer { curl_easy_cleanup(easy) }
            return fk_easy_default_ca_file(easy).map { access($0, R_OK) == 0 } ?? false
        }()
    }

    extension HeaderField {
        fileprivate var isCookie: Bool { !value.isEmpty && name.caseInsensitiveEquals("Cookie") }
    }
#endif
