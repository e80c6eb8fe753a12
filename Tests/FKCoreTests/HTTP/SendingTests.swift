#if canImport(CLibcurl)
    import FKCore
    import FKMiddleware
    import Foundation
    import TestSupport
    import Testing

    @testable import FKTransport

    /// Requests that are sent again without an attempt.
    @Suite("Requests sent again")
    struct SendingTests {
        private func sending(_ change: (inout Sending) -> Void) -> Sending {
            var sending = Sending()
            change(&sending)
            return sending
        }

        @Test("how a request is sent again, and that it ends")
        func table() {
            #expect(sending { _ in }.again() == nil)
            #expect(sending { $0.isReused = true }.again() == .onNewConnection)
            #expect(sending { ($0.isReused, $0.mayHTTP2) = (true, true) }.again() == .onOtherConnection)
            #expect(sending { ($0.isReused, $0.isAnswered) = (true, true) }.again() == nil)
            #expect(sending { ($0.isStale, $0.isAnswered) = (true, true) }.again() == .onNewConnection)
            #expect(sending { ($0.isHTTP2Failure, $0.mayHTTP2) = (true, true) }.again() == .withLog)
            #expect(sending { $0.isHTTP2Failure = true }.again() == nil)
            for text in [
                "recveived GOAWAY, error=13, last_stream=0", "received GOAWAY, error=12, last_stream=1",
                "HTTP/2 stream 1 was not closed cleanly: HTTP_1_1_REQUIRED (err 13)",
            ] {
                var wants = sending { $0.record(text) }
                #expect(wants.wantsHTTP1 && wants.again() == nil)
                wants.mayHTTP2 = true
                #expect(wants.again() == .overHTTP1)
                var other = Sending()
                other.learn(from: [Sending(), wants])
                #expect(other.wantsHTTP1)
            }
            let calm = sending { $0.record("not closed cleanly: ENHANCE_YOUR_CALM (err 11)") }
            #expect(calm.again() == .calmly && !calm.wantsHTTP1)
            #expect(!sending { $0.record("GOAWAY, error=0, last_stream=1") }.wantsHTTP1)
            // Whatever a server does, a request ends.
            var next = Sending()
            var count = 0
            let learn: (inout Sending) -> Void = {
                ($0.isReused, $0.mayHTTP2, $0.isHTTP2Failure, $0.isStale) = (true, true, true, count % 2 == 0)
                if count % 3 == 0 { $0.record("GOAWAY, error=11, last_stream=0") }
                if count % 5 == 4 { $0.record("GOAWAY, error=13, last_stream=0") }
            }
            learn(&next)
            while let again = next.again(), count < 100 {
                count += 1
                next = Sending(after: again, next)
                learn(&next)
            }
            #expect(count < 8)
        }

        @Test("a server that asks for calm gets half as many streams, and no further connection")
        func calm() throws {
            let origin = try #require(URLOrigin("https://h.example/"))
            let gate = Gate(StreamGate())
            for id in 1...8 { #expect(gate.admit(id, origin) == .now) }
            gate.value.calm(origin)
            for id in 9...300 { #expect(gate.admit(id, origin) == .later) }
            for id in 1...4 { gate.value.ended(UInt64(id)) }
            #expect(gate.admitted() == [])
            gate.value.ended(5)
            #expect(gate.admitted() == [9])
            gate.value.calm(origin)
            gate.value.calm(origin)
            for id in 6...300 { gate.value.ended(UInt64(id)) }
            _ = gate.admitted()
            // It is remembered, and at least one stream stays.
            #expect(gate.admit(1_000, origin) == .now)
            #expect(gate.admit(1_001, origin) == .later)
        }

        /// A value that expectations can change: their macros cannot call mutating functions.
        private final class Gate {
            var value: StreamGate
            init(_ value: StreamGate) { self.value = value }
            func admit(_ id: Int, _ origin: URLOrigin) -> StreamGate.Admission { value.admit(UInt64(id), to: origin) }
            func admitted() -> [UInt64] { value.drainAdmitted() }
        }

        private func fetch(_ transport: CurlTransport, _ url: String, _ options: TransportOptions) async throws
            -> RecordingHandler.Record
        {
            let handler = RecordingHandler()
            _ = transport.start(try TransportConformance.Context.request(url, options: options), handler: handler)
            return await handler.finished()
        }

        enum Stale: CaseIterable, Sendable { case timeout, close, reset }

        @Test(
            "a 408, a close or a reset on a connection that was used before: sent again at once on a new one",
            arguments: Stale.allCases)
        func stale(_ stale: Stale) async throws {
            let server = try FaultServer()
            server.routeOthers { request in
                // The second request of each connection meets a server that has given it up.
                if request.index % 2 == 0 { return .ok([1, 2, 3]) }
                switch stale {
                case .timeout:
                    return .raw([.text("HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nslow"), .close])
                case .close: return .raw([.close])
                case .reset: return .raw([.reset])
                }
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            for name in ["/a", "/b"] {
                let record = try await fetch(transport, server.url(name), TransportConformance.Context.options)
                #expect(record.head?.status == 200 && record.body == [1, 2, 3], "\(String(describing: record.error))")
                #expect(record.violations.isEmpty)
            }
            #expect(server.requests.map(\.connection) == [0, 0, 1])
            #expect(server.requests.map(\.target) == ["/a", "/b", "/b"])
        }

        @Test(
            "what follows an answer on its connection is not the next one: the connection is not used again",
            arguments: [3, 100_000, 3_000_000], ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", "stray bytes"])
        func stray(length: Int, stray: String) async throws {
            let server = try FaultServer()
            let body = Bytes.pattern(count: length)
            server.routeOthers { request in
                .raw([
                    .text("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n"), .send(body),
                    .text(request.path == "/a" ? stray : ""),
                ])
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            for name in ["/a", "/b", "/c"] {
                let record = try await fetch(transport, server.url(name), TransportConformance.Context.options)
                #expect(
                    record.head?.status == 200 && record.body == body, "\(name): \(String(describing: record.error))")
                #expect(record.violations.isEmpty)
            }
            // The others share one.
            #expect(server.requests.map(\.connection) == [0, 1, 1])
        }

        @Test("on a fresh connection they count, and a 408 there is the answer", arguments: Stale.allCases)
        func fresh(_ stale: Stale) async throws {
            let server = try FaultServer()
            server.routeOthers { _ in
                switch stale {
                case .timeout: .status(408)
                case .close: .raw([.close])
                case .reset: .raw([.reset])
                }
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            let record = try await fetch(transport, server.url("/a"), TransportConformance.Context.options)
            #expect(stale == .timeout ? record.head?.status == 408 : record.error?.isRetryable == true)
            #expect(server.requests.count == 1)
        }

        /// The end that a server gives to every stream of HTTP/2; it serves HTTP/1.1 too.
        enum End: String, CaseIterable, Sendable {
            case goAway13, goAway12, reset13, reset12, goAway11, reset11

            var isCalm: Bool { self == .goAway11 || self == .reset11 }
        }

        @Test(
            "HTTP_1_1_REQUIRED and INADEQUATE_SECURITY lead to HTTP/1.1, ENHANCE_YOUR_CALM to fewer streams",
            .enabled("python3 is not installed here") { Program.find("python3") != nil },
            // libcurl does not tell every transfer of a connection the code of a GOAWAY.
            arguments: [End.reset13, .reset12, .reset11])
        func http2(_ end: End) async throws {
            let server = try ScriptServer(Self.server, [end.rawValue])
            let transport = CurlTransport()
            defer { transport.shutdown() }
            var options = TransportConformance.Context.options
            options.caPath = server.certificates.caFile
            let handlers = (0..<6).map { _ in RecordingHandler() }
            for (index, handler) in handlers.enumerated() {
                _ = transport.start(
                    try TransportConformance.Context.request(server.url("/\(index)"), options: options),
                    handler: handler)
            }
            for handler in handlers {
                let record = await handler.finished()
                #expect(record.body == Array("abc".utf8), "\(String(describing: record.error))")
                #expect(record.head?.httpVersion == (end.isCalm ? "2" : "1.1"))
            }
            // What was learnt stays.
            let record = try await fetch(transport, server.url("/again"), options)
            #expect(record.head?.httpVersion == (end.isCalm ? "2" : "1.1"), "\(String(describing: record.error))")
        }

        private static let server = #"""
            import socket, ssl, struct, sys, threading
            certificate, key, end = sys.argv[1:]
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            context.set_alpn_protocols(["h2", "http/1.1"])
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            print(listener.getsockname()[1], flush=True)

            def frame(kind, flags, number, payload):
                return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload

            code = int(end[-2:])
            # A calm server bears one stream at a time.
            def serve(client):
                try:
                    client = context.wrap_socket(client, server_side=True)
                    stream = client.makefile("rb")
                    if client.selected_alpn_protocol() != "h2":
                        while True:
                            line = stream.readline()
                            if not line: return
                            while stream.readline() not in (b"\r\n", b""): pass
                            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
                    stream.read(24)
                    client.sendall(frame(4, 0, 0, b""))
                    opened = []
                    client.settimeout(None)
                    lock = threading.Lock()
                    def answer():
                        with lock:
                            mine, opened[:] = list(opened), []
                            for number in mine:
                                if code == 11 and len(mine) > 2 and end.startswith("reset"):
                                    client.sendall(frame(3, 0, number, struct.pack(">I", code)))
                                else:
                                    client.sendall(frame(1, 4, number, b"\x88") + frame(0, 1, number, b"abc"))
                    while True:
                        head = stream.read(9)
                        if len(head) < 9: return
                        kind, flags, number = head[3], head[4], struct.unpack(">I", head[5:])[0]
                        stream.read(int.from_bytes(head[:3], "big"))
                        if kind == 4 and not flags & 1: client.sendall(frame(4, 1, 0, b""))
                        if kind != 1: continue
                        if code == 11:
                            with lock: opened.append(number)
                            if end.startswith("goAway") and len(opened) > 2:
                                client.sendall(frame(7, 0, 0, struct.pack(">II", 0, code)))
                                return client.close()
                            if len(opened) == 1: threading.Timer(0.2, answer).start()
                        elif end.startswith("goAway"):
                            client.sendall(frame(7, 0, 0, struct.pack(">II", 0, code)))
                            return client.close()
                        else:
                            client.sendall(frame(3, 0, number, struct.pack(">I", code)))
                except OSError:
                    pass
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            """#
    }
#endif
