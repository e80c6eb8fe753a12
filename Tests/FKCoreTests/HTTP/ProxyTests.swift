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
    }

    #if canImport(CLibcurl)
        private func error(_ code: CURLcode, _ text: String, proxy: String?) -> DownloadError {
            CurlFailure(
                code: code, text: text, url: "http://a.example/", isConnected: false, hasHead: false, connectStatus: 0,
                proxy: proxy
            ).error
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
