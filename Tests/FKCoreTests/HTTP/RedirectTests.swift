import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore
@testable import FKModel
@testable import FKTransport

/// Rows 31 to 38, with real servers. `RedirectRules` decides; the rules themselves are tested as values.
@Suite("Faults: redirects", .timeLimit(.minutes(10)))
struct FaultRedirectTests {
    private static let content = Bytes.pattern(count: 1_000)

    private func expectRefused(_ info: DownloadInfo, _ live: LiveBench, _ words: String) {
        #expect(info.state == .error && info.error?.code == .redirect, "\(String(describing: info.error))")
        #expect(info.error?.message.contains(words) == true, "\(info.error?.message ?? "")")
        #expect(live.names == [] && info.attempts == 1)
    }

    @Test("fault 31: a circle of redirects, and more than 20 of them", arguments: ["/circle", "/long"])
    func endless(_ path: String) async throws {
        let server = try FaultServer()
        server.route("/circle") { _ in .redirect(to: "/back") }
        server.route("/back") { _ in .redirect(to: "/circle") }
        server.routeOthers { .redirect(to: $0.path + "x") }
        let live = try LiveBench()
        let info = try await live.fetch(server.url(path))
        expectRefused(info, live, "20")
        #expect(server.requests.count == 21)
        await live.downloader.close()
    }

    @Test("fault 105: a redirect to the same URL is followed, and brings the cookie that it set", arguments: [1, 4])
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
        await live.downloader.close()
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
        await live.downloader.close()
    }

    @Test("fault 105: a cookie of a redirect goes to no other host")
    func foreignCookie() async throws {
        let server = try FaultServer()
        server.route("/a") { [url = "http://localhost:\(server.port)/b"] _ in
            .redirect(to: url).adding("Set-Cookie", "seen=1; Path=/")
        }
        server.route("/b") { .ok(Array(($0["Cookie"] ?? "none").utf8)) }
        let live = try LiveBench()
        #expect(try await live.fetch(server.url("/a")).state == .complete)
        #expect(try live.out("a") == Array("none".utf8))
        await live.downloader.close()
    }

    @Test(
        "fault 103: the body of a redirect without an end is not waited for",
        arguments: ["Content-Length: 9999", "X-A: 1", "Transfer-Encoding: chunked"], [TransportKind.curl, .urlSession])
    func endlessBody(_ field: String, _ kind: TransportKind) async throws {
        let gate = Gate()
        let server = try FaultServer()
        let body = field.hasPrefix("Transfer") ? "5\r\nthere\r\n" : "there"
        server.route("/a") { _ in
            .raw([.text("HTTP/1.1 302 Found\r\nLocation: /b\r\n\(field)\r\n\r\n\(body)"), .stall(gate)])
        }
        server.route("/b") { _ in .ok(Self.content) }
        let live = try LiveBench {
            $0.transport.stallTimeout = .seconds(3_600)
            $0.transportKind = kind
            if kind == .urlSession { $0.transport.proxy = nil }
        }
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(try live.out("a") == Self.content)
        await live.downloader.close()
    }

    @Test("fault 108: a Location with a host outside ASCII leads to its IDNA form")
    func beyondASCII() async throws {
        let proxy = try FaultServer()
        proxy.routeOthers { request in
            request.target.hasPrefix("http://a.test/")
                ? .redirect(to: "http://M\u{dc}nchen.test/b") : .ok(Array(request.target.utf8))
        }
        let live = try LiveBench { $0.transport.proxy = proxy.url("") }
        #expect(try await live.fetch("http://a.test/a").state == .complete)
        #expect(try live.out("a") == Array("http://xn--mnchen-3ya.test/b".utf8))
        await live.downloader.close()
    }

    @Test(
        "fault 32: no secret follows to another port, host or scheme, nor back again",
        arguments: ["port", "host", "scheme"])
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
            $0.transport.caFile = nginx.certificates.caFile
            $0.transport.allowsInsecureRedirect = true
        }
        live.downloader.middlewares.register(
            request: RequestStep(secretHeaders: ["X-Signature"]) { request, _ in
                var request = request
                request.setValue("canary-signature", forHTTPHeaderField: "X-Signature")
                request.setValue("Bearer canary", forHTTPHeaderField: "Authorization")
                return request
            })
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
        await live.downloader.close()
    }

    @Test("fault 33: https is never given up for http unasked", arguments: [false, true])
    func downgrade(_ isAllowed: Bool) async throws {
        let plain = try FaultServer()
        plain.route("/b") { _ in .ok(Self.content) }
        let nginx = try NginxServer()
        let live = try LiveBench {
            $0.transport.caFile = nginx.certificates.caFile
            $0.transport.allowsInsecureRedirect = isAllowed
        }
        let info = try await live.fetch("\(nginx.tlsBase)/redirect?to=\(plain.url("/b"))")
        if isAllowed {
            #expect(info.state == .complete)
        } else {
            expectRefused(info, live, "encryption")
        }
        #expect(plain.requests.count == (isAllowed ? 1 : 0))
        await live.downloader.close()
    }

    @Test(
        "fault 34: only http and https are followed",
        arguments: [
            "file:///etc/passwd", "ftp://127.0.0.1/a", "sftp://127.0.0.1/a", "gopher://127.0.0.1/", "scp://127.0.0.1/a",
            "dict://127.0.0.1/a", "data:text/plain,a", "javascript:alert(1)", "FILE:///etc/passwd",
        ])
    func scheme(_ target: String) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .redirect(to: target) }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a"))
        #expect(info.state == .error && live.names == [], "\(String(describing: info.error))")
        #expect(info.error?.code == .redirect && info.attempts == 1)
        #expect(server.requests.count == 1)
        await live.downloader.close()
    }

    @Test(
        "fault 34: nor is anything else a task",
        arguments: ["ftp://h/a", "sftp://h/a", "file:///etc/passwd", "gopher://h/", "ldap://h/", "smb://h/a"])
    func taskScheme(_ url: String) async throws {
        let live = try LiveBench()
        let error = await #expect(throws: DownloadError.self) { try await live.add(url) }
        #expect(error?.code == .unsupportedScheme || error?.code == .invalidURL)
        await live.downloader.close()
    }

    @Test(
        "fault 35: control characters in Location are refused",
        arguments: ["/b\u{1b}[2J", "/b\u{1}c", "/b\tc", "/b\u{7f}"])
    func control(_ location: String) async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .redirect(to: location) }
        server.routeOthers { _ in .ok(Self.content) }
        let live = try LiveBench()
        let info = try await live.fetch(server.url("/a"))
        #expect([.redirect, .protocolViolation].contains(info.error?.code), "\(String(describing: info.error))")
        #expect(server.requests.count == 1 && live.names == [])
        #expect(info.error?.description.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{7f}" } == false)
        await live.downloader.close()
    }

    @Test("fault 38: the name comes from the first URL or Content-Disposition, not from the redirect")
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
        await live.downloader.close()
    }
}
