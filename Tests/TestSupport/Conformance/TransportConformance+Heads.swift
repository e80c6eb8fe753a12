import FKCore
import FKMiddleware

extension TransportConformance {
    /// Heads that must be understood, and heads that must be refused.
    static let heads: [TransportConformance] =
        accepted.map { name, head, check in
            .init("head: \(name)", needs: [.strictHeaders]) { context in
                let server = try FaultServer()
                server.route("/a") { _ in
                    .raw([.send(Array(head.unicodeScalars.map { UInt8($0.value) })), .text("abc"), .close])
                }
                let record = try await context.get(server.url("/a"))
                guard let head = record.head, record.summary != nil else {
                    throw Failure(description: "refused: \(String(describing: record.error))")
                }
                try context.check(record.body == Array("abc".utf8), "body is \(record.body)")
                try context.check(check(head), "head is \(head)")
            }
        }
        + refused.map { name, head in
            .init("head refused: \(name)", needs: [.strictHeaders]) { context in
                let server = try FaultServer()
                server.route("/a") { _ in
                    .raw([.send(Array(head.unicodeScalars.map { UInt8($0.value) })), .text("abc"), .close])
                }
                let record = try await context.get(server.url("/a"))
                try context.expectFailure(record, .protocolViolation, retryable: false)
                try context.check(record.head == nil, "the head was delivered")
            }
        } + [
            .init("head cut by the end of the connection", needs: [.strictHeaders]) { context in
                let server = try FaultServer()
                server.route("/none") { _ in .raw([.close]) }
                server.route("/half") { _ in .raw("HTTP/1.1 200 OK\r\nContent-Le") }
                server.route("/line") { _ in .raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n") }
                server.route("/reset") { _ in .raw([.reset]) }
                for path in ["/none", "/half", "/line", "/reset"] {
                    let record = try await context.get(server.url(path))
                    try context.expectFailure(record, .connectionLost, .incompleteBody, retryable: true)
                    try context.check(record.head == nil, "\(path): a head was delivered")
                }
            },
            .init("header floods are capped in bytes and lines", needs: [.headerCaps]) { context in
                let server = try FaultServer()
                let long = String(repeating: "x", count: 1_000)
                server.route("/bytes") { _ in
                    .raw([.text("HTTP/1.1 200 OK\r\n"), .sendForever(Array("X-A: \(long)\r\n".utf8))])
                }
                server.route("/lines") { _ in
                    .raw([.text("HTTP/1.1 200 OK\r\n"), .sendForever(Array("X-A: 1\r\n".utf8))])
                }
                server.route("/one") { _ in .raw([.text("HTTP/1.1 200 OK\r\nX-A: "), .sendForever(Array(long.utf8))]) }
                server.route("/interim") { _ in .raw([.sendForever(Array("HTTP/1.1 103 Early\r\nX-A: 1\r\n\r\n".utf8))])
                }
                server.route("/trailer") { _ in
                    .raw([
                        .text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"),
                        .sendForever(Array("X-A: \(long)\r\n".utf8)),
                    ])
                }
                server.route("/field") { _ in
                    .raw([
                        .text("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-A: "),
                        .sendForever(Array(long.utf8)),
                    ])
                }
                for path in ["/bytes", "/lines", "/one", "/interim", "/trailer", "/field"] {
                    let record = try await context.get(server.url(path))
                    try context.expectFailure(record, .protocolViolation, retryable: false)
                    try context.check(server.requests(path)[0].bytesSent < 8 << 20, "read on and on")
                }
                var options = Context.options
                options.maxHeaderBytes = 200
                server.route("/small") { _ in .ok([1]).adding("X-A", String(long.prefix(300))) }
                try context.expectFailure(
                    try await context.get(server.url("/small"), options: options), .protocolViolation, retryable: false)
                try context.expectSuccess(try await context.get(server.url("/small")), body: [1])
            },
        ]

    private static let accepted: [(String, String, @Sendable (ResponseHead) -> Bool)] = [
        (
            "interim responses are dropped",
            "HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            { $0.status == 200 && $0["X-A"] == nil && $0["Link"] == nil }
        ),
        ("HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n", { $0.httpVersion == "1.0" }),
        ("no reason phrase", "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n", { $0.status == 200 }),
        ("lines that end with LF alone", "HTTP/1.1 200 OK\nX-A: 1\nContent-Length: 3\n\n", { $0["X-A"] == "1" }),
        (
            "a repeated field keeps its order", "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\n\r\n",
            { $0.values(of: "X-A") == ["1", "2"] && $0["x-A"] == "1, 2" && $0.fields[1].name == "x-a" }
        ),
        (
            "blanks around a value", "HTTP/1.1 200 OK\r\nX-A: \t 1 2 \t\r\nX-B:3\r\nContent-Length: 3\r\n\r\n",
            { $0["X-A"] == "1 2" && $0["X-B"] == "3" }
        ),
        ("an empty value", "HTTP/1.1 200 OK\r\nX-A:\r\nContent-Length: 3\r\n\r\n", { $0["X-A"]?.isEmpty == true }),
        (
            "a value of blanks only", "HTTP/1.1 200 OK\r\nX-A: \t \r\nContent-Length: 3\r\n\r\n",
            { $0["X-A"]?.isEmpty == true }
        ),
        ("a folded line", "HTTP/1.1 200 OK\r\nX-A: 1\r\n \t 2\r\nContent-Length: 3\r\n\r\n", { $0["X-A"] == "1 2" }),
        (
            "bytes that are not UTF-8 are Latin-1", "HTTP/1.1 200 OK\r\nX-A: caf\u{e9}\r\nContent-Length: 3\r\n\r\n",
            { $0["X-A"] == "caf\u{e9}" }
        ),
        (
            "UTF-8 bytes are UTF-8", "HTTP/1.1 200 OK\r\nX-A: caf\u{c3}\u{a9}\r\nContent-Length: 3\r\n\r\n",
            { $0["X-A"] == "caf\u{e9}" }
        ),
        (
            "equal lengths twice", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            { $0.status == 200 }
        ),
    ]

    private static let refused: [(String, String)] = [
        ("contradicting lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n"),
        ("contradicting lengths in one field", "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\n"),
        ("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n"),
        ("a length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n"),
        ("an overflowing length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
        ("a length that is no number", "HTTP/1.1 200 OK\r\nContent-Length: three\r\n\r\n"),
        ("an empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n"),
        ("a NUL", "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 3\r\n\r\n"),
        ("a bare CR", "HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 3\r\n\r\n"),
        ("no colon", "HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 3\r\n\r\n"),
        ("no name", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 3\r\n\r\n"),
        ("a blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\n"),
        ("not HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n"),
        ("a status that is no number", "HTTP/1.1 OK\r\n\r\n"),
        ("a switch of protocols", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
    ]
}
