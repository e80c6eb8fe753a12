import FKCore
import FKMiddleware

extension TransportConformance {
    /// Start, order of calls, cancel, shutdown, many at once.
    static let lifeCycle: [TransportConformance] = [
        .init("calls come in order and the end comes once") { context in
            let server = try FaultServer()
            let body = Bytes.pattern(count: 300_000)
            server.route("/a") { _ in .ok(body, headers: ["X-One": "1"]) }
            let record = try await context.get(server.url("/a"))
            try context.expectSuccess(record, body: body)
            try context.equal(record.head?["x-one"], "1", "header field")
            try context.equal(record.head?.url, server.url("/a"), "head's URL")
            try context.equal(record.head?.redirects, 0, "redirects")
        },
        .init("cancel before the head") { context in
            let server = try FaultServer()
            let gate = Gate()
            server.route("/a") { _ in .raw([.stall(gate)]) }
            let handler = RecordingHandler()
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            await server.waitForRequests(1)
            operation.cancel()
            let record = try await context.end(of: handler)
            try context.expectFailure(record, .cancelled, retryable: false)
            try context.check(record.head == nil, "a head came")
            await server.wait { $0.first?.end == .clientClosed }
        },
        .init("cancel in the body closes the connection") { context in
            let server = try FaultServer()
            let gate = Gate()
            let body = Bytes.pattern(count: 100_000)
            server.route("/a") { _ in .ok(body).stalling(at: 50_000, until: gate) }
            let handler = RecordingHandler()
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.bodyBytes == 50_000 }
            operation.cancel()
            try context.expectFailure(try await context.end(of: handler), .cancelled)
            await server.wait { $0.first?.end == .clientClosed }
        },
        .init("cancel at once, twice, and after the end") { context in
            let server = try FaultServer()
            // Held back: an answer that is already there may win against a cancellation.
            let gate = Gate()
            server.route("/held") { _ in FaultResponse.ok([1]).stalling(at: 0, until: gate) }
            server.route("/a") { _ in .ok([1]) }
            let handler = RecordingHandler()
            let operation = context.transport.start(try Context.request(server.url("/held")), handler: handler)
            operation.cancel()
            operation.cancel()
            try context.expectFailure(try await context.end(of: handler), .cancelled)
            gate.open()
            operation.cancel()
            operation.resume()
            try context.expectSuccess(try await context.get(server.url("/a")), body: [1])
            try context.check(handler.record.value.violations.isEmpty, "calls after the end")
        },
        .init("cancel while paused") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            let handler = RecordingHandler(onBody: { _, _ in .pause(nil) })
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = await handler.record.wait { $0.pieces == 1 }
            operation.cancel()
            try context.expectFailure(try await context.end(of: handler), .cancelled)
        },
        .init("200 transfers at once") { context in
            let server = try FaultServer()
            server.routeOthers { request in .ok(Bytes.pattern(count: 2_000, seed: UInt64(request.path.dropFirst())!)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let record = try await context.get(server.url("/\(number)"))
                        try context.expectSuccess(record, body: Bytes.pattern(count: 2_000, seed: UInt64(number)))
                    }
                }
                try await group.waitForAll()
            }
            try context.equal(server.requests.count, 200, "requests")
        },
        .init("requests one after another share a connection") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            for _ in 0..<5 { try context.expectSuccess(try await context.get(server.url("/a")), body: [1, 2, 3]) }
            try context.equal(server.connections, 1, "connections")
        },
        .init("a transfer can be started from the end of another") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1]) }
            let second = RecordingHandler()
            let request = try Context.request(server.url("/a"))
            let first = RecordingHandler(onFinish: { _ = context.transport.start(request, handler: second) })
            _ = context.transport.start(request, handler: first)
            try context.expectSuccess(try await context.end(of: first))
            try context.expectSuccess(try await context.end(of: second))
        },
        .init("shutdown ends what runs and what comes later") { context in
            let server = try FaultServer()
            let gate = Gate()
            server.routeOthers { _ in .raw([.stall(gate)]) }
            let handlers = (0..<5).map { _ in RecordingHandler() }
            for handler in handlers {
                _ = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            }
            await server.waitForRequests(5)
            context.transport.shutdown()
            for handler in handlers { try context.expectFailure(try await context.end(of: handler), .cancelled) }
            let late = RecordingHandler()
            let operation = context.transport.start(try Context.request(server.url("/a")), handler: late)
            try context.expectFailure(try await context.end(of: late), .cancelled)
            operation.cancel()
            context.transport.shutdown()
        },
        .init("shutdown from inside a callback") { context in
            let server = try FaultServer()
            server.route("/a") { _ in .ok([1, 2, 3]) }
            let handler = RecordingHandler(onBody: { _, _ in
                context.transport.shutdown()
                return .consumed
            })
            _ = context.transport.start(try Context.request(server.url("/a")), handler: handler)
            _ = try await context.end(of: handler)
        },
    ]
}
