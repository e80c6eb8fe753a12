import TestSupport
import Testing

@testable import FKCore

/// The rules of `AuthenticatorTests`, against nginx and over the network.
@Suite("A real server checks tokens", .timeLimit(.minutes(10)))
struct TokenServerTests {
    private static let count = 60

    /// One token for all tasks. Its renewal waits for the gate.
    private struct Session: Authenticator {
        let token = Observed("expired")
        let renewals = Observed(0)
        let gate = FakeGate()
        let renew: @Sendable () throws -> String

        func authenticate(_ request: inout URLRequest, for task: TaskContext) async throws {
            request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
        }
        func refresh(after failure: AttemptFailure) async throws {
            renewals.update { $0 += 1 }
            await gate.passed()
            let fresh = try renew()
            token.update { $0 = fresh }
        }
    }

    private let nginx: NginxServer
    private let live: LiveBench

    /// Everything below `/guarded/` needs the token `valid`; there are 4 slots.
    init() throws {
        nginx = try NginxServer(
            extra: #"location /guarded/ { if ($http_authorization != "Bearer valid") { return 401; } }"#)
        live = try LiveBench { $0.maxAction = 4 }
        try FileManager.default.createDirectory(
            at: nginx.root.appendingPathComponent("guarded"), withIntermediateDirectories: true)
        for number in 1...Self.count { try nginx.write(Self.content(number), to: "guarded/\(number)") }
        try nginx.write([1, 2, 3], to: "open")
    }

    private static func content(_ number: Int) -> [UInt8] { Bytes.pattern(count: 20_000, seed: UInt64(number)) }

    /// Adds all tasks, and waits until the server has refused each of them once.
    private func refused(_ session: Session) async throws -> [TaskID] {
        live.downloader.middlewares.register(authenticator: session, for: .host("127.0.0.1"))
        var ids: [TaskID] = []
        for number in 1...Self.count { ids.append(try await live.add("\(nginx.base)/guarded/\(number)")) }
        #expect(try await nginx.log(atLeast: Self.count).map(\.status) == Array(repeating: 401, count: Self.count))
        return ids
    }

    @Test("60 tasks with one expired token: one renewal, each file once, and nobody who waits has a slot")
    func expired() async throws {
        let session = Session { "valid" }
        let ids = try await refused(session)
        // All 60 wait for the renewal, and another host's file finds a free slot.
        let open = try await live.fetch("http://localhost:\(nginx.port)/open")
        #expect(open.state == .complete && session.renewals.value == 1)
        session.gate.open()
        for id in ids {
            let info = try #require(await live.downloader.messager.finished(id))
            #expect(info.state == .complete && info.attempts == 1, "\(String(describing: info.error))")
        }
        for number in 1...Self.count { #expect(try live.out("\(number)") == Self.content(number)) }
        let log = try await nginx.log(atLeast: 2 * Self.count + 1)
        let delivered = log.filter { $0.uri.hasPrefix("/guarded/") && $0.status == 200 }.map(\.uri)
        #expect(log.count == 2 * Self.count + 1 && Set(delivered).count == Self.count)
        #expect(delivered.count == Self.count && session.renewals.value == 1)
        await live.downloader.close()
    }

    @Test("a renewal that fails ends all of them with its reason, and asks the server nothing more")
    func failed() async throws {
        struct LoggedOut: Error, CustomStringConvertible { var description: String { "logged out" } }
        let session = Session { throw LoggedOut() }
        let ids = try await refused(session)
        session.gate.open()
        for id in ids {
            let error = try #require(await live.downloader.messager.finished(id)?.error)
            #expect(error.message.contains("could not be renewed: logged out"))
        }
        #expect(try nginx.log().count == Self.count && session.renewals.value == 1 && live.names == [])
        await live.downloader.close()
    }

    @Test("a renewed token that is refused as well ends all of them, after one request more for each")
    func refusedAgain() async throws {
        let session = Session { "wrong" }
        let ids = try await refused(session)
        session.gate.open()
        for id in ids {
            let info = try #require(await live.downloader.messager.finished(id))
            #expect(info.state == .error && info.error?.status == 401 && info.attempts == 1)
        }
        #expect(try await nginx.log(atLeast: 2 * Self.count).count == 2 * Self.count && session.renewals.value == 1)
        await live.downloader.close()
    }
}
