import FKCore
import FKMiddleware
import FKTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("FKTesting: a chain runs for a script")
struct PublicTestingTests {
    private actor Session: Authenticator {
        private var token = "old"
        func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
            request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }
        func refresh(after failure: AttemptFailure) async throws { token = "new" }
    }

    @Test("a token is renewed: two requests, one attempt") func renewal() async throws {
        let harness = try MiddlewareHarness { request, _ in
            request.urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer new"
                ? .file([1, 2, 3], to: request) : .status(401)
        }
        harness.middlewares.register(authenticator: Session())
        let outcome = try await harness.run()
        #expect(outcome.info.state == .complete && outcome.info.attempts == 1 && outcome.bytes == [1, 2, 3])
        #expect(outcome.requests.count == 2)
        await harness.close()
    }

    @Test("the example of Docs/WritingMiddleware.md") func example() async throws {
        let harness = try MiddlewareHarness { request, number in
            number == 1 ? .status(503) : .file([1, 2, 3], to: request)
        }
        harness.middlewares.onFailure("patience") { _ in .retry(after: .seconds(3_600)) }
        let outcome = try await harness.run("https://example.com/file.bin")
        #expect(outcome.info.state == .complete && outcome.bytes == [1, 2, 3])
        #expect(outcome.requests.count == 2 && outcome.info.attempts == 2)
        #expect(outcome.requests[1].urlRequest.value(forHTTPHeaderField: "Range") == nil)
        await harness.close()
    }

    @Test("runs at once: each outcome has the states, requests and bytes of its own task") func concurrent()
        async throws
    {
        let gate = TestGate()
        let harness = try MiddlewareHarness { request, _ in
            let path = request.urlRequest.url?.path ?? ""
            return path == "/moved"
                ? .file([9], to: request, gate: gate) : .file(Array(path.utf8), to: request, gate: gate)
        }
        harness.middlewares.onRequest("move") { request, task in
            if task.originalURL.path == "/b" { request.url = URL(string: "https://example.com/moved") }
        }
        async let first = harness.run("https://example.com/a")
        async let second = harness.run("https://example.com/b")
        async let third = harness.run("https://example.com/c")
        await gate.reached()
        while harness.transport.requests.count < 3 { await Task.yield() }
        gate.open()
        let outcomes = try await [first, second, third]
        #expect(
            outcomes.map { $0.requests.map { $0.urlRequest.url?.path } } == [["/a"], ["/moved"], ["/c"]])
        #expect(outcomes.map(\.bytes) == [Array("/a".utf8), [9], Array("/c".utf8)])
        #expect(outcomes.allSatisfy { $0.states.last == .complete && $0.states.count { $0 == .complete } == 1 })
        await harness.close()
    }

    @Test("a head with further fields is refused") func head() async throws {
        let harness = try MiddlewareHarness { request, _ in
            .file([1, 2, 3], to: request, fields: [HeaderField("X-Quota", "used up")])
        }
        harness.middlewares.onHead("quota") { head, _ in
            if let text = head.value(forHTTPHeaderField: "X-Quota") { throw DownloadError(.rejected, text) }
        }
        let outcome = try await harness.run()
        #expect(
            outcome.info.error?.code == .rejected && outcome.info.error?.message == "used up" && outcome.bytes == nil)
        await harness.close()
    }

    @Test("a retry after an hour comes at once; the states are told in order") func retry() async throws {
        let harness = try MiddlewareHarness { request, number in
            number == 1 ? .status(503, [.init("Retry-After", "30")]) : .file([1], to: request)
        }
        harness.middlewares.onFailure("later") { _ in .retry(after: .seconds(3_600)) }
        let outcome = try await harness.run { $0.priority = 3 }
        #expect(outcome.states == [.idle, .action, .idle, .action, .complete])
        #expect(outcome.info.attempts == 2)
        let second = try await harness.run("https://example.com/other")
        #expect(second.info.state == .complete && second.requests.count == 1)
        await harness.close()
    }

    @Test("a refused file fails its task, and a lost connection is resumed") func refused() async throws {
        let harness = try MiddlewareHarness { request, number in
            .file([1, 2, 3, 4], to: request, cut: number == 1 ? 2 : nil)
        }
        harness.middlewares.onResponse("size") { response in
            if response.error == nil { throw DownloadError(.rejected, "no") }
        }
        let outcome = try await harness.run()
        #expect(outcome.info.state == .error && outcome.info.error?.code == .rejected && outcome.bytes == nil)
        #expect(outcome.requests.map { $0.urlRequest.value(forHTTPHeaderField: "Range") } == [nil, "bytes=2-"])
        await harness.close()
    }

    @Test("a gate holds a transfer; a manual clock moves the dates") func gate() async throws {
        let gate = TestGate()
        let harness = try MiddlewareHarness { request, _ in .file([1, 2], to: request, gate: gate, pauseAt: 1) }
        async let outcome = harness.run()
        await gate.reached()
        let before = harness.clock.date
        harness.clock.advance(by: .seconds(5))
        #expect(harness.clock.date.timeIntervalSince(before) == 5)
        gate.open()
        #expect(try await outcome.bytes == [1, 2])
        await harness.close()
    }
}
