#if canImport(CLibcurl)
    import FKCore
    import FKMiddleware
    import Foundation
    import TestSupport
    import Testing

    /// Servers that keep libcurl reading without end.
    @Suite("Floods")
    struct FloodTests {
        enum Flood: String, CaseIterable, Sendable { case windowUpdate, priority, emptyData, ping, connect }

        @Test(
            "a flood ends with its time-out, and other downloads go on",
            .enabled("python3 is not installed here") { Program.find("python3") != nil }, arguments: Flood.allCases)
        func flood(_ flood: Flood) async throws {
            let server = try ScriptServer(Self.server, [flood.rawValue])
            let good = try FaultServer()
            let gate = Gate()
            good.routeOthers { request in
                request.path == "/slow"
                    ? .raw([.text("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .stall(gate), .text("def")])
                    : .ok([1])
            }
            let transport = CurlTransport()
            defer { transport.shutdown() }
            var options = TransportConformance.Context.options
            options.caPath = server.certificates.caFile
            options.stallTimeout = .seconds(300)
            let slow = RecordingHandler()
            _ = transport.start(try TransportConformance.Context.request(good.url("/slow")), handler: slow)
            _ = await slow.record.wait { $0.bodyBytes == 3 }
            let handler = RecordingHandler()
            if flood == .connect {
                options.proxy = server.url("", scheme: "http")
            }
            let url = flood == .connect ? "https://far.example/a" : server.url("/a")
            _ = transport.start(try TransportConformance.Context.request(url, options: options), handler: handler)
            let record = await handler.finished()
            #expect(
                record.error?.code == .timeout && record.error?.isRetryable == true,
                "\(String(describing: record.error))")
            let other = RecordingHandler()
            _ = transport.start(try TransportConformance.Context.request(good.url("/a")), handler: other)
            #expect(await other.finished().body == [1])
            gate.open()
            #expect(await slow.finished().body == Array("abcdef".utf8))
        }

        private static let server = #"""
            import socket, ssl, struct, sys, threading
            certificate, key, kind = sys.argv[1:]
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            context.set_alpn_protocols(["h2"])
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen(64)
            print(listener.getsockname()[1], flush=True)

            def frame(kind, flags, number, payload):
                return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", number) + payload

            def serve(client):
                try:
                    if kind == "connect":
                        client.recv(65536)
                        client.sendall(b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=a\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n")
                        while True: client.sendall(b"8000\r\n" + bytes(0x8000) + b"\r\n")
                    client = context.wrap_socket(client, server_side=True)
                    stream = client.makefile("rb")
                    stream.read(24)
                    client.sendall(frame(4, 0, 0, b""))
                    while True:
                        head = stream.read(9)
                        number = struct.unpack(">I", head[5:])[0]
                        stream.read(int.from_bytes(head[:3], "big"))
                        if head[3] == 1: break
                    if kind == "emptyData": client.sendall(frame(1, 4, number, b"\x88"))
                    one = {
                        "windowUpdate": frame(8, 0, number, struct.pack(">I", 1)),
                        "priority": frame(2, 0, number, struct.pack(">IB", 0, 1)),
                        "emptyData": frame(0, 0, number, b""),
                        "ping": frame(6, 1, 0, bytes(8)),
                    }[kind]
                    while True: client.sendall(one * 5000)
                except OSError:
                    pass
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
            """#
    }
#endif
