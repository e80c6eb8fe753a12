import TestSupport
import Testing

@Suite("A token is renewed once for all tasks")
struct AuthenticatorTests {
    private static let content = Bytes.pattern(count: 1_000)

    /// A server that takes one token.
    private final class TokenServer: Sendable {
        let valid = Observed("new")
        func answer(_ request: TransportRequest) -> Bench.Answer {
            request.urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer \(valid.value)"
                ? .file(AuthenticatorTests.content, to: request) : .status(401)
        }
    }

    /// Tokens, and how often they were renewed.
    private struct Session: Authenticator {
        let token: Observed<String>
        let renewals = Observed(0)
        var gate: TestGate?
        var renew: @Sendable () throws -> String = { "new" }

        func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
            request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
        }
        func refresh(after failure: AttemptFailure) async throws {
            renewals.update { $0 += 1 }
            await gate?.passed()
            let fresh = try renew()
            token.update { $0 = fresh }
        }
    }

    @Test("60 tasks with an expired token: one renewal, each file once, nobody who waits has a slot")
    func expiredToken() async throws {
        let server = TokenServer()
        let bench = try await Bench(settings: { $0.maxAction = 4 }) { request, _ in
            request.urlRequest.url?.host == "h.example"
                ? server.answer(request) : .file(AuthenticatorTests.content, to: request)
        }
        let session = Session(token: Observed("old"), gate: TestGate())
        bench.chains.register(authenticator: session, for: .host("h.example"))
        var ids: [TaskID] = []
        for number in 1...60 { ids.append(try await bench.add("\(number).bin")) }
        let other = try await bench.add("http://open.example/other.bin")
        // All slots are free for it while the others wait.
        #expect(await bench.finished(other)?.state == .complete)
        await bench.settle()
        // Those whose turn came while the token was renewed have sent nothing.
        let refused = bench.transport.requests.count - 1
        #expect((1...12).contains(refused), "\(refused) requests with the old token")
        session.gate?.open()
        for id in ids {
            let info = try #require(await bench.finished(id))
            #expect(info.state == .complete && info.attempts == 1)
        }
        #expect(session.renewals.value == 1)
        #expect(bench.transport.requests.count == 61 + refused)
        #expect(bench.names.count == 61)
    }

    @Test("a renewal that fails ends the waiting tasks with its reason")
    func failedRenewal() async throws {
        struct LoggedOut: Error, CustomStringConvertible { var description: String { "logged out" } }
        let server = TokenServer()
        let bench = try await Bench { request, _ in server.answer(request) }
        var session = Session(token: Observed("old"), gate: TestGate())
        session.renew = { throw LoggedOut() }
        bench.chains.register(authenticator: session)
        let ids = [try await bench.add("a.bin"), try await bench.add("b.bin")]
        await bench.settle()
        session.gate?.open()
        for id in ids {
            let error = try #require(await bench.finished(id)?.error)
            #expect(error.message.contains("could not be renewed: logged out"))
        }
        // The server is asked nothing more.
        #expect(session.renewals.value == 1 && (1...2).contains(bench.transport.requests.count) && bench.names == [])
    }

    @Test("a new token that is refused as well ends the task")
    func refusedAgain() async throws {
        let server = TokenServer()
        server.valid.update { $0 = "another" }
        let bench = try await Bench { request, _ in server.answer(request) }
        let session = Session(token: Observed("old"))
        bench.chains.register(authenticator: session)
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        #expect(info.state == .error && info.error?.status == 401 && info.attempts == 1)
        #expect(session.renewals.value == 1 && (1...2).contains(bench.transport.requests.count))
    }

    @Test("a bearer token is renewed by its middleware alone")
    func bearer() async throws {
        let server = TokenServer()
        let token = Observed("old")
        let bench = try await Bench { request, _ in server.answer(request) }
        bench.chains.register(
            request: BearerTokenMiddleware(refresh: { _ in token.update { $0 = "new" } }) { _ in token.value })
        #expect(await bench.finished(try await bench.add("a.bin"))?.state == .complete)
    }

    @Test("a real server: 60 tasks with an expired token renew it once, and one that waits leaves its slot free")
    func expiredTokenAtServer() async throws {
        let (server, live) = try await Self.nginx { $0.maxAction = 4 }
        let session = Session(token: Observed("old"), gate: TestGate())
        live.downloader.middlewares.register(authenticator: session, for: .host("127.0.0.1"))
        var ids: [TaskID] = []
        for number in 1...60 { ids.append(try await live.add("\(server.base)/closed/\(number)")) }
        await session.gate?.reached()
        // Four slots: it would wait for ever if the others held them. It is none of the tasks of that host.
        let open = server.base.replacingOccurrences(of: "127.0.0.1", with: "localhost") + "/open"
        #expect(try await live.fetch(open).state == .complete)
        session.gate?.open()
        for id in ids {
            let info = try #require(await live.downloader.messager.finished(id))
            #expect(info.state == .complete && info.attempts == 1, "\(info)")
        }
        #expect(session.renewals.value == 1)
        for number in 1...60 { #expect(try live.out("\(number)") == Bytes.pattern(count: number)) }
        let sent = try await server.log(atLeast: 61).filter { $0.status == 200 }.map(\.uri).sorted()
        #expect(sent == (["/open"] + (1...60).map { "/closed/\($0)" }).sorted())
    }

    /// A server that takes the token `new` for `/closed/`, and a downloader.
    private static func nginx(_ settings: (inout Configure) -> Void = { _ in }) async throws -> (NginxServer, LiveBench)
    {
        let server = try NginxServer(
            extra: "location /closed/ { if ($http_authorization != \"Bearer new\") { return 401; } }")
        try server.write(content, to: "open")
        for number in 1...60 { try server.write(Bytes.pattern(count: number), to: "closed/\(number)") }
        return (server, try LiveBench(settings))
    }
}
