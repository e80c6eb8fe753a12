import FKCore
import FKMiddleware
import FKTesting
import Testing

// The test of Packaging/test-package.

@Test("a middleware retries for an hour's wait, which comes at once") func patience() async throws {
    let harness = try MiddlewareHarness { request, number in
        number == 1 ? .status(503) : .file([1, 2, 3], to: request)
    }
    harness.middlewares.onFailure("patience") { _ in .retry(after: .seconds(3_600)) }
    let outcome = try await harness.run()
    #expect(outcome.info.state == .complete && outcome.bytes == [1, 2, 3])
    #expect(outcome.requests.count == 2 && outcome.states == [.idle, .action, .idle, .action, .complete])
    await harness.close()
}
