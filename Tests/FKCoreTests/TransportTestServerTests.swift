import FKCore
import TestSupport
import Testing

#if canImport(CLibcurl)
    @Suite("The servers that tests use", .timeLimit(.minutes(10)))
    struct TransportTestServerTests {
        private func get(_ url: String, _ headers: KeyValuePairs<String, String> = [:]) async throws
            -> RecordingHandler.Record
        {
            let transport = CurlTransport()
            defer { transport.shutdown() }
            let handler = RecordingHandler()
            _ = transport.start(try TransportConformance.Context.request(url, headers: headers), handler: handler)
            return await handler.finished()
        }

        @Test("ports that are asked for together differ") func ports() throws {
            let ports = try Socket.freePorts(500)
            #expect(ports.count == 500 && Set(ports).count == 500)
        }

        @Test(
            "ranges of the scripted server",
            arguments: [
                ("bytes=0-9", nil, 206, "bytes 0-9/100"), ("bytes=90-", nil, 206, "bytes 90-99/100"),
                ("bytes=-5", nil, 206, "bytes 95-99/100"), ("bytes=95-200", nil, 206, "bytes 95-99/100"),
                ("bytes=100-", nil, 416, "bytes */100"), ("bytes=0-9", "\"x\"", 206, "bytes 0-9/100"),
                ("bytes=0-9", "\"y\"", 200, nil),
            ] as [(String, String?, Int, String?)])
        func ranges(range: String, condition: String?, status: Int, contentRange: String?) async throws {
            let server = try FaultServer()
            let body = Bytes.pattern(count: 100)
            server.route("/a") { .ranged(body, for: $0, etag: "\"x\"") }
            let record = try await get(
                server.url("/a"), condition.map { ["Range": range, "If-Range": $0] } ?? ["Range": range])
            #expect(record.head?.status == status)
            #expect(record.head?["Content-Range"] == contentRange)
            #expect(record.head?["ETag"] == "\"x\"")
            if status == 200 { #expect(record.body == body) }
        }

        @Test("nginx logs what it sent")
        func nginxLog() async throws {
            let nginx = try NginxServer()
            let body = Bytes.pattern(count: 1_000)
            try nginx.write(body, to: "folder/a")
            #expect(try await get("\(nginx.base)/folder/a").body == body)
            #expect(try await get("\(nginx.base)/slow/folder/a", ["Range": "bytes=990-"]).body == Array(body[990...]))
            let log = try await nginx.log(atLeast: 2)
            #expect(log.map(\.status) == [200, 206])
            #expect(log.map(\.range) == [nil, "bytes=990-"])
            #expect(log.map(\.bodyBytesSent) == [1_000, 10])
        }

        @Test("test data is the same each time and differs by seed")
        func pattern() {
            #expect(Bytes.pattern(count: 1_000) == Bytes.pattern(count: 1_000))
            #expect(Bytes.pattern(count: 1_000, seed: 1) != Bytes.pattern(count: 1_000, seed: 2))
            #expect(Bytes.pattern(count: 5) == Array(Bytes.pattern(count: 1_000)[..<5]))
            #expect(Bytes.sha256(Array("abc".utf8)).hasPrefix("ba7816bf"))
        }
    }
#endif
