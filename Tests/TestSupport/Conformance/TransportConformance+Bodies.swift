import FKCore
import FKMiddleware

extension TransportConformance {
    /// Where a body ends, and how that can go wrong (RFC 9112 sections 6 to 8).
    static let bodies: [TransportConformance] =
        [200, 201, 206, 400, 401, 403, 404, 407, 410, 416, 429, 500, 503].map { status in
            .init("status \(status) comes with head and body") { context in
                let server = try FaultServer()
                let authenticate: KeyValuePairs = [
                    "WWW-Authenticate": "Basic realm=\"x\"", "Proxy-Authenticate": "Basic",
                ]
                server.route("/a") { _ in .status(status, body: [1, 2, 3], headers: authenticate) }
                let record = try await context.get(server.url("/a"))
                try context.expectSuccess(record, body: [1, 2, 3], status: status)
                try context.equal(server.requests.count, 1, "requests")
            }
        } + [
            .init("204, 304 and HEAD have no body, whatever the fields say") { context in
                let server = try FaultServer()
                server.route("/204") { _ in .status(204).adding("Content-Length", "5") }
                server.route("/304") { _ in .status(304).adding("Content-Length", "5") }
                server.route("/head") { _ in .ok([1, 2, 3]) }
                for status in [204, 304] {
                    let record = try await context.get(server.url("/\(status)"))
                    try context.expectSuccess(record, body: [], status: status)
                }
                let record = try await context.perform(try Context.request(server.url("/head"), method: "HEAD"))
                try context.expectSuccess(record, body: [])
                try context.equal(record.head?["Content-Length"], "3", "Content-Length")
            },
            .init("an empty 200 is a success of no bytes") { context in
                let server = try FaultServer()
                server.route("/a") { _ in .ok([]) }
                server.route("/chunked") { _ in .chunked([]) }
                server.route("/close") { _ in .untilClose([]) }
                try context.expectSuccess(try await context.get(server.url("/a")), body: [])
                try context.expectSuccess(try await context.get(server.url("/chunked")), body: [])
                try context.expectSuccess(try await context.get(server.url("/close")), body: [], verified: false)
            },
            .init("chunked, with extensions and trailer fields") { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 200_000)
                server.route("/plain") { _ in .chunked(body, size: 777) }
                server.route("/odd") { _ in
                    .raw([
                        .text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n"),
                        .text("3;name=value\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n"),
                    ])
                }
                try context.expectSuccess(try await context.get(server.url("/plain")), body: body)
                let record = try await context.get(server.url("/odd"))
                try context.expectSuccess(record, body: Array("abc".utf8))
                try context.check(record.head?["X-Trailer"] == nil, "a trailer field is in the head")
                try context.check(record.head?["Content-Length"] == nil, "an overridden Content-Length is in the head")
                try context.equal(server.connections, 1, "connections")
            },
            .init("no length: complete, but not verified") { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 70_000)
                server.route("/a") { _ in .untilClose(body) }
                try context.expectSuccess(try await context.get(server.url("/a")), body: body, verified: false)
            },
            .init("a body shorter than its length is incomplete") { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 70_000)
                server.route("/a") { _ in .ok(body).cut(at: 65_537) }
                let record = try await context.get(server.url("/a"))
                try context.expectFailure(record, .incompleteBody, .connectionLost, retryable: true)
                try context.check(record.body == Array(body[..<65_537]), "the bytes before the cut were not delivered")
            },
            .init("a chunked body without its last chunk is incomplete") { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 10_000)
                server.route("/a") { _ in .chunked(body).withoutLastChunk() }
                server.route("/b") { _ in .chunked(body).cut(at: 5_000) }
                for path in ["/a", "/b"] {
                    let record = try await context.get(server.url(path))
                    try context.expectFailure(record, .incompleteBody, .connectionLost, retryable: true)
                }
            },
            .init("malformed chunks are an error") { context in
                let server = try FaultServer()
                server.route("/a") { _ in .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n") }
                let record = try await context.get(server.url("/a"))
                try context.expectFailure(record, .protocolViolation, .connectionLost, .incompleteBody)
            },
            .init("a reset in the body loses the connection, also without a length") { context in
                let server = try FaultServer()
                let gate = Gate()
                let body = Bytes.pattern(count: 10_000)
                server.route("/length") { _ in .ok(body).stalling(at: 5_000, until: gate).cut(at: 5_000, .reset) }
                server.route("/close") { _ in .untilClose(body).stalling(at: 5_000, until: gate).cut(at: 5_000, .reset)
                }
                for path in ["/length", "/close"] {
                    let handler = RecordingHandler()
                    _ = context.transport.start(try Context.request(server.url(path)), handler: handler)
                    _ = await handler.record.wait { $0.bodyBytes == 5_000 }
                    gate.open()
                    let record = try await context.end(of: handler)
                    try context.expectFailure(record, .connectionLost, .incompleteBody, retryable: true)
                }
            },
            .init("more bytes than the length are dropped with the connection") { context in
                let server = try FaultServer()
                server.route("/a") { _ in .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcEXCESS")]) }
                for _ in 0..<2 {
                    try context.expectSuccess(try await context.get(server.url("/a")), body: Array("abc".utf8))
                }
                try context.equal(server.connections, 2, "connections")
            },
            .init("content coding is left as it is") { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 3_000)
                server.route("/a") { _ in .ok(body, headers: ["Content-Encoding": "gzip"]) }
                let record = try await context.get(server.url("/a"))
                try context.expectSuccess(record, body: body)
                try context.equal(record.head?["Content-Encoding"], "gzip", "Content-Encoding")
            },
        ]
}
