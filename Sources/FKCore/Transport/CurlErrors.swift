#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    /// The facts about a transfer that libcurl ended with an error.
    struct CurlFailure {
        var code: CURLcode
        /// The text of CURLOPT_ERRORBUFFER; may be empty.
        var text: String
        /// With secrets masked.
        var url: String
        /// True if the request was sent, or about to be sent, on an established connection.
        var isConnected: Bool
        /// True if the final head has arrived.
        var hasHead: Bool
        /// The status of a proxy's response to CONNECT; 0 if there was none.
        var connectStatus: Int
        /// The proxy as configured; nil without one.
        var proxy: String?
        /// True if the process had no descriptor for the connection. libcurl does not report it.
        var lacksDescriptor = false
        /// The only addresses that may be used; nil for all.
        var family: AddressFamily?

        /// The error for the user, and whether a retry can help.
        ///
        /// | libcurl | code | retryable |
        /// | --- | --- | --- |
        /// | any, without a free descriptor | `connect` | yes |
        /// | lookup, connect, time-out, lost connection, HTTP/2 stream error | `nameLookup`, `connect`, `timeout`, `connectionLost` | yes |
        /// | body ends before its length, its last chunk or TLS close_notify | `incompleteBody` | yes |
        /// | certificate of either side, TLS version or cipher, unreadable CA file | `tls` | no |
        /// | TLS handshake cut by the network | `tls` | yes |
        /// | answer that is not HTTP, header too long | `protocolViolation` | no |
        /// | proxy refuses | `proxy` | where its status is 5xx |
        /// | URL, interface, options | `invalidURL`, `unsupportedScheme`, `invalidArgument` | no |
        var error: DownloadError {
            if lacksDescriptor {
                var error = Self.outOfDescriptors
                error.url = url
                return error
            }
            if !isConnected, let unusableProxy { return unusableProxy }
            if connectStatus == 407 {
                let what = ProxyAddress.hasLogin(proxy) ? "refuses the login" : "wants a login"
                return make(
                    .proxy, "The proxy\(proxyName) answered 407: it \(what).", retry: false, remedy: .giveProxyLogin)
            }
            if connectStatus >= 300 {
                return make(
                    .proxy, "The proxy\(proxyName) answered \(connectStatus) to the request for a tunnel.",
                    retry: connectStatus >= 500)
            }
            switch code {
            case CURLE_COULDNT_CONNECT where isExcluded, CURLE_COULDNT_RESOLVE_HOST where isExcluded:
                let isIPv4 = family == .ipv4
                return make(
                    .invalidURL,
                    "The host is an \(isIPv4 ? "IPv6" : "IPv4") address, and only \(isIPv4 ? "IPv4" : "IPv6") "
                        + "addresses are allowed.", retry: false, remedy: isIPv4 ? .allowIPv6 : .allowIPv4)
            case CURLE_COULDNT_RESOLVE_HOST:
                return make(.nameLookup, "The host's name could not be looked up.", retry: true)
            case CURLE_COULDNT_RESOLVE_PROXY: return unknownProxy
            case CURLE_PROXY: return make(.proxy, "The proxy\(proxyName) could not be used.", retry: true)
            case CURLE_COULDNT_CONNECT where isProxyUnreachable:
                return make(.proxy, "The proxy\(proxyName) could not be reached.", retry: true)
            case CURLE_COULDNT_CONNECT: return make(.connect, "The server could not be reached.", retry: true)
            case CURLE_INTERFACE_FAILED:
                return make(.invalidArgument, "The network interface to send from cannot be used.", retry: false)
            case CURLE_OPERATION_TIMEDOUT: return make(.timeout, "The connection took too long.", retry: true)
            case CURLE_URL_MALFORMAT: return make(.invalidURL, "The URL is not valid.", retry: false)
            case CURLE_PARTIAL_FILE: return make(.incompleteBody, "The body ended too early.", retry: true)
            case CURLE_WEIRD_SERVER_REPLY: return violation
            case CURLE_UNSUPPORTED_PROTOCOL:
                return isConnected
                    ? violation : make(.unsupportedScheme, "Only http and https are supported.", retry: false)
            case CURLE_BAD_FUNCTION_ARGUMENT:
                return isConnected ? violation : make(.invalidArgument, "libcurl refuses an option.", retry: false)
            case CURLE_OUT_OF_MEMORY:
                // libcurl returns the same code for a header line that exceeds its limit.
                guard isConnected, !hasHead else { return make(.connect, "There was no memory left.", retry: true) }
                return DownloadError(
                    .protocolViolation, "The server's response is not valid HTTP: a line of its header is too long.",
                    url: url)
            case CURLE_BAD_CONTENT_ENCODING:
                return make(.encodedBody, "The body has a transfer coding that is not supported.", retry: false)
            case CURLE_GOT_NOTHING:
                let hint = url.hasPrefix("http://") ? " If it speaks TLS at this port, write https://." : ""
                return make(.connectionLost, "The server closed the connection without an answer.\(hint)", retry: true)
            case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3: return lost
            case CURLE_SSL_CONNECT_ERROR: return handshake
            case CURLE_PEER_FAILED_VERIFICATION: return certificate
            case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
                return make(.tls, "The server's public key is not a pinned one.", retry: false, remedy: .checkPinnedKey)
            case CURLE_SSL_CACERT_BADFILE:
                return make(.tls, "The file of certificate authorities cannot be used.", retry: false)
            case CURLE_SSL_CRL_BADFILE:
                return make(.tls, "The certificate revocation list cannot be used.", retry: false)
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_ENGINE_NOTFOUND,
                CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_INVALIDCERTSTATUS,
                CURLE_USE_SSL_FAILED, CURLE_SSL_SHUTDOWN_FAILED:
                return make(.tls, "A secure connection could not be made.", retry: false)
            default:
                return make(.connectionLost, "The transfer failed.", retry: false)
            }
        }

        /// The process has no descriptor for a connection.
        static let outOfDescriptors = DownloadError(
            .connect, "There is no connection: the process has too many open files.",
            underlying: String(cString: strerror(EMFILE)), isRetryable: true)

        /// With a leading space; empty if the proxy is unknown.
        private var proxyName: String { address.map { " \($0.shown)" } ?? "" }
        private var address: ProxyAddress? { proxy.flatMap { try? ProxyAddress($0) } }

        /// libcurl names the host that it could not connect to, and in later versions also the proxy.
        private var isProxyUnreachable: Bool {
            guard let address else { return false }
            let host = address.host.filter { $0 != "[" && $0 != "]" }
            let port = address.port.map(String.init) ?? ""
            return text.contains(" to \(host) port \(port)") || text.contains(" via \(host)")
        }

        /// The error for a proxy that is no valid address; nil for any other. libcurl's own text repeats it with its password.
        private var unusableProxy: DownloadError? {
            guard let proxy else { return nil }
            do throws(ProxyAddress.Fault) {
                _ = try ProxyAddress(proxy)
                return nil
            } catch {
                let name = ProxyAddress.masked(proxy).visible
                return DownloadError(.invalidArgument, "The proxy \(name) cannot be used: \(error.reason).", url: url)
            }
        }

        /// True if the host is an address of another family than the one that may be used.
        private var isExcluded: Bool {
            guard !isConnected, proxy == nil, let family, let host = URLOrigin(url)?.host,
                let found = AddressClass.family(of: host)
            else { return false }
            return found != family
        }

        private var unknownProxy: DownloadError {
            make(.proxy, "The proxy's name\(address.map { " \($0.host)" } ?? "") could not be looked up.", retry: true)
        }

        private var violation: DownloadError {
            make(.protocolViolation, "The server's response is not valid HTTP.", retry: false)
        }

        /// libcurl uses one code for a lost connection, a truncated TLS stream and some malformed responses.
        private var lost: DownloadError {
            if let refusedClient { return refusedClient }
            if text.hasPrefix("Too large response headers") || text.contains("Too many") { return violation }
            if text.contains("memory in chunked") {
                // libcurl returns it for a trailer field that exceeds its limit.
                return DownloadError(.protocolViolation, "A field after the body's chunks is too long.", url: url)
            }
            if text.contains("chunk") && text.contains("hex") {
                return make(.protocolViolation, "The body's chunks are malformed.", retry: true)
            }
            if hasHead, text.contains("unexpected eof") {
                return make(
                    .incompleteBody, "The encrypted connection ended without a close notification.", retry: true)
            }
            return make(.connectionLost, "The connection was lost.", retry: true)
        }

        /// The error for a certificate that was refused. libcurl's text has the reason, in the words of its TLS library.
        private var certificate: DownloadError {
            let reason = text.lowercased()
            let message: String? =
                if reason.contains("expired") {
                    "A certificate of the server has expired, or the clock of this machine is wrong."
                } else if ["not yet valid", "not yet activated"].contains(where: reason.contains) {
                    "A certificate of the server is not valid yet, or the clock of this machine is wrong."
                } else if ["does not match", "matches target", "mismatch"].contains(where: reason.contains) {
                    "The server's certificate is for another host."
                } else {
                    nil
                }
            if let message { return make(.tls, message, retry: false) }
            return make(
                .tls,
                "The server's certificate was refused. If it is self-signed or from an authority of your own, name that "
                    + "authority's file.", retry: false, remedy: .nameAuthority)
        }

        /// The error for an alert about the client's certificate; nil without one. With TLS 1.3 the alert comes after the client's
        /// handshake, in place of the answer.
        private var refusedClient: DownloadError? {
            guard let alert = text.range(of: " alert ").map({ text[$0.upperBound...].lowercased() }) else { return nil }
            if alert.contains("certificate required") {
                return make(.tls, "The server wants a client certificate.", retry: false, remedy: .giveCertificate)
            }
            let reasons = [
                "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
                "certificate unknown", "unknown ca",
            ]
            guard reasons.contains(where: alert.contains) else { return nil }
            return make(
                .tls, "The server refuses the client certificate, or wants one.", retry: false,
                remedy: .giveCertificate)
        }

        private var handshake: DownloadError {
            if let refusedClient { return refusedClient }
            if text.contains("wrong version number") || text.contains("packet length too long") {
                return make(
                    .tls, "The server does not speak TLS at this port. If it speaks plain HTTP, write http://.",
                    retry: false)
            }
            let isNetwork = ["reset", "SSL_ERROR_SYSCALL", "unexpected eof", "timed out"].contains { text.contains($0) }
            return make(.tls, "A secure connection could not be made.", retry: isNetwork)
        }

        private func make(
            _ code: DownloadError.Code, _ message: String, retry: Bool, remedy: Remedy? = nil
        ) -> DownloadError {
            let cause = text.isEmpty ? String(cString: curl_easy_strerror(self.code)) : text
            let isOnTheWay = !hasHead && [.connect, .timeout, .connectionLost, .tls].contains(code)
            let note = isOnTheWay ? ProxyAddress.note(proxy) : ""
            return DownloadError(
                code, message + note, url: url, underlying: cause, isRetryable: retry,
                remedy: note.isEmpty ? remedy : nil)
        }
    }
#endif
