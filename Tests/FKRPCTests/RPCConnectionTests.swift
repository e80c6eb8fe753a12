import FKCore
import FKRPC
import TestSupport
import Testing

@Suite("RPC clients and servers that behave badly")
struct RPCConnectionTests {
    private static let version = #"{"id":1,"method":"aria2.getVersion"}"#

    @Test("a WebSocket has calls, notifications, batches and parts of messages") func webSocket() async throws {
        let server = try await RPCProcess()
        try await offPool {
            let client = try RawClient(port: server.port)
            #expect(client.upgrade().hasPrefix("HTTP/1.1 101"))
            client.sendMessage(Self.version)
            #expect(client.receiveMessage()?.contains(#""version":"\#(FKCore.Version.text)""#) == true)
            let bytes = Array(Self.version.utf8)
            client.send(RawClient.frame(Array(bytes.prefix(5)), isLast: false))
            client.send(RawClient.frame(Array(bytes.dropFirst(5)), opcode: 0))
            #expect(client.receiveMessage()?.contains("version") == true)
            client.sendMessage("[\(Self.version),\(Self.version)]")
            #expect(JSON(parsing: Array((client.receiveMessage() ?? "").utf8))?.array?.count == 2)
            client.sendMessage("{")
            #expect(client.receiveMessage()?.contains("-32700") == true)
            client.sendMessage(
                #"{"id":2,"method":"aria2.addUri","params":[["http://127.0.0.1:1/a"],{"max-tries":"1"}]}"#)
            var seen: [String] = []
            while !seen.contains(where: { $0.contains("onDownloadError") }), let message = client.receiveMessage() {
                seen.append(message)
            }
            #expect(seen.first?.contains("\"id\":2") == true, "the answer, which names the gid, comes first: \(seen)")
            #expect(
                seen.contains { $0.contains("aria2.onDownloadStart") }
                    && seen.contains { $0.contains("onDownloadError") })
            // Long lists come in several frames.
            let calls = Array(repeating: #"{"methodName":"aria2.getGlobalOption"}"#, count: 100).joined(separator: ",")
            client.sendMessage(#"{"id":3,"method":"system.multicall","params":[[\#(calls)]]}"#)
            var answer: JSON?
            while answer?["id"] != 3, let message = client.receiveMessage() {
                answer = JSON(parsing: Array(message.utf8))
            }
            #expect(answer?["result"]?.array?.count == 100)
        }
        try await server.end()
    }

    @Test("bad WebSockets and half requests end or wait, and others are served") func badClients() async throws {
        let server = try await RPCProcess()
        let kept = try await offPool {
            var kept: [RawClient] = []
            let large = try RawClient(port: server.port)
            _ = large.upgrade()
            large.send(RawClient.frame([UInt8](repeating: 0x20, count: (2 << 20) + 1)))
            #expect(large.receiveMessage() == nil)
            let unmasked = try RawClient(port: server.port)
            _ = unmasked.upgrade()
            unmasked.send([0x81, 0x02, 0x7b, 0x7d])
            _ = unmasked.receiveMessage()
            let garbage = try RawClient(port: server.port)
            garbage.send([UInt8](repeating: 0xff, count: 100_000))
            _ = try? garbage.receiveAll()
            for text in ["GET", "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"] {
                let half = try RawClient(port: server.port)
                half.send(text)
                kept.append(half)
            }
            let frame = try RawClient(port: server.port)
            _ = frame.upgrade()
            frame.send([0x81, 0xfe, 0x10])
            kept.append(frame)
            return kept
        }
        #expect(try await server.call("aria2.getVersion")["version"] != nil)
        #expect(kept.count == 3)
        try await server.end()
    }

    @Test("requests in one packet are answered in their order, and nobody else waits") func pipelined() async throws {
        let server = try await RPCProcess()
        let get = "GET /page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        let head = "POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(Self.version.utf8.count)\r\n"
        let last = "\(head)Connection: close\r\n\r\n\(Self.version)"
        let post = "\(head)\r\n\(Self.version)"
        for (text, count) in [(get + last, 2), (post + last, 2), (post + get + post + last, 4), (last + "x", 1)] {
            let answer = try await offPool {
                let client = try RawClient(port: server.port)
                client.send(text)
                return try client.receiveAll()
            }
            #expect(answer.components(separatedBy: "HTTP/1.1 200").count == count + 1, "\(answer.prefix(300))")
        }
        // The head of a request without its body.
        let half = try await offPool {
            let client = try RawClient(port: server.port)
            client.send(post + head + "\r\n{")
            return client
        }
        #expect(try await server.call("aria2.getVersion")["version"] != nil)
        withExtendedLifetime(half) {}
        try await server.end()
    }

    @Test("a thousand idle connections leave room for others") func idleConnections() async throws {
        let server = try await RPCProcess()
        let clients = try await offPool { try (0..<1_000).map { _ in try RawClient(port: server.port) } }
        #expect(try await server.call("aria2.getVersion")["version"] != nil)
        #expect(clients.count == 1_000)
        try await server.end()
    }

    @Test("clients without a request leave descriptors to downloads") func descriptors() async throws {
        let server = try await RPCProcess(descriptors: 64)
        let files = try FaultServer()
        files.route("/a") { _ in .ok(Bytes.pattern(count: 100_000)) }
        let answer = try await offPool { [port = server.port] in
            let own = try RawClient(port: port)
            _ = own.upgrade()
            let others = (0..<100).compactMap { _ in try? RawClient(port: port) }
            own.sendMessage(#"{"id":1,"method":"aria2.addUri","params":[["\#(files.url("/a"))"]]}"#)
            var answer: String?
            repeat { answer = own.receiveMessage() } while answer?.contains("onDownloadComplete") == false
            withExtendedLifetime(others) {}
            return answer
        }
        #expect(answer?.contains("onDownloadComplete") == true)
        try await server.end()
    }

    @Test("SIGTERM ends fk rpc while servers redirect to endless URLs, quote them in refusals or never answer")
    func hostileServers() async throws {
        let server = try await RPCProcess()
        let files = try FaultServer()
        let signature = String(repeating: "y", count: 90_000)
        let target = files.url("/refused?sig=\(signature)")
        for index in 0..<20 { files.route("/\(index)") { _ in .redirect(to: target) } }
        files.route("/refused") { _ in .status(503, body: Array(signature.utf8.prefix(512))) }
        let gate = Gate()
        files.route("/deaf") { _ in .ok(Bytes.pattern(count: 100)).stalling(at: 0, until: gate) }
        for path in ["deaf"] + (0..<20).map({ "\($0)" }) {
            _ = try await server.call("aria2.addUri", [.string(files.url("/\(path)"))])
        }
        await files.waitForRequests(30)
        #expect(try await server.end() == 143)
    }

    @Test("a client that never reads does not fill the memory") func deafClient() async throws {
        let server = try await RPCProcess()
        let client = try await offPool {
            let client = try RawClient(port: server.port)
            _ = client.upgrade()
            return client
        }
        // Each answer has some 4 KiB: 400 MB in all, if they were kept.
        let message = RawClient.frame(Array(#"{"id":1,"method":"aria2.getGlobalOption"}"#.utf8))
        let batch = [[UInt8]](repeating: message, count: 1_000).flatMap(\.self)
        Thread.detachNewThread { for _ in 0..<100 where client.send(batch) {} }
        for _ in 0..<50 { #expect(try await server.call("aria2.getVersion")["version"] != nil) }
        let status = (try? String(contentsOfFile: "/proc/\(server.child.pid)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS") } ?? ""
        let kilobytes = Int(line.filter(\.isNumber)) ?? 0
        #expect(kilobytes < 300_000, "\(line)")
        try await server.end()
    }
}
