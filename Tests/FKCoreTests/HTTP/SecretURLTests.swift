import TestSupport
import Testing

@Suite("URLs in errors and in redirects")
struct SecretURLTests {
    @Test(
        "userinfo and the values of query items that may be secret are masked, the rest stays",
        arguments: [
            ("http://example.com/a", "http://example.com/a"),
            ("http://user:password@example.com:81/a?b=c&pw=e#part", "http://***@example.com:81/a?b=c&pw=***#part"),
            ("http://user@example.com", "http://***@example.com"),
            ("https://u@e.com?k=v@w", "https://***@e.com?k=v@w"),
            ("https://e.com/f?id=1", "https://e.com/f?id=1"),
            ("https://e.com/f?id=2&page=3", "https://e.com/f?id=2&page=3"),
            ("http://a@b@example.com/c@d", "http://***@example.com/c@d"),
            ("https://example.com/?20261121", "https://example.com/?20261121"),
            ("https://example.com/?c2VjcmV0LXRva2VuLTEy", "https://example.com/?***"),
            ("https://example.com/?a=b=c&&=x", "https://example.com/?a=b=c&&=x"),
            ("https://example.com/?a=1;token=b;c=2", "https://example.com/?a=1;token=***;c=2"),
            ("https://example.com/?%74oken=b&to%6ben=c", "https://example.com/?%74oken=***&to%6ben=***"),
            ("https://e.com/?u=https://a:b@c/d&v=https://c/d", "https://e.com/?u=***&v=https://c/d"),
            ("https://e.com/?u=https%3A%2F%2Fc%2Fd%3Ftoken%3Dx", "https://e.com/?u=***"),
            ("https://e.com/?token=\u{301}x", "https://e.com/?token=***"),
            ("https://e.com/#access_token=x&state=y", "https://e.com/#access_token=***&state=y"),
            ("https://example.com/?", "https://example.com/?"),
            ("https://example.com/#a?b=c", "https://example.com/#a?b=c"),
            ("https://example.com/?a=1?b=2#x", "https://example.com/?a=1?b=2#x"),
            ("not a url?key=secret", "not a url?key=***"),
            ("", ""),
        ])
    func masking(url: String, masked: String) {
        #expect(url.masked == masked)
    }

    @Test(
        "names of query items that may hold a secret",
        arguments: [
            "token", "access_token", "accessToken", "X-Auth-Token", "key", "api_key", "apikey", "API-Key", "sig",
            "Signature", "sign", "password", "passwd", "pwd", "auth", "authorization", "credential", "X-Amz-Credential",
            "X-Amz-Date", "X-Amz-Signature", "X-Goog-Signature", "AWSAccessKeyId", "OSSAccessKeyId", "GoogleAccessId",
            "Key-Pair-Id", "Policy", "hdnts", "hdnea", "hmac", "jwt", "sessionid", "sid", "client_secret", "md5",
            "secret",
        ])
    func secretNames(name: String) {
        #expect(name.isSecretName)
    }

    @Test(
        "names of query items that hold none",
        arguments: [
            "id", "page", "max-keys", "file", "name", "v", "version", "q", "monkey", "keyboard", "design", "author",
            "signal",
            "assign", "passage", "compass", "lang", "format", "size", "e", "expires", "path", "",
        ])
    func plainNames(name: String) {
        #expect(!name.isSecretName)
    }

    @Test(
        "one origin, spelled in several ways",
        arguments: [
            ("http://example.com", "HTTP://EXAMPLE.com:80/a?b"),
            ("https://example.com/", "https://user:pass@example.com.:443/"),
            ("http://[::1]/", "http://[::1]:80/"),
            ("http://example.com:/a", "http://example.com/b"),
        ])
    func sameOrigin(first: String, second: String) {
        #expect(URLOrigin(first) != nil)
        #expect(URLOrigin(first) == URLOrigin(second))
    }

    @Test(
        "different origins",
        arguments: [
            ("http://example.com", "https://example.com"), ("http://example.com", "http://example.com:81"),
            ("http://example.com", "http://www.example.com"), ("http://a@example.com", "http://example.com@evil.test"),
        ])
    func differentOrigin(first: String, second: String) {
        #expect(URLOrigin(first) != URLOrigin(second))
    }

    @Test(
        "no origin",
        arguments: [
            "", "/a", "example.com", "http://", "http:///a", "http://:80/", "http://a:99999", "http://a:1x",
            "http://[::1",
        ])
    func noOrigin(url: String) {
        #expect(URLOrigin(url) == nil)
    }

    @Test(
        "loopback, private and reserved addresses are private",
        arguments: [
            "127.0.0.1", "127.255.0.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
            "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1", "::1", "::", "fe80::1",
            "fe80::1%eth0", "fd00::1", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::10.0.0.1",
            "2002:7f00:1::", "localhost", "LOCALHOST", "a.localhost",
        ])
    func privateAddress(host: String) {
        #expect(AddressClass.isPrivate(host: host) == true)
    }

    @Test(
        "public addresses are public",
        arguments: [
            "1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "192.169.0.1", "2606:4700::1111", "::ffff:8.8.8.8",
            "2002:808:808::",
        ])
    func publicAddress(host: String) {
        #expect(AddressClass.isPrivate(host: host) == false)
    }

    @Test(
        "names say nothing",
        arguments: ["example.com", "10.0.0.1.example.com", "localhost.example.com", "256.1.1.1", ""])
    func name(host: String) {
        #expect(AddressClass.isPrivate(host: host) == nil)
    }
}
