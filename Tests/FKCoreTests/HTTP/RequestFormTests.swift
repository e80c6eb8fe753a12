import Foundation
import Testing

@testable import FKTransport

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("Requests that are a URL alone")
struct RequestFormTests {
    private static let urls = [
        "http://h.example/a", "https://h.example:8443/a%20b?c=d", "http://u:p@h.example/a", "https://h.example/a@b",
        "http://[::1]:8/",
    ]

    @Test("what is sent is what Foundation's request would send", arguments: urls, [nil, "agent/1"])
    func same(_ url: String, _ agent: String?) throws {
        var options = TransportOptions()
        options.userAgent = agent
        let full = TransportRequest(urlRequest: URLRequest(url: try #require(URL(string: url))), options: options)
        let plain = TransportRequest(.url(url), secretHeaders: [], options: options, prefersHTTP1: false)
        let (one, other) = (try OutgoingRequest(plain), try OutgoingRequest(full))
        #expect(one.url == other.url && one.headers == other.headers && one.method == other.method)
        #expect(one.credentials == other.credentials && one.body == nil && one.usesNetrc == other.usesNetrc)
        #expect(one.isTLS == url.hasPrefix("https:"))
        #expect(plain.urlRequest == full.urlRequest)
    }

    @Test("a request that is changed is the changed one")
    func changed() throws {
        var request = TransportRequest(
            .url("http://h.example/a"), secretHeaders: [], options: .init(), prefersHTTP1: false)
        request.urlRequest.setValue("1", forHTTPHeaderField: "X-A")
        #expect(try OutgoingRequest(request).headers.contains { $0.name == "X-A" && $0.value == "1" })
    }
}
