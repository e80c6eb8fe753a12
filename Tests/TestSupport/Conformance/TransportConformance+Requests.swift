import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension TransportConformance {
    /// What goes out.
    static let requests: [TransportConformance] = [
        .init("a request carries its fields, asks for identity and names the client") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            let request = try Context.request(
                server.url("/a?b=%2Fc&d=e%20f"), headers: ["X-A": "1", "Range": "bytes=3-", "If-Range": "\"x\""])
            try context.expectSuccess(try await context.perform(request))
            let seen = server.requests[0]
            try context.equal(seen.target, "/a?b=%2Fc&d=e%20f", "target")
            try context.equal(seen["X-A"], "1", "X-A")
            try context.equal(seen["Range"], "bytes=3-", "Range")
            try context.equal(seen["If-Range"], "\"x\"", "If-Range")
            try context.equal(seen["Accept-Encoding"], "identity", "Accept-Encoding")
            try context.check(seen["User-Agent"]?.hasPrefix("fk/") == true, "User-Agent \(seen["User-Agent"] ?? "")")
            try context.check(seen["Cookie"] == nil, "a cookie was sent")
        },
        .init("the request's own User-Agent wins over the options', and those over the default") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            var options = Context.options
            options.userAgent = "Options/1"
            try context.expectSuccess(try await context.get(server.url("/a"), options: options))
            _ = try await context.perform(
                try Context.request(server.url("/a"), headers: ["User-Agent": "Own/1"], options: options))
            try context.equal(server.requests.map { $0["User-Agent"] }, ["Options/1", "Own/1"], "User-Agent")
        },
        .init("cookies that a server sets are not sent back") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1], headers: ["Set-Cookie": "a=b; Path=/"]) }
            for _ in 0..<2 { try context.expectSuccess(try await context.get(server.url("/a"))) }
            try context.check(server.requests[1]["Cookie"] == nil, "a cookie was sent")
        },
        .init("other methods and a body") { context in
            let server = try FaultServer()
            server.route("/a") { request in .ok(Array(request.method.utf8) + request.body) }
            for method in ["POST", "PUT", "DELETE", "REPORT"] {
                let body: [UInt8]? = method == "DELETE" ? nil : [1, 2, 3]
                let record = try await context.perform(
                    try Context.request(server.url("/a"), method: method, body: body))
                try context.expectSuccess(record, body: Array(method.utf8) + (body ?? []))
            }
        },
        .init("CR, LF and NUL in a header field are refused") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            for (name, value) in [
                ("X-A", "1\r\nX-B: 2"), ("X-A", "1\nX-B: 2"), ("X-A", "1\u{0}"), ("X A", "1"), ("X-A\r\nX-B", "1"),
            ] {
                var request = try Context.request(server.url("/a"))
                request.urlRequest.addValue(value, forHTTPHeaderField: name)
                let kept = request.urlRequest.allHTTPHeaderFields ?? [:]
                guard kept[name] == value else { continue }  // Foundation has refused it already
                try context.expectFailure(try await context.perform(request), .invalidArgument, retryable: false)
            }
            try context.equal(server.requests.count, 0, "requests")
        },
        .init("URLs that cannot be used are refused") { context in
            for url in ["ftp://127.0.0.1/a", "file:///etc/passwd", "/relative", "http:///nohost"] {
                let record = try await context.get(url)
                try context.expectFailure(record, .invalidURL, .unsupportedScheme, retryable: false)
            }
        },
        .init("a proxy is asked with the absolute URL", needs: [.proxyOption]) { context in
            let proxy = try FaultServer()
            proxy.routeOthers { request in .ok(Array(request.target.utf8)) }
            var options = Context.options
            options.proxy = "http://127.0.0.1:\(proxy.port)"
            let record = try await context.get("http://host.invalid/a?b=c", options: options)
            try context.expectSuccess(record, body: Array("http://host.invalid/a?b=c".utf8))
        },
        .init("a proxy's refusal of a tunnel is its own error", needs: [.proxyOption]) { context in
            for (status, retryable) in [(403, false), (407, false), (502, true)] {
                let proxy = try FaultServer()
                proxy.routeOthers { _ in
                    .status(status, headers: ["Proxy-Authenticate": "Basic realm=x"]).adding("X-A", "1")
                }
                var options = Context.options
                options.proxy = "http://user:secret@127.0.0.1:\(proxy.port)"
                let record = try await context.get("https://host.invalid/", options: options)
                try context.expectFailure(record, .proxy, retryable: retryable)
                try context.check(record.head == nil, "the proxy's head was delivered")
                try context.equal(proxy.requests[0].method, "CONNECT", "method")
            }
        },
    ]

    /// Time-outs and servers that are not there.
    static let failures: [TransportConformance] = [
        .init("connection refused") { context in
            let record = try await context.get("http://127.0.0.1:\(try Socket.freePort())/?key=secret")
            try context.expectFailure(record, .connect, retryable: true)
            try context.check(record.error?.url?.contains("key=***") == true, "URL \(record.error?.url ?? "none")")
        },
        .init("a name that does not exist") { context in
            try context.expectFailure(
                try await context.get("http://does-not-exist.invalid/"), .nameLookup, retryable: true)
        },
        .init("a server that says nothing is a stall") { context in
            try await stall(context) { .raw([.stall($0)]) }
        },
        .init("a server that stops in the head is a stall") { context in
            try await stall(context) { .raw([.text("HTTP/1.1 200 OK\r\nX-A: 1\r\n"), .stall($0)]) }
        },
        .init("a server that stops in the body is a stall") { context in
            try await stall(context) { .ok([1, 2, 3]).stalling(at: 2, until: $0) }
        },
        .init("a body that only drips is a stall, unless no rate is asked for") { context in
            let server = try FaultServer()
            // Longer than the time after which the other one is given up.
            for (path, count) in [("/patient", 25), ("/a", 600)] {
                server.route(path) { _ in
                    .raw([
                        .text("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n"),
                        .drip([1], times: count, every: 0.1),
                    ])
                }
            }
            var patient = Context.options
            patient.stallTimeout = .seconds(30)
            patient.stallRate = 0
            var options = Context.options
            options.stallTimeout = .seconds(2)
            options.stallRate = 1_000
            async let whole = context.get(server.url("/patient"), options: patient)
            let record = try await context.get(server.url("/a"), options: options)
            try context.expectFailure(record, .timeout, retryable: true)
            try context.check(
                record.error?.message.contains("hardly anything") == true, "\(record.error?.message ?? "")")
            try context.expectSuccess(try await whole, body: [UInt8](repeating: 1, count: 25))
        },
        .init("a redirect whose body stalls is followed") { context in
            let server = try FaultServer()
            let gate = Gate()
            server.route("/a") { _ in .redirect(to: "/b", body: [1, 2, 3]).stalling(at: 2, until: gate) }
            server.route("/b") { _ in .ok([1]) }
            var options = Context.options
            options.stallTimeout = .seconds(1)
            try context.expectSuccess(try await context.get(server.url("/a"), options: options), body: [1])
        },
        .init("the body of an error or a redirect that drips in is cut after a second") { context in
            let server = try FaultServer()
            let drips = FaultResponse.Step.drip([1], times: 120, every: 0.25)
            server.route("/error") { _ in .raw([.text("HTTP/1.1 404 Not Found\r\n\r\n"), drips]) }
            server.route("/redirect") { _ in .raw([.text("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n"), drips]) }
            server.route("/b") { _ in .ok([1]) }
            var patient = Context.options
            patient.stallTimeout = .seconds(3_600)
            let options = patient
            async let redirected = context.get(server.url("/redirect"), options: options)
            let record = try await context.get(server.url("/error"), options: options)
            try context.expectFailure(record, .timeout, retryable: true)
            try context.expectSuccess(try await redirected, body: [1])
            for path in ["/error", "/redirect"] {
                try context.check(server.requests(path)[0].end != .completed, "\(path): read to its end")
            }
        },
    ]

    private static func stall(_ context: Context, _ response: @escaping @Sendable (Gate) -> FaultResponse) async throws
    {
        let server = try FaultServer()
        let gate = Gate()
        server.route("/a") { _ in response(gate) }
        var options = Context.options
        options.stallTimeout = .seconds(1)
        let start = ContinuousClock.now
        let record = try await context.get(server.url("/a"), options: options)
        let time = ContinuousClock.now - start
        try context.expectFailure(record, .timeout, retryable: true)
        try context.check(time >= .milliseconds(900), "after \(time)")
        await server.wait { $0.first?.end == .clientClosed }
    }
}
