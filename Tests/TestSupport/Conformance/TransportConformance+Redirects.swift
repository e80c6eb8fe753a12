import FKCore
import FKMiddleware

extension TransportConformance {
    /// Redirects (RFC 9110 section 15.4): followed inside, and no secret goes along to another origin.
    static let redirects: [TransportConformance] =
        [301, 302, 303, 307, 308].map { status in
            .init("status \(status) is followed and only the last head is seen") { context in
                let server = try FaultServer()
                server.route("/a/first") { _ in .redirect(to: "../b?x=1#part", status: status, body: [9, 9]) }
                server.route("/b") { request in .ok(Array(request.target.utf8)) }
                let record = try await context.get(server.url("/a/first"))
                try context.expectSuccess(record, body: Array("/b?x=1".utf8))
                try context.equal(record.head?.redirects, 1, "redirects")
                try context.check(
                    record.head?.url.hasPrefix(server.url("/b?x=1")) == true, "URL \(record.head?.url ?? "")")
            }
        } + [
            .init("a redirect to the same origin keeps header fields") { context in
                let server = try FaultServer()
                server.route("/a") { _ in .redirect(to: "/b") }
                server.route("/b") { _ in .ok([1]) }
                let request = try Context.request(server.url("/a"), headers: Self.secrets, secret: ["x-token"])
                try context.expectSuccess(try await context.perform(request))
                let second = server.requests[1]
                for (name, value) in Self.secrets { try context.equal(second[name], value, name) }
            },
            .init("a redirect to another origin drops secrets for good, and keeps the rest") { context in
                let first = try FaultServer()
                let second = try FaultServer()
                first.route("/a") { [url = second.url("/b")] _ in .redirect(to: url) }
                second.route("/b") { [url = first.url("/c")] _ in .redirect(to: url) }
                first.route("/c") { _ in .ok([1]) }
                let url = first.url("/a").replacing("http://", with: "http://user:secret@")
                let request = try Context.request(url, headers: Self.secrets, secret: ["x-token"])
                let record = try await context.perform(request)
                try context.expectSuccess(record)
                try context.check(first.requests[0]["Authorization"] != nil, "the first request has no Authorization")
                for late in [second.requests[0], first.requests[1]] {
                    for name in ["Authorization", "Cookie", "Proxy-Authorization", "X-Token"] {
                        try context.check(late[name] == nil, "\(name) went to \(late.target)")
                    }
                    try context.equal(late["Range"], "bytes=5-", "Range")
                    try context.equal(late["X-Plain"], "plain", "X-Plain")
                }
                try context.check(record.head?.url.contains("secret") == false, "the head's URL shows the password")
            },
            .init("userinfo of the URL goes to its own origin only") { context in
                let first = try FaultServer()
                let second = try FaultServer()
                first.route("/a") { _ in .redirect(to: "/b") }
                first.route("/b") { [url = second.url("/c")] _ in .redirect(to: url) }
                second.route("/c") { _ in .ok([1]) }
                let url = first.url("/a").replacing("http://", with: "http://us%40er:pass%3Aword@")
                try context.expectSuccess(try await context.get(url))
                let basic = "Basic dXNAZXI6cGFzczp3b3Jk"  // us@er:pass:word
                try context.equal(first.requests.map { $0["Authorization"] }, [basic, basic], "Authorization")
                try context.check(second.requests[0]["Authorization"] == nil, "Authorization went to another origin")
            },
            .init("a redirect without Location and 304 are final") { context in
                let server = try FaultServer()
                server.route("/302") { _ in .status(302, body: [1, 2]) }
                server.route("/304") { _ in .redirect(to: "/elsewhere", status: 304) }
                for status in [302, 304] {
                    let record = try await context.get(server.url("/\(status)"))
                    try context.expectSuccess(record, status: status)
                }
                try context.equal(server.requests.count, 2, "requests")
            },
            .init("a circle is an error") { context in
                let server = try FaultServer()
                server.route("/a") { _ in .redirect(to: "/b") }
                server.route("/b") { _ in .redirect(to: "/a#again") }
                try context.expectFailure(try await context.get(server.url("/a")), .redirect, retryable: false)
                try context.check(server.requests.count <= 21, "\(server.requests.count) requests")
            },
            .init("as many redirects as allowed, and not one more") { context in
                let server = try FaultServer()
                server.routeOthers { request in
                    let number = Int(request.path.dropFirst()) ?? 0
                    return number == 0 ? .ok([1]) : .redirect(to: "/\(number - 1)")
                }
                try context.expectSuccess(try await context.get(server.url("/20")), body: [1])
                try context.expectFailure(try await context.get(server.url("/21")), .redirect, retryable: false)
                var options = Context.options
                options.maxRedirects = 0
                try context.expectSuccess(try await context.get(server.url("/0"), options: options), body: [1])
                try context.expectFailure(try await context.get(server.url("/1"), options: options), .redirect)
            },
            .init("other schemes and no URL at all are refused") { context in
                let server = try FaultServer()
                let targets = [
                    "ftp://127.0.0.1/a", "file:///etc/passwd", "gopher://127.0.0.1/", "javascript:alert(1)", "http://",
                    "http://127.0.0.1:99999/", "https:/\\/",
                ]
                for (number, target) in targets.enumerated() {
                    server.route("/\(number)") { _ in .redirect(to: target) }
                    let record = try await context.get(server.url("/\(number)"))
                    try context.check(record.error != nil && record.head == nil, "\(target) was not refused")
                    try context.check(record.error?.isRetryable == false, "\(target) may be retried")
                }
            },
            .init("control characters in Location are refused", needs: [.strictHeaders]) { context in
                let server = try FaultServer()
                server.route("/a") { _ in .redirect(to: "/b\u{1}c") }
                server.route("/tab") { _ in .redirect(to: "/b\tc") }
                server.route("/two") { _ in .redirect(to: "/b").adding("Location", "/c") }
                for path in ["/a", "/tab", "/two"] {
                    try context.expectFailure(
                        try await context.get(server.url(path)), .redirect, .protocolViolation, retryable: false)
                }
                try context.equal(server.requests.count, 3, "requests")
            },
            .init("blanks and bytes beyond ASCII in Location are encoded", needs: [.strictHeaders]) { context in
                let server = try FaultServer()
                server.route("/a") { _ in .redirect(to: "/b c/caf\u{e9}?q=1%2F2") }
                server.routeOthers { request in .ok(Array(request.target.utf8)) }
                let record = try await context.get(server.url("/a"))
                try context.check(
                    String(decoding: record.body, as: UTF8.self).lowercased() == "/b%20c/caf%c3%a9?q=1%2f2",
                    "target \(String(decoding: record.body, as: UTF8.self))")
            },
            .init("303 and a redirected POST become GET; 307 sends the body again") { context in
                let server = try FaultServer()
                server.routeOthers { request in
                    guard let status = Int(request.path.dropFirst()) else {
                        return .ok(
                            Array("\(request.method) \(request.body.count) \(request["Content-Type"] ?? "-")".utf8))
                    }
                    return .redirect(to: "/end", status: status)
                }
                for (status, expected) in [(303, "GET 0 -"), (302, "GET 0 -"), (307, "POST 3 text/plain")] {
                    let request = try Context.request(
                        server.url("/\(status)"), method: "POST", headers: ["Content-Type": "text/plain"],
                        body: [1, 2, 3])
                    let record = try await context.perform(request)
                    try context.equal(String(decoding: record.body, as: UTF8.self), expected, "\(status)")
                }
            },
            .init("an endless body of a redirect is not read") { context in
                let server = try FaultServer()
                server.route("/a") { _ in
                    .raw([
                        .text("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"), .sendForever(Bytes.pattern(count: 1_000)),
                    ])
                }
                server.route("/b") { _ in .ok([1]) }
                try context.expectSuccess(try await context.get(server.url("/a")), body: [1])
            },
            .init("https to http is refused unless allowed", needs: [.trustOptions]) { context in
                let server = try FaultServer()
                server.route("/a") { _ in .ok([1]) }
                let nginx = try NginxServer()
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                let url = "\(nginx.tlsBase)/redirect?to=\(server.url("/a"))"
                try context.expectFailure(try await context.get(url, options: options), .redirect, retryable: false)
                try context.equal(server.requests.count, 0, "requests over http")
                options.allowsInsecureRedirect = true
                try context.expectSuccess(try await context.get(url, options: options), body: [1])
            },
        ]

    private static let secrets: KeyValuePairs = [
        "Authorization": "Bearer secret", "Cookie": "a=secret", "X-Token": "secret", "Range": "bytes=5-",
        "X-Plain": "plain",
    ]
}
