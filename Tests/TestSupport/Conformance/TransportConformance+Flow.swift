import FKCore
import FKMiddleware
import Foundation

extension TransportConformance {
    /// Pause, resume, enough and fail: what the handler answers to a piece of the body.
    static let flow: [TransportConformance] = [
        .init("a paused transfer holds the server back and goes on where it was") { context in
            let server = try FaultServer()
            let body = Bytes.pattern(count: 64 << 20)
            server.route("/a") { _ in .ok(body) }
            let isPaused = Locked(true)
            let handler = RecordingHandler.pausing(while: isPaused)
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.pieces == 1 }
            let request = await server.wait { ($0.first?.timesBlocked ?? 0) > 0 }[0]
            try context.check(request.bytesSent < 16 << 20, "\(request.bytesSent) bytes went to a paused transfer")
            try context.equal(handler.record.value.pieces, 1, "pieces while paused")
            isPaused.withLock { $0 = false }
            operation.resume()
            try context.expectSuccess(try await context.end(of: handler), body: body)
        },
        .init("a small body that came before the pause is not lost") { context in
            let server = try FaultServer()
            let body = Bytes.pattern(count: 5_000)
            server.route("/length") { _ in .ok(body) }
            server.route("/chunked") { _ in .chunked(body, size: 100) }
            server.route("/close") { _ in .untilClose(body) }
            for path in ["/length", "/chunked", "/close"] {
                let isPaused = Locked(true)
                let handler = RecordingHandler.pausing(while: isPaused)
                let operation = context.transport.start(try Context.request(server.url(path)), handler: handler)
                _ = await handler.record.wait { $0.pieces == 1 }
                await server.wait { $0.last?.path == path && $0.last?.end == .completed }
                isPaused.withLock { $0 = false }
                operation.resume()
                let record = try await context.end(of: handler)
                try context.expectSuccess(record, body: body, verified: path != "/close")
            }
        },
        .init("a pause with a time ends by itself") { context in
            let server = try FaultServer()
            let body = Bytes.pattern(count: 100_000)
            server.route("/a") { _ in .ok(body) }
            let handler = RecordingHandler(onBody: { _, record in
                record.pieces < 3 ? .pause(.milliseconds(50)) : .consumed
            })
            let start = ContinuousClock.now
            let record = try await context.perform(try Context.request(server.url("/a")), handler: handler)
            try context.expectSuccess(record, body: body)
            let time = ContinuousClock.now - start
            try context.check(time >= .milliseconds(140), "three pauses of 0.05 s took \(time)")
        },
        .init("resume ends a pause with a time early") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            let handler = RecordingHandler.pausing(once: 3_600)
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.pieces == 1 }
            operation.resume()
            try context.expectSuccess(try await context.end(of: handler), body: [1, 2, 3])
        },
        .init("a pause is no stall") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            var options = Context.options
            options.stallTimeout = .seconds(1)
            let handler = RecordingHandler(onBody: { _, record in record.pieces == 0 ? .pause(.seconds(1.5)) : .consumed
            })
            let record = try await context.perform(
                try Context.request(server.url("/a"), options: options), handler: handler)
            try context.expectSuccess(record, body: [1, 2, 3])
        },
        .init("one paused transfer does not hold up another") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok(Bytes.pattern(count: 8 << 20)) }
            server.route("/b") { _ in .ok([1, 2, 3]) }
            let handler = RecordingHandler(keepsBody: false, onBody: { _, _ in .pause(nil) })
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.pieces == 1 }
            try context.expectSuccess(try await context.get(server.url("/b")), body: [1, 2, 3])
            operation.cancel()
            try context.expectFailure(try await context.end(of: handler), .cancelled)
        },
        .init("enough ends with success and drops the rest") { context in
            let server = try FaultServer()
            let body = Bytes.pattern(count: 1_000)
            server.route("/endless") { _ in .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .sendForever(body)]) }
            let handler = RecordingHandler(onBody: { _, record in record.bodyBytes >= 100_000 ? .enough : .consumed })
            let record = try await context.perform(try Context.request(server.url("/endless")), handler: handler)
            try context.check(record.summary != nil, "failed: \(String(describing: record.error))")
            try context.equal(record.summary?.bodyBytes, record.bodyBytes, "bytes")
            await server.wait { $0.first?.end == .clientClosed }
        },
        .init("enough with the last byte keeps the connection") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            for _ in 0..<3 {
                let handler = RecordingHandler(onBody: { _, _ in .enough })
                let record = try await context.perform(try Context.request(server.url("/a")), handler: handler)
                try context.expectSuccess(record, body: [1, 2, 3])
            }
            try context.equal(server.connections, 1, "connections")
        },
        .init("the handler's own error comes back, from head and body") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok(Bytes.pattern(count: 100_000)) }
            let mine = DownloadError(.badRange, "Mine.", status: 206, isRetryable: true, retryAfter: .seconds(7))
            let atHead = RecordingHandler(onHead: { _ in mine })
            var record = try await context.perform(try Context.request(server.url("/a")), handler: atHead)
            try context.equal(record.error, mine, "error")
            try context.equal(record.pieces, 0, "pieces of body")
            let inBody = RecordingHandler(onBody: { _, _ in .fail(mine) })
            record = try await context.perform(try Context.request(server.url("/a")), handler: inBody)
            try context.equal(record.error, mine, "error")
            try context.equal(record.pieces, 1, "pieces of body")
        },
    ]
}
