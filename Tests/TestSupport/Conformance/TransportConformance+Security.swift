import FKCore
import FKMiddleware

extension TransportConformance {
    /// TLS against a real server, and HTTP/2.
    static let security: [TransportConformance] =
        [TestCertificates.Kind.wrongHost, .expired].map { kind in
            .init("TLS: a certificate that is \(kind) is refused", needs: [.trustOptions]) { context in
                let nginx = try NginxServer(certificate: kind)
                try nginx.write([1, 2, 3], to: "a")
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                let record = try await context.get("\(nginx.tlsBase)/a?key=secret", options: options)
                try context.expectFailure(record, .tls, retryable: false)
                try context.check(record.error?.underlying?.isEmpty == false, "no reason is given")
            }
        } + [
            .init("TLS: an authority that nobody trusts is refused, accepted when insecure") { context in
                let nginx = try NginxServer()
                try nginx.write([1, 2, 3], to: "a")
                try context.expectFailure(try await context.get("\(nginx.tlsBase)/a"), .tls, retryable: false)
            },
            .init("TLS: insecure accepts any certificate, and only where it is asked for", needs: [.trustOptions]) {
                context in
                let nginx = try NginxServer(certificate: .wrongHost)
                try nginx.write([1, 2, 3], to: "a")
                var options = Context.options
                options.insecure = true
                try context.expectSuccess(
                    try await context.get("\(nginx.tlsBase)/a", options: options), body: [1, 2, 3])
                try context.expectFailure(try await context.get("\(nginx.tlsBase)/a"), .tls, retryable: false)
            },
            .init("TLS: a CA file that is not there is an error", needs: [.trustOptions]) { context in
                let nginx = try NginxServer()
                var options = Context.options
                options.caPath = "/does/not/exist.pem"
                try context.expectFailure(
                    try await context.get(nginx.tlsBase, options: options), .tls, retryable: false)
            },
            .init("TLS: a plain server is an error") { context in
                let server = try FaultServer()
                server.routeOthers { _ in .ok([1]) }
                let record = try await context.get("https://127.0.0.1:\(server.port)/")
                try context.expectFailure(record, .tls, retryable: false)
            },
            .init("HTTP/2: transfers share one connection", needs: [.trustOptions, .http2]) { context in
                let nginx = try NginxServer()
                let body = Bytes.pattern(count: 500_000)
                try nginx.write(body, to: "a")
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                try await withThrowingTaskGroup(of: Void.self) { [options] group in
                    for _ in 0..<20 {
                        group.addTask {
                            let record = try await context.get("\(nginx.tlsBase)/a", options: options)
                            try context.expectSuccess(record, body: body)
                            try context.equal(record.head?.httpVersion, "2", "version")
                        }
                    }
                    try await group.waitForAll()
                }
                let log = try await nginx.log(atLeast: 20)
                try context.equal(Set(log.map(\.connection)).count, 1, "connections")
                try context.equal(Set(log.map(\.version)), ["HTTP/2.0"], "version")
            },
            .init("HTTP/2: a paused transfer does not hold up another", needs: [.trustOptions, .http2]) { context in
                let nginx = try NginxServer()
                let body = Bytes.pattern(count: 4 << 20)
                try nginx.write(body, to: "a")
                try nginx.write([1, 2, 3], to: "b")
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                let isPaused = Locked(true)
                let handler = RecordingHandler.pausing(while: isPaused)
                let operation = context.transport.start(
                    try Context.request("\(nginx.tlsBase)/a", options: options), handler: handler)
                _ = await handler.record.wait { $0.pieces == 1 }
                try context.expectSuccess(
                    try await context.get("\(nginx.tlsBase)/b", options: options), body: [1, 2, 3])
                isPaused.withLock { $0 = false }
                operation.resume()
                try context.expectSuccess(try await context.end(of: handler), body: body)
            },
            .init("HTTP/2: refused by the options, HTTP/1.1 is spoken", needs: [.trustOptions, .http2]) { context in
                let nginx = try NginxServer()
                try nginx.write([1], to: "a")
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                options.httpVersion = .http1
                let record = try await context.get("\(nginx.tlsBase)/a", options: options)
                try context.expectSuccess(record, body: [1])
                try context.equal(record.head?.httpVersion, "1.1", "version")
            },
            .init("TLS: an end with close_notify is complete, without it is not", needs: [.trustOptions, .closeNotify])
            { context in
                let server = try FaultServer()
                let body = Bytes.pattern(count: 5_000)
                server.route("/a") { _ in .untilClose(body) }
                let nginx = try NginxServer(upstream: server.port)
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                options.httpVersion = .http1
                let whole = try await context.get("\(nginx.tlsBase)/upstream/a", options: options)
                try context.expectSuccess(whole, body: body, verified: false)
                let relay = try CuttingRelay(to: nginx.tlsPort, dropsAlerts: true)
                let cut = try await context.get("https://127.0.0.1:\(relay.port)/upstream/a", options: options)
                try context.expectFailure(cut, .incompleteBody, .connectionLost, retryable: true)
                try context.check(
                    cut.body == body, "the body before the missing close_notify is \(cut.body.count) bytes")
            },
            .init("TLS: a handshake that is cut may be retried", needs: [.trustOptions]) { context in
                let nginx = try NginxServer()
                let relay = try CuttingRelay(to: nginx.tlsPort, limit: 100)
                var options = Context.options
                options.caPath = nginx.certificates.caFile
                let record = try await context.get("https://127.0.0.1:\(relay.port)/", options: options)
                try context.expectFailure(record, .tls, .connectionLost, retryable: true)
            },
        ]
}
