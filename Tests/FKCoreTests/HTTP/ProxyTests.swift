import TestSupport
import Testing

@testable import FKTransport

#if canImport(CLibcurl)
    import CLibcurl
#endif

@Suite("Proxies")
struct ProxyTests {
    @Test(
        "A proxy's host and port",
        arguments: [
            ("proxy", "proxy"), ("proxy:3128", "proxy:3128"), ("http://u:p@proxy:3128/", "proxy:3128"),
            ("socks5h://127.0.0.1:9", "127.0.0.1:9"), ("HTTPS://p:1", "p:1"), ("[::1]:8080", "[::1]:8080"),
            ("u:p:q@h:80", "h:80"),
        ])
    func read(text: String, shown: String) throws {
        #expect(try ProxyAddress(text).shown == shown)
    }

    @Test(
        "What is no proxy",
        arguments: [
            "foo:bar", "foo:", "foo:0", "foo:65536", "foo:1:2", ":80", "", "http://", "ftp://p:1", "p x:1", "[::1:80",
            "[]:80", "http://u:p@:80", "p:+1",
        ])
    func refused(text: String) {
        #expect(throws: ProxyAddress.Fault.self) { try ProxyAddress(text) }
    }

    @Test("The option comes before the variables; no_proxy spares hosts and their subdomains")
    func chosen() {
        func proxy(_ option: String?, _ url: String, _ environment: [String: String]) -> String? {
            ProxyAddress.text(option: option, url: url, environment: environment)
        }
        let both = ["http_proxy": "h:1", "HTTPS_PROXY": "s:1"]
        #expect(proxy("o:1", "http://a/", both) == "o:1" && proxy("", "http://a/", both) == nil)
        #expect(proxy(nil, "http://a/", both) == "h:1" && proxy(nil, "https://a/", both) == "s:1")
        #expect(proxy(nil, "https://a/", ["http_proxy": "h:1"]) == nil)
        for list in ["*", "a.example", ".a.example, x", "b,example"] {
            #expect(proxy("o:1", "http://b.a.example/", ["no_proxy": list]) == nil, "\(list)")
        }
        #expect(proxy("o:1", "http://ba.example/", ["NO_PROXY": "a.example"]) == "o:1")
        #expect(proxy("o:1", "http://a.example/", ["no_proxy": "", "NO_PROXY": "a.example"]) == nil)
    }

    @Test("no_proxy spares the addresses of a network, as libcurl does")
    func networks() {
        func isSpared(_ host: String, _ list: String) -> Bool {
            ProxyAddress.text(option: "o:1", url: "http://\(host)/", environment: ["no_proxy": list]) == nil
        }
        for list in [
            "10.0.0.0/8", "10.1.2.3", "10.1.2.0/24", "x, 10.1.0.0/16", "10.1.2.3/32", "10.9.9.9/8", "10.1.2.2/31",
        ] {
            #expect(isSpared("10.1.2.3", list), "\(list)")
        }
        for list in [
            "10.1.3.0/24", "11.0.0.0/8", "10.1.2.2/32", "0.0.0.0/0", "10.0.0.0/33", "fd00::/8", "10.0.0.0/x", "3",
        ] {
            #expect(!isSpared("10.1.2.3", list), "\(list)")
        }
        #expect(isSpared("[fd00::1]", "fd00::/8") && isSpared("[fd00::1]", "fd00::1"))
        #expect(!isSpared("[fe00::1]", "fd00::/8") && !isSpared("a.example", "10.0.0.0/8"))
    }

    #if canImport(CLibcurl)
        private func error(
            _ code: CURLcode, _ text: String, proxy: String?, connectStatus: Int = 0
        ) -> DownloadError {
            CurlFailure(
                code: code, text: text, url: "http://a.example/", isConnected: false, hasHead: false,
                connectStatus: connectStatus, proxy: proxy
            ).error
        }

        @Test(
            "A proxy that wants a login says whether it had one", arguments: [("", "wants a"), ("u:p@", "refuses the")])
        func login(user: String, what: String) {
            let error = error(CURLE_RECV_ERROR, "CONNECT tunnel failed", proxy: "http://\(user)p:9", connectStatus: 407)
            #expect(error.message == "The proxy p:9 answered 407: it \(what) login." && error.remedy == .giveProxyLogin)
        }

