import TestSupport
import Testing

@testable import FKModel

@Suite("The short cut for URLs that are normal already")
struct PlainURLTests {
    @Test(
        "takes the usual ones",
        arguments: [
            "http://example.com/", "https://a.b.example.org/x/y-z_1.tar.gz?a=b&c=d", "http://127.0.0.1:8080/small/17",
        ])
    func usual(url: String) { #expect(PlainURL.isNormal(url)) }

    @Test(
        "leaves everything else to the rules",
        arguments: [
            "", "http://", "http:///x", "HTTP://a/", "http://A/", "http://a", "http://a:80/", "https://a:443/",
            "http://a:/", "http://a:080/", "http://a:65536/", "http://u@h/", "http://[::1]/", "http://a..b/",
            "http://a./", "http://xn--a/", "http://a/%41", "http://a/b c", "http://a/ä", "http://ä/", "http://a/#f",
            "http://a/\\", "http://a?b", "ftp://a/",
        ])
    func unusual(url: String) { #expect(!PlainURL.isNormal(url)) }

    @Test("never says normal where the rules would change something")
    func agrees() throws {
        var random = SeededRandom(seed: 1)
        let parts = [
            "http://", "https://", "a", "B", "9", ".", "..", "-", ":", ":80", ":81", "/", "//", "?", "&", "=", "%41",
            "%", "#", "@", " ", "é", "xn--", "~", "_", "+", ",", "0", "127.1", "[", "\\", "\u{7f}",
        ]
        for _ in 0..<20_000 {
            let body = (0..<Int.random(in: 1...9, using: &random)).map { _ in parts.randomElement(using: &random) ?? ""
            }
            let url = (Bool.random(using: &random) ? "http://" : "https://") + body.joined()
            guard PlainURL.isNormal(url) else { continue }
            #expect(try URLNormalizer.normalizeFully(url) == url, "\(url)")
        }
    }
}
