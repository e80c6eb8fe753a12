import TestSupport
import Testing

@testable import FKMiddleware

@Suite("Secrets in texts")
struct SecretBookTests {
    @Test("a value is masked wherever it stands, one inside another as one, and a short one not at all")
    func values() {
        let book = SecretBook(["p@ssw9rd", "ssw9", "abc", "tail"])
        #expect(book.mask("resolve p@ssw9rd@host (ssw9): abc") == "resolve ***@host (***): abc")
        #expect(book.mask("no p@ss") == "no p@ss" && book.mask("no p@ss", isCut: true) == "no ***")
        #expect(book.mask("tail") == "***" && book.mask("") == "")
        #expect(SecretBook(["aaaa"]).mask("aaaaaaa b") == "*** b")
        #expect(SecretBook(["\u{e9}t\u{e9}"]).mask("un \u{e9}t\u{e9}.") == "un ***.")
        let error = book.mask(
            DownloadError(.proxy, "no p@ssw9rd", url: "http://h/p@ssw9rd", underlying: "'p@ssw9rd' is bad"))
        #expect(error.message == "no ***" && error.underlying == "'***' is bad" && error.url == "http://h/***")
    }

    @Test("the time is linear in the text and in the values together")
    func linear() {
        // Each place of the text begins thousands of the values, and ends none.
        let many = Set((1...300).map { String(repeating: "a", count: $0 + 3) + "b" })
        let text = String(repeating: "a", count: 100_000)
        let began = ContinuousClock.now
        #expect(SecretBook(many).mask(text) == text)
        #expect(ContinuousClock.now - began < .seconds(120), "each value by itself takes longer")
    }

    @Test(
        "the secrets of a login, a header field, a proxy and a URL",
        arguments: [
            (SecretBook.values(ofLogin: "me:p%40ssword"), ["p%40ssword", "p@ssword", "bWU6cEBzc3dvcmQ="]),
            (SecretBook.values(ofLogin: "ghp_token"), ["ghp_token"]),
            (SecretBook.values(ofField: "Basic bWU6cEBzc3dvcmQ="), ["p@ssword", "Basic bWU6cEBzc3dvcmQ="]),
            (SecretBook.values(ofField: "a=first; b=second"), ["first", "second"]),
            (SecretBook.values(ofProxy: "http://name:p@ssw9rd@127.0.0.1:9"), ["p@ssw9rd"]),
            (SecretBook.values(ofURL: "http://u:w#or/d@h/?sig=12345678&x=abcdefgh"), ["w#or/d"]),
            (SecretBook.values(ofURL: "http://h/?sig=12345678&x=abcdefgh"), ["12345678"]),
        ])
    func secrets(found: Set<String>, wanted: [String]) {
        #expect(found.isSuperset(of: wanted))
        #expect(found.isDisjoint(with: ["me", "name", "abcdefgh", "Basic", "basic"]))
    }

    @Test(
        "a login is masked, whatever it has written raw, and with no scheme before it",
        arguments: [
            ("http://user:pa#ss@host/f", "http://***@host/f"), ("http://user:pa/ss@host/f", "http://***@host/f"),
            ("http://user:pa?ss@host/f", "http://***@host/f"),
            ("http://user:12/34@host.test/f", "http://***@host.test/f"),
            ("http://user:1#2@127.0.0.1/", "http://***@127.0.0.1/"), ("http://to/ken@h.test/f", "http://***@h.test/f"),
            ("http://u:p@x/y@host/f", "http://***@x/y@host/f"), ("u:p@host/f?a=b", "***@host/f?a=b"),
            ("u:p/w#x@host", "***@host"), ("//u:p@host/f", "//***@host/f"),
            ("u:p@host/?u=http://h/", "***@host/?u=http://h/"),
            ("HTTPS://U:P@H/?key=12", "HTTPS://***@H/?key=***"),
            // A raw `@` and another raw delimiter.
            ("http://me:c@/d#SE@127.0.0.1:9/f", "http://***@127.0.0.1:9/f"),
            ("sftp://me:c@d#SE@host.test/f", "sftp://***@host.test/f"), ("http://u:p@/w@h", "http://***@h"),
            ("http://u:p@h.test/f@b.test", "http://***@h.test/f@b.test"),
            ("http://u:p@localhost:8/f@b.test", "http://***@localhost:8/f@b.test"),
            ("http://token@h/f@b.test", "http://***@h/f@b.test"),
            ("http://u:p@[::1]/@b.test", "http://***@[::1]/@b.test"),
            // These have none.
            ("http://localhost:8080/@scope/p", "http://localhost:8080/@scope/p"),
            ("http://registry:4873/@types/node", "http://registry:4873/@types/node"),
            ("http://h:80/p@1.2.3", "http://h:80/p@1.2.3"), ("https://h.test/a@b.test", "https://h.test/a@b.test"),
            ("dir/pkg@1.0/list.txt", "dir/pkg@1.0/list.txt"), ("a/b:c@d", "a/b:c@d"), ("list@2x.txt", "list@2x.txt"),
            ("http://[::1]/a@b.test", "http://[::1]/a@b.test"),
        ])
    func logins(text: String, masked: String) {
        #expect(text.masked == masked)
    }

    @Test("a credential of no host goes to the task's own origin, one of a host to that host")
    func credentials() async throws {
        let (own, mirror) = ("http://own.test/a", "http://mirror.test/a")
        let keys = AWSCredentials(accessKeyID: "A", secretAccessKey: "B", sessionToken: "canary")
        let all: [any RequestMiddleware] = [
            BearerTokenMiddleware { _ in "canary" }, try AWSSignatureMiddleware { _ in keys },
            try HeadersMiddleware([HeaderField("X-Key", "canary"), HeaderField("X-Open", "o")], secret: ["x-key"]),
        ]
        let scopes: [(MiddlewareScope, Bool)] = [(.all, false), (.barrel("b"), false), (.host("mirror.test"), true)]
        for middleware in all {
            for (scope, others) in scopes {
                let chains = MiddlewareChains()
                chains.register(request: middleware, for: scope)
                let id = try #require(TaskID(hex: String(repeating: "ab", count: 32)))
                let task = TaskContext(id: id, originalURL: try address(own), barrels: ["b"])
                for (url, isSent) in [(own, true), (mirror, others)] {
                    var request = URLRequest(url: try address(url))
                    let chain = chains.request.ordered(for: task, url: url)
                    for step in chain { request = try await step.process(request, for: task) }
                    let text = "\(request.allHTTPHeaderFields ?? [:])"
                    #expect(text.contains("canary") == (isSent && !chain.isEmpty), "\(middleware.name) \(url)")
                    if middleware is HeadersMiddleware, !chain.isEmpty { #expect(text.contains("X-Open")) }
                }
            }
        }
    }
}
