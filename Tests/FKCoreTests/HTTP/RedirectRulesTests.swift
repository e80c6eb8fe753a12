import TestSupport
import Testing

@Suite("Rules for redirects")
struct RedirectRulesTests {
    private func rules(
        _ url: String, _ method: String = "GET", change: (inout TransportOptions) -> Void = { _ in }
    ) -> RedirectRules {
        var options = TransportOptions()
        change(&options)
        return RedirectRules(url: url, method: method, options: options)
    }

    @Test(
        "the method after each status", arguments: [300, 301, 302, 303, 307, 308], ["GET", "HEAD", "POST", "PUT"]
    )
    func method(status: Int, method: String) throws {
        var rules = rules("http://a.test/", method)
        let hop = try rules.follow(status: status, to: "http://a.test/b")
        let becomesGet =
            switch (status, method) {
            case (303, "POST"), (303, "PUT"), (303, "GET"), (300, "POST"), (301, "POST"), (302, "POST"), (_, "GET"):
                true
            default: false
            }
        #expect(hop.method == (becomesGet ? "GET" : method))
        #expect(hop.keepsBody == (hop.method == method))
    }

    @Test(
        "secrets stay with the first origin",
        arguments: [
            (["http://a.test/b"], [true]), (["http://a.test:80/b"], [true]), (["https://a.test/b"], [false]),
            (["http://a.test:81/b"], [false]), (["http://b.test/"], [false]), (["http://sub.a.test/"], [false]),
            (["http://b.test/", "http://a.test/c"], [false, false]),
            (["http://a.test/b", "http://b.test/"], [true, false]),
        ])
    func secrets(targets: [String], kept: [Bool]) throws {
        var rules = rules("http://a.test/")
        #expect(try targets.map { try rules.follow(status: 302, to: $0).keepsSecrets } == kept)
    }

    @Test("the limits that the first redirect announces are carried, and those of no later one")
    func limits() throws {
        var rules = rules("http://a.test/")
        for (number, target) in ["http://b.test/", "http://c.test/"].enumerated() {
            let head = ResponseHead(
                status: 302,
                fields: [.init("Location", target), .init("ratelimit", "\"\(number)\";r=1;t=1"), .init("Link", "<x>")],
                url: "http://a.test/")
            _ = try rules.follow(head) { location, _ in location }
        }
        #expect(rules.carried.map(\.name) == ["ratelimit", "Link", "Link"])
        #expect(rules.carried[0].value == "\"0\";r=1;t=1")
    }

    @Test("https to http needs leave, also after a detour")
    func insecure() throws {
        var strict = rules("https://a.test/")
        #expect(throws: DownloadError.self) { try strict.follow(status: 302, to: "http://a.test/") }
        var upgraded = rules("http://a.test/")
        _ = try upgraded.follow(status: 302, to: "https://a.test/")
        #expect(throws: DownloadError.self) { try upgraded.follow(status: 302, to: "http://a.test/b") }
        var lenient = rules("https://a.test/") { $0.allowsInsecureRedirect = true }
        #expect(try lenient.follow(status: 302, to: "http://a.test/").keepsSecrets == false)
    }

    @Test("count, and what is no target")
    func refusals() throws {
        var counted = rules("http://a.test/0") { $0.maxRedirects = 2 }
        _ = try counted.follow(status: 302, to: "http://a.test/1")
        _ = try counted.follow(status: 302, to: "http://a.test/2")
        #expect(throws: DownloadError.self) { try counted.follow(status: 302, to: "http://a.test/3") }
        #expect(counted.count == 2)
        for target in [
            "ftp://a.test/", "file:///a", "http://", "http://a.test/\u{7f}", "http://a.test/\r\n",
        ] {
            var rules = rules("http://user:secret@a.test/?key=secret")
            let error = #expect(throws: DownloadError.self) { try rules.follow(status: 302, to: target) }
            #expect(error?.code == .redirect)
            #expect(error?.isRetryable == false)
            #expect(error.map { "\($0)".contains("secret") } == false)
        }
    }

