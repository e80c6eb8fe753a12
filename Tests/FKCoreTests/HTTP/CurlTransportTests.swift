#if canImport(CLibcurl)
    import FKCore
    import FKMiddleware
    import Foundation
    import TestSupport
    import Testing

    @Suite("What the transport over libcurl has of its own")
    struct CurlTransportTests {
        @Test("a transport that nobody shuts down still ends what runs")
        func dropped() async throws {
            let server = try FaultServer()
            let gate = Gate()
            server.route("/a") { _ in .raw([.stall(gate)]) }
            let handler = RecordingHandler()
            var transport: CurlTransport? = CurlTransport()
            _ = transport?.start(try TransportConformance.Context.request(server.url("/a")), handler: handler)
            await server.waitForRequests(1)
            transport = nil
            #expect(await handler.finished().error?.code == .cancelled)
        }

        @Test("interim responses do not extend the deadline of the head")
        func interims() async throws {
            let server = try FaultServer()
            let interim = Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8)
            server.route("/a") { _ in .raw([.drip(interim, times: 120, every: 0.25)]) }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            var options = TransportConformance.Context.options
            options.stallTimeout = .seconds(1)
            let handler = RecordingHandler()
            _ = transport.start(
                try TransportConformance.Context.request(server.url("/a"), options: options), handler: handler)
            let record = await handler.finished()
            #expect(record.error?.code == .timeout && record.head == nil)
            // The client left while interim responses were still coming.
            #expect(server.requests[0].end != .completed)
        }

        @Test("each wait is announced, the first one with the head, and after all bytes that have arrived")
        func waits() async throws {
            let server = try FaultServer()
            let gate = Gate()
            let body = Bytes.pattern(count: 100_000)
            server.route("/a") { _ in
                .raw([
                    .text("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"), .send(body), .stall(gate), .send(body),
                ])
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            let waitsAtFirstPiece = Locked(0)
            let handler = RecordingHandler(onBody: { _, record in
                if record.pieces == 0 { waitsAtFirstPiece.withLock { $0 = record.waits } }
                return .consumed
            })
            _ = transport.start(try TransportConformance.Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.bodyBytes == 100_000 && $0.piecesSinceWait == 0 }
            gate.open()
            let record = await handler.finished()
            #expect(record.summary?.bodyBytes == 200_000 && record.violations.isEmpty)
            #expect(waitsAtFirstPiece.withLock { $0 } == 1)
        }

        @Test("an error at a wait ends the transfer with it")
        func failsAtWait() async throws {
            let server = try FaultServer()
            let gate = Gate()
            server.route("/a") { _ in
                .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), .text("abc"), .stall(gate)])
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            let handler = RecordingHandler(onWait: { record in
                record.bodyBytes == 3 ? DownloadError(.destination, "The disk is full.") : nil
            })
            _ = transport.start(try TransportConformance.Context.request(server.url("/a")), handler: handler)
            #expect(await handler.finished().error?.code == .destination)
        }

        @Test("shutdown closes every connection and the thread")
        func noLeaks() async throws {
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            weak var weakHandler: RecordingHandler?
            weak var weakTransport: CurlTransport?
            do {
                let transport = CurlTransport()
                let handler = RecordingHandler()
                weakHandler = handler
                weakTransport = transport
                let operation = transport.start(
                    try TransportConformance.Context.request(server.url("/a")), handler: handler)
                await handler.finished()
                transport.shutdown()
                operation.cancel()
            }
            #expect(weakHandler == nil)
            #expect(weakTransport == nil)
        }

        @Test("a redirect from a public name to a private address is refused before anything is sent, when asked for")
        func privateRedirect() async throws {
            // The proxy plays the public host; the redirect's target is judged by its text.
            let proxy = try FaultServer()
            proxy.routeOthers { request in
                request.target.contains("public.test") ? .redirect(to: "http://10.0.0.1/admin") : .ok([1])
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            for allowed in [true, false] {
                var options = TransportConformance.Context.options
                options.proxy = proxy.base
                options.allowsPrivateRedirect = allowed
                let handler = RecordingHandler()
                _ = transport.start(
                    try TransportConformance.Context.request("http://public.test/", options: options), handler: handler)
                let record = await handler.finished()
                #expect(record.error?.code == (allowed ? nil : .redirect))
            }
            #expect(
                proxy.requests.map(\.target) == ["http://public.test/", "http://10.0.0.1/admin", "http://public.test/"])
        }
    }
#endif
