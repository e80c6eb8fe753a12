import TestSupport
import Testing

@testable import FKEngine

@Suite("Attempts")
struct MessagerAttemptTests {
    static let content = Bytes.pattern(count: 400_000)

    @Test("the plan A, A, B: each attempt begins, fails with what follows, and the third succeeds")
    func plan() async throws {
        let bench = try await Bench(isActive: false) { request, number in
            switch number {
            case 1: .status(404)
            case 2: .file(Self.content, to: request, cut: 150_000)
            default: .file(Self.content, to: request)
            }
        }
        let a = "http://user:word@a.example/f"
        let id = try await bench.add(a) { $0.mirrors = [a, "http://b.example/f"] }
        let reader = Task { [messager = bench.messager] in
            var infos: [AttemptInfo] = []
            for await info in messager.attempts(.id(id)) { infos.append(info) }
            return infos
        }
        try await bench.turn { $0.hasAttemptListeners }
        await bench.engine.activate()
        let infos = await reader.value
        let masked = "http://***@a.example/f"
        #expect(infos.map(\.number) == [1, 1, 2, 2, 3, 3])
        #expect(infos.map(\.url) == [masked, masked, masked, masked, "http://b.example/f", "http://b.example/f"])
        #expect(infos.enumerated().allSatisfy { $0 % 2 == 1 || $1.phase == .began })
        guard case .failed(let missing, next: .retry(url: masked, at: bench.clock.date)) = infos[1].phase else {
            return unexpected("\(infos[1])")
        }
        #expect(missing.status == 404)
        guard case .failed(let cut, next: .retry(url: "http://b.example/f", _)) = infos[3].phase else {
            return unexpected("\(infos[3])")
        }
        #expect(cut.code == .connectionLost)
        #expect(infos.map(\.kept).dropLast(2) == [0, 0, 0, 150_000])
        #expect(infos[5].phase == .succeeded && infos[5].kept == 400_000)
        try await bench.turn { !$0.hasAttemptListeners }
    }

    @Test("progress comes at the polled interval; a stopped attempt says so")
    func progress() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1_000) }
        let seen = Observed<[AttemptInfo]>([])
        let registration = try await bench.messager.addAttempts("http://h.example/a") { info in
            seen.update { $0.append(info) }
        }
        let id = try await bench.add("a")
        await gate.reached()
        await bench.advance(1)
        await bench.advance(1)
        try await bench.control.suspend(.id(id))
        let infos = await seen.wait { $0.last?.phase == .stopped }
        #expect(
            infos.map(\.phase) == [
                .began, .progressed(ByteCount(received: 1_000, previousReceived: 0, expected: 400_000)),
                .progressed(ByteCount(received: 1_000, previousReceived: 1_000, expected: 400_000)), .stopped,
            ])
        #expect(infos.last?.kept == 1_000)
        #expect(Set(infos.map(\.number)) == [1])
        registration.cancel()
        try await bench.turn { !$0.hasAttemptListeners }
        gate.open()
    }

    @Test("a sequence of attempts goes on through a suspension and ends with the task")
    func suspended() async throws {
        let (bench, id, gate) = try await Bench.held(Self.content, at: 1_000)
        let phases = Observed<[AttemptInfo.Phase]>([])
        let reader = Task { [messager = bench.messager] in
            for await info in messager.attempts(.id(id)) { phases.update { $0.append(info.phase) } }
        }
        try await bench.turn { $0.hasAttemptListeners }
        try await bench.control.suspend(.id(id))
        _ = await phases.wait { $0.last == .stopped }
        gate.open()
        try await bench.control.resume(.id(id))
        await reader.value
        #expect(phases.value == [.stopped, .began, .succeeded])
    }

    @Test("the last failure gives up; dropped bytes have their reason")
    func dropped() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { request, number in
            number == 1
                ? .file(Self.content, etag: "\"1\"", to: request, cut: 300_000)
                : .file(Self.content, etag: "\"2\"", to: request, cut: 100_000)
        }
        let seen = Observed<[AttemptInfo]>([])
        try await bench.messager.addAttempts("http://h.example/a") { info in
            // The clock's step may bring a polled report before the second attempt fails.
            if case .progressed = info.phase { return }
            seen.update { $0.append(info) }
        }.keep()
        try await bench.add("a")
        await bench.retried("a", after: 60)
        await bench.reached("a", .error)
        let infos = await seen.wait { $0.count >= 4 }
        #expect(infos[1].kept == 300_000 && infos[1].dropReason == nil)
        guard case .failed(_, next: .gaveUp) = infos[3].phase else { return unexpected("\(infos[3])") }
        #expect(infos[3].kept == 100_000)
        #expect(infos[3].dropReason?.contains("300000 bytes dropped") == true)
    }

    @Test("is for one task; a closed downloader refuses")
    func refused() async throws {
        let bench = try await Bench(content: Self.content)
        await #expect(throws: DownloadError.self) { try await bench.messager.addAttempts(.all) { _ in } }
        await bench.downloader.close()
        await #expect(throws: DownloadError.self) {
            try await bench.messager.addAttempts("http://h.example/a") { _ in }.keep()
        }
        for await info in bench.messager.attempts("http://h.example/a") { Issue.record("\(info)") }
    }
}

extension Engine {
    fileprivate var hasAttemptListeners: Bool { !reporter.observers.attempts.isEmpty }
}