        @Test(
            "A refused certificate says what is wrong with it",
            arguments: [
                ("SSL certificate problem: certificate has expired", "has expired, or the clock"),
                ("SSL certificate problem: certificate is not yet valid", "is not valid yet, or the clock"),
                ("SSL: no alternative certificate subject name matches target host name 'a'", "is for another host."),
                ("SSL: certificate subject name 'b' does not match target hostname 'a'", "is for another host."),
                ("SSL certificate problem: self-signed certificate", "name that authority's file."),
            ])
        func certificates(text: String, message: String) {
            let error = error(CURLE_PEER_FAILED_VERIFICATION, text, proxy: nil)
            #expect(error.code == .tls && error.message.contains(message) && error.underlying == text)
            #expect((error.remedy == .nameAuthority) == message.contains("authority"))
        }

        @Test("A server that wants or refuses the client's certificate is not asked again")
        func clientCertificate() {
            let text = "OpenSSL SSL_read: OpenSSL/3.0.19: error:0A00045C:SSL routines::"
            for code in [CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_SSL_CONNECT_ERROR] {
                let wanted = error(code, text + "tlsv13 alert certificate required, errno 0", proxy: nil)
                #expect(wanted.message == "The server wants a client certificate.")
                let refused = error(code, text + "sslv3 alert bad certificate, errno 0", proxy: nil)
                #expect(refused.message == "The server refuses the client certificate, or wants one.")
                for error in [wanted, refused] {
                    #expect(error.code == .tls && !error.isRetryable && error.remedy == .giveCertificate)
                }
            }
            #expect(error(CURLE_RECV_ERROR, "Connection reset by peer", proxy: nil).code == .connectionLost)
        }

        @Test("An address of the family that is not allowed is refused, and not tried again")
        func family() async throws {
            let live = try LiveBench()
            let six = try await live.fetch("http://[::1]:9/a") { $0.addressFamily = .ipv4 }.error
            #expect(six?.message == "The host is an IPv6 address, and only IPv4 addresses are allowed.")
            let four = try await live.fetch("http://127.0.0.1:9/a") { $0.addressFamily = .ipv6 }.error
            #expect(four?.message == "The host is an IPv4 address, and only IPv6 addresses are allowed.")
            #expect([six?.remedy, four?.remedy] == [.allowIPv6, .allowIPv4])
            #expect(six?.isRetryable == false && four?.isRetryable == false)
        }

        @Test("A failure of the proxy names it, without its password")
        func named() {
            let dead = error(
                CURLE_COULDNT_CONNECT, "Failed to connect to 127.0.0.1 port 9 after 0 ms",
                proxy: "http://u:pass@127.0.0.1:9")
            #expect(dead.code == .proxy && dead.message.contains("127.0.0.1:9") && !dead.message.contains("pass"))
            let later = error(
                CURLE_COULDNT_CONNECT, "Failed to connect to a.example port 80 via p after 0 ms", proxy: "p:9")
            #expect(later.code == .proxy && later.message.contains("p:9"))
            let unknown = error(CURLE_COULDNT_RESOLVE_PROXY, "Could not resolve proxy: nope", proxy: "nope:1")
            #expect(unknown.code == .proxy && unknown.message.contains("nope") && unknown.isRetryable)
            let wrong = error(CURLE_COULDNT_RESOLVE_PROXY, "Unsupported proxy syntax in 'foo:bar'", proxy: "foo:bar")
            #expect(wrong.code == .invalidArgument && !wrong.isRetryable && wrong.message.contains("bar"))
            let silent = error(CURLE_OPERATION_TIMEDOUT, "Connection timed out", proxy: "p:9")
            #expect(silent.code == .timeout && silent.message.contains("p:9"))
            let direct = error(CURLE_COULDNT_CONNECT, "Failed to connect to a.example port 80", proxy: nil)
            #expect(direct.code == .connect && direct.message == "The server could not be reached.")
        }
    #endif
}