    @Test(
        "another scheme is refused by its name, whatever a library makes of the URL",
        arguments: [
            ("ftp://a.test/", "an ftp"), ("file:///a", "a file"), ("data:text/plain,a", "a data"),
            ("S3://bucket/a", "an s3"),
        ])
    func schemes(location: String, name: String) {
        let head = ResponseHead(status: 302, fields: [.init("Location", location)], url: "http://a.test/")
        for resolved in [location, nil] {
            var rules = rules("http://a.test/")
            let error = #expect(throws: DownloadError.self) { try rules.follow(head) { _, _ in resolved } }
            #expect(
                error?.message == "The redirect to \(name) URL is refused: only http and https are followed.")
        }
    }

    @Test("the same URL may come again and again, up to the limit")
    func sameURL() throws {
        var rules = rules("http://a.test/", "POST") { $0.maxRedirects = 3 }
        #expect(try rules.follow(status: 303, to: "http://a.test/").method == "GET")
        #expect(try rules.follow(status: 303, to: "http://a.test/#x").keepsSecrets)
        _ = try rules.follow(status: 302, to: "http://a.test/")
        #expect(throws: DownloadError.self) { try rules.follow(status: 302, to: "http://a.test/") }
    }

    @Test(
        "a host outside ASCII becomes its IDNA form, and is then judged",
        arguments: [
            ("http://m\u{fc}nchen.test/\u{e9} x", "http://xn--mnchen-3ya.test/%C3%A9%20x"),
            ("http://M\u{dc}NCHEN.test:8080/", "http://xn--mnchen-3ya.test:8080/"),
            ("http://m%C3%BCnchen.test/", "http://xn--mnchen-3ya.test/"),
            ("http://a.test/caf\u{e9}?\u{e9}", "http://a.test/caf%C3%A9?%C3%A9"),
            ("http://\u{ff41}.test/", "http://a.test/"), ("ftp://m\u{fc}nchen.test/", nil),
            ("http://m\u{fc}n:chen.test/", nil), ("http://\u{fc} x/", nil),
        ] as [(String, String?)])
    func beyondASCII(_ target: String, _ expected: String?) throws {
        var rules = rules("http://a.test/")
        let hop = try? rules.follow(status: 302, to: target)
        #expect(hop?.url == expected)
        #expect(hop?.keepsSecrets == expected.map { $0.hasPrefix("http://a.test/") })
        var strict = self.rules("http://a.test/") { $0.allowsPrivateRedirect = false }
        // Full-width digits: a loopback address once it is mapped.
        #expect(throws: DownloadError.self) {
            try strict.follow(
                status: 302, to: "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", fromAddress: "8.8.8.8")
        }
    }

    @Test(
        "from public to private needs leave when that is refused",
        arguments: [
            ("http://a.test/", "8.8.8.8", "http://127.0.0.1/", true), ("http://a.test/", nil, "http://[::1]/", true),
            ("http://a.test/", "8.8.8.8", "http://localhost/", true),
            ("http://8.8.8.8/", nil, "http://10.0.0.1/", true), ("http://a.test/", "8.8.8.8", "http://b.test/", false),
            ("http://a.test/", "8.8.8.8", "http://1.1.1.1/", false),
            ("http://a.test/", "10.0.0.1", "http://127.0.0.1/", false),
            ("http://localhost/", nil, "http://10.0.0.1/", false),
        ] as [(String, String?, String, Bool)])
    func privateTarget(from: String, address: String?, to: String, isRefused: Bool) {
        var allowing = rules(from)
        #expect(throws: Never.self) { try allowing.follow(status: 302, to: to, fromAddress: address) }
        var refusing = rules(from) { $0.allowsPrivateRedirect = false }
        let error = Result { try refusing.follow(status: 302, to: to, fromAddress: address) }
        #expect((try? error.get()) == nil ? isRefused : !isRefused)
    }

    @Test(
        "with --no-private, a private address of another origin is refused wherever the redirect comes from",
        arguments: [
            ("http://127.0.0.1:1/", "http://127.0.0.1:1/b", false),
            ("http://127.0.0.1:1/", "http://127.0.0.1:2/", true),
            ("http://localhost/", "http://10.0.0.1/", true), ("http://10.0.0.1/", "http://169.254.169.254/", true),
            ("http://a.test/", "http://[::1]/", true), ("http://a.test/", "http://[::ffff:127.0.0.1]/", true),
            ("http://a.test/", "http://[64:ff9b::7f00:1]/", true), ("http://a.test/", "http://[64:ff9b:1::1]/", true),
            ("http://a.test/", "http://[2002:7f00:1::]/", true), ("http://a.test/", "http://100.64.0.1/", true),
            ("http://a.test/", "http://b.test/", false), ("http://a.test/", "http://8.8.8.8/", false),
            ("http://10.0.0.1/", "http://b.test/", false),
        ])
    func noPrivate(from: String, to: String, isRefused: Bool) throws {
        var rules = rules(from) { $0.refusePrivateRedirects() }
        let result = Result { try rules.follow(status: 302, to: to, fromAddress: "10.9.9.9") }
        #expect((try? result.get()) == nil ? isRefused : !isRefused)
        guard !isRefused, from == "http://10.0.0.1/" else { return }
        #expect(throws: DownloadError.self) { try rules.checkConnected(to: "127.0.0.1", from: "10.0.0.1") }
        try rules.checkConnected(to: "1.1.1.1", from: "10.0.0.1")
    }

    @Test("a name that leads to a private address is found out when connected")
    func connected() throws {
        var rules = rules("http://a.test/") { $0.allowsPrivateRedirect = false }
        try rules.checkConnected(to: "127.0.0.1", from: nil)
        _ = try rules.follow(status: 302, to: "http://b.test/", fromAddress: "8.8.8.8")
        try rules.checkConnected(to: "1.1.1.1", from: "8.8.8.8")
        try rules.checkConnected(to: "10.0.0.1", from: "10.0.0.2")
        #expect(throws: DownloadError.self) { try rules.checkConnected(to: "10.0.0.1", from: "8.8.8.8") }
    }
}
