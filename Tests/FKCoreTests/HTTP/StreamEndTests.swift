#if canImport(CLibcurl)
    import FKCore
    import FKMiddleware
    import Foundation
    import TestSupport
    import Testing

    /// A server of HTTP/2 frames that sends a body of 40,000 bytes without a length, and then something else.
    @Suite("The end of an HTTP/2 stream")
    struct StreamEndTests {
        enum End: String, CaseIterable, Sendable {
            case endStream, goAwayAfterEnd, garbage, pushPromise, badPadding, badSettings, badHeaders, unknownStream

            /// True if libcurl before 8.1 reports success although the stream has not ended.
            var isBroken: Bool { self != .endStream && self != .goAwayAfterEnd }
        }

        @Test(
            "a body of HTTP/2 without a length is whole only if its connection did not break",
            .enabled("python3 is not installed here") { Program.find("python3") != nil }, arguments: End.allCases)
        func ends(_ end: End) async throws {
            let server = try ScriptServer(Self.server, [end.rawValue])
            let transport = CurlTransport()
            defer { transport.shutdown() }
            var options = TransportConformance.Context.options
            options.caPath = server.certificates.caFile
            let handler = RecordingHandler()
            _ = transport.start(
                try TransportConformance.Context.request(server.url("/a"), options: options),
                handler: handler)
            let record = await handler.finished()
            #expect(record.bodyBytes == 40_000)
            switch end {
            case .endStream: #expect(record.summary?.lengthVerified == true)
            case .goAwayAfterEnd: #expect(record.summary != nil)
            default: #expect(record.error?.isRetryable == true, "\(String(describing: record.summary))")
            }
        }

        private static let server = #"""
            import socket, ssl, struct, sys
            certificate, key, end = sys.argv[1:]
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            context.set_alpn_protocols(["h2"])
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            print(listener.getsockname()[1], flush=True)
            client = context.wrap_socket(listener.accept()[0], server_side=True)
            stream = client.makefile("rb")

            def frame(kind, flags, number, payload):
                return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload

            stream.read(24)
            client.sendall(frame(4, 0, 0, b""))
            while True:
                head = stream.read(9)
                if len(head) < 9: sys.exit()
                kind, flags, number = head[3], head[4], struct.unpack(">I", head[5:])[0]
                stream.read(int.from_bytes(head[:3], "big"))
                if kind == 4 and not flags & 1: client.sendall(frame(4, 1, 0, b""))
                if kind != 1: continue
                client.sendall(frame(1, 4, number, b"\x88"))
                for _ in range(5): client.sendall(frame(0, 0, number, bytes(8000)))
                client.sendall({
                    "endStream": frame(0, 1, number, b""),
                    "goAwayAfterEnd": frame(0, 1, number, b"") + frame(7, 0, 0, struct.pack(">II", number, 0)),
                    "garbage": b"HTTP/1.1 400 Bad\r\n\r\n",
                    "pushPromise": frame(5, 4, number, struct.pack(">I", 2) + b"\x82"),
                    "badPadding": frame(0, 8, number, b"\xff" * 10),
                    "badSettings": frame(4, 0, 0, b"12345"),
                    "badHeaders": frame(1, 4, number, b"\xff" * 6),
                    "unknownStream": frame(0, 0, number + 100, b"123"),
                }[end])
            """#
    }
#endif
