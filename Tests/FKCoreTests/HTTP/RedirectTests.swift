import TestSupport
import Testing

/// `RedirectRules` decides; the rules themselves are tested as values.
@Suite("Redirects")
struct RedirectTests {
    private static let content = Bytes.pattern(count: 1_000)

    @Test("a redirect to the same URL is followed, and brings the cookie that it set", arguments: [1, 4])
    func sameURL(_ connections: Int) async throws {
        let content = Bytes.pattern(count: 4 << 20)
        let server = try FaultServer()
        server.route("/a") { request in
            guard let cookie = request["Cookie"], cookie.contains("seen=1") else {
                return .redirect(to: "/a").adding("Set-Cookie", "seen=1; Path=/")
            }
            return .ranged(content, for: request, etag: "\"1\"")
        }
        server.route("/other") { .ok(Array(($0["Cookie"] ?? "none").utf8)) }
        let live = try LiveBench { $0.connections = .fixed(connections) }
        let info = try await live.fetch(server.url("/a")) { $0.headers = [.init("Cookie", "mine=2")] }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == content)
        let answered = server.requests.compactMap { $0["Cookie"] }.filter { $0.contains("seen=1") }
        // In one field with the task's own.
        #expect(!answered.isEmpty && answered.allSatisfy { $0 == "seen=1; mine=2" })
        // It is the transfer's: the next task does not send it.
        #expect(try await live.fetch(server.url("/other")).state == .complete)
        #expect(try live.out("other") == Array("none".utf8))
    }

    @Test("300 with a Location is followed, and a redirect without one says so", arguments: [300, 302])
    func multipleChoices(_ status: Int) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .redirect(to: "/b", status: status) }
        server.route("/b") { _ in .ok(Self.content) }
        server.route("/c") { _ in .status(status) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a")).state == .complete)
        #expect(try live.out("a") == Self.content)
        let error = try await live.fetch(server.url("/c")).error
        #expect(error?.message == "The server answered \(status): a redirect that names no address.")
    }

    @Test("a redirect to a fragment leads to the same URL, not to the server's root", arguments: ["#x", "#", "#a/b?c"])
    func fragment(_ location: String) async throws {
        let content = Bytes.pattern(count: 1_000)
        let server = try FaultServer()
        server.route("/d/a") { request in
            request["Cookie"] == nil
                ? .redirect(to: location).adding("Set-Cookie", "seen=1; Path=/") : .ok(content)
        }
        server.routeOthers { _ in .ok([1]) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/d/a")).state == .complete)
        #expect(try live.out("a") == content)
    }

    @Test("a cookie of a redirect goes to no other host")
    func foreignCookie() async throws {
        let server = try FaultServer()
        server.route("/a") { [url = "http://localhost:\(server.port)/b"] _ in
            .redirect(to: url).adding("Set-Cookie", "seen=1; Path=/")
        }
        server.route("/b") { .ok(Array(($0["Cookie"] ?? "none").utf8)) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a")).state == .complete)
        #expect(try live.out("a") == Array("none".utf8))
    }

    @Test("a Location with a host outside ASCII leads to its IDNA form")
    func beyondASCII() async throws {
        let proxy = try FaultServer()
        proxy.routeOthers { request in
            request.target.hasPrefix("http://a.test/")
                ? .redirect(to: "http://M\u{dc}nchen.test/b") : .ok(Array(request.target.utf8))
        }
        let live = try LiveBench { $0.transport.proxy = proxy.url("") }
        #expect(try await live.fetch("http://a.test/a").state == .complete)
        #expect(try live.out("a") == Array("http://xn--mnchen-3ya.test/b".utf8))
    }

    @Test("no secret follows to another port, host or scheme, nor back again", arguments: ["port", "host", "scheme"])
    func secrets(_ other: String) async throws {
        let first = try FaultServer()
        let second = try FaultServer()
        let nginx = try NginxServer(upstream: second.port)
        let elsewhere =
            switch other {
            case "port": second.url("/b")
            case "host": "http://localhost:\(first.port)/b"
            default: "\(nginx.tlsBase)/upstream/b"
            }
        first.route("/a") { _ in .redirect(to: elsewhere) }
        for server in [first, second] {
            server.route("/b") { [url = first.url("/c")] _ in .redirect(to: url) }
            server.route("/c") { _ in .ok(Self.content) }
        }
        let live = try LiveBench {
            $0.transport.caPath = nginx.certificates.caFile
            $0.transport.allowsInsecureRedirect = true
        }
        live.downloader.middlewares.onRequest("request step", secretHeaders: ["X-Signature"]) { request, _ in
            request.setValue("canary-signature", forHTTPHeaderField: "X-Signature")
            request.setValue("Bearer canary", forHTTPHeaderField: "Authorization")
        }
        let url = first.url("/a?key=canary-query").replacing("http://", with: "http://user:canary-password@")
        let info = try await live.fetch(url) {
            $0.headers = [.init("X-Token", "canary-token"), .init("Cookie", "c=canary-cookie")]
            $0.secretHeaders = ["X-Token"]
        }
        #expect(info.state == .complete, "\(String(describing: info.error))")
        let all = first.requests + second.requests
        #expect(all.count == 3)
        for request in all {
            let text = "\(request.target) \(request.headers)"
            #expect(text.contains("canary") == (request.path == "/a"), "\(text)")
        }
    }

    @Test("the name comes from the first URL or Content-Disposition, not from the redirect")
    func name() async throws {
        let server = try FaultServer()
        server.route("/first.bin") { _ in .redirect(to: "/evil.sh?name=worse.sh") }
        server.route("/second") { _ in .redirect(to: "/named.sh") }
        server.route("/evil.sh") { _ in .ok(Self.content) }
        server.route("/named.sh") { _ in
            .ok(Self.content, headers: ["Content-Disposition": "attachment; filename=said.bin"])
        }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/first.bin")).path == live.out + "/first.bin")
        #expect(try await live.fetch(server.url("/second")).path == live.out + "/said.bin")
        #expect(live.names == ["first.bin", "said.bin"])
    }
}
