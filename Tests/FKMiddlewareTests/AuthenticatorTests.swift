import TestSupport
import Testing

@testable import FKMiddleware

@Suite("Authenticator") struct AuthenticatorTests {
    private final class Session: Authenticator {
        let renewals = Locked(0)
        func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
            request.setValue("\(renewals.withLock { $0 })", forHTTPHeaderField: "Authorization")
        }
        func refresh(after failure: AttemptFailure) async throws { renewals.withLock { $0 += 1 } }
    }

    private let session = Session()
    private let middleware: AuthenticationMiddleware
    private let clock = Locked(ContinuousClock.now)

    init() {
        middleware = AuthenticationMiddleware(session, priority: 100) { [clock] in clock.withLock { $0 } }
    }

    private func failure(
        _ status: Int = 401, previous: Int? = nil, progress: Int64 = 0, after seconds: Double = 1
    ) throws -> AttemptFailure {
        let began = clock.withLock { time in
            time += .seconds(seconds)
            return time
        }
        let url = try #require(URL(string: "http://h.example/a"))
        func error(_ status: Int) -> DownloadError { DownloadError(.httpStatus, "", status: status) }
        return AttemptFailure(
            task: TaskContext(id: TaskID(url: url.absoluteString), originalURL: url), error: error(status),
            progress: progress, previousError: previous.map(error), began: began)
    }

    @Test("only a refusal renews the credential")
    func refusal() async throws {
        #expect(await middleware.decide(try failure(403)) == .useRules)
        #expect(await middleware.decide(try failure()) == .renewed)
        #expect(session.renewals.withLock { $0 } == 1)
    }

    @Test("a request that began before the last renewal gets the new credential")
    func late() async throws {
        let early = try failure()
        #expect(await middleware.decide(try failure()) == .renewed)
        #expect(await middleware.decide(early) == .renewed)
        #expect(session.renewals.withLock { $0 } == 1)
    }

    @Test("a second refusal without a byte in between renews nothing; with one it does")
    func repeated() async throws {
        #expect(await middleware.decide(try failure(previous: 401)) == .useRules)
        #expect(await middleware.decide(try failure(previous: 503)) == .renewed)
        #expect(await middleware.decide(try failure(previous: 401, progress: 1)) == .renewed)
        #expect(session.renewals.withLock { $0 } == 2)
    }

    @Test("at most 5 renewals begin in 30 s")
    func most() async throws {
        for _ in 1...5 { #expect(await middleware.decide(try failure()) == .renewed) }
        #expect(await middleware.decide(try failure()) == .useRules)
        // The first of them began 30 s ago.
        #expect(await middleware.decide(try failure(after: 26)) == .renewed)
        #expect(await middleware.decide(try failure(after: 0)) == .useRules)
        #expect(session.renewals.withLock { $0 } == 6)
    }

    @Test("its fields stay with the first origin, and it has the authenticator's name")
    func fields() async throws {
        #expect(middleware.secretHeaders == ["Authorization"] && middleware.name == "Session")
    }
}
