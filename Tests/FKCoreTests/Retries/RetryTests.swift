import TestSupport
import Testing

@Suite("Failures and retries")
struct RetryTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test("delays double up to maxDelay; after maxAttempts the task is in error")
    func backOff() async throws {
        let bench = try await Bench(settings: {
            $0.retry.maxAttempts = 6
            $0.retry.maxDelay = .seconds(5)
        }) { _, _ in
            Bench.Answer([.fail(DownloadError(.connect, "refused", isRetryable: true))])
        }
        let id = try await bench.add("a")
        for (attempt, delay) in [1.0, 2, 4, 5, 5].enumerated() {
            await bench.reached("a", .idle, times: attempt + 2)
            #expect(await bench.messager.info(.id(id))?.waitingUntil == bench.clock.date + delay)
            await bench.advance(delay - 0.001)
            #expect(bench.transport.requests.count == attempt + 1)
            await bench.advance(0.001)
        }
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error && info.attempts == 6 && info.error?.code == .connect)
        await bench.advance(1_000)
        #expect(bench.transport.requests.count == 6)
    }

    @Test("a task's own maxAttempts counts instead")
    func ownAttempts() async throws {
        let bench = try await Bench { _, _ in .status(500) }
        let id = try await bench.add("a") { $0.options.maxAttempts = 1 }
        #expect(await bench.finished(id)?.attempts == 1)
        #expect(await bench.messager.error(.id(id))?.status == 500)
    }

    @Test("Retry-After decides the delay, at most maxRetryAfter", arguments: [("7", 7.0), ("99999999", 600.0)])
    func retryAfter(_ value: String, _ seconds: Double) async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(429, [.init("Retry-After", value)]) : .file(Self.content, to: request)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        await bench.advance(seconds - 1)
        #expect(bench.transport.requests.count == 1)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("a lost connection keeps its bytes and goes on after them")
    func lostConnection() async throws {
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, cut: number <= 2 ? 300 : nil)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        #expect(try bench.stored(id).received == 300)
        await bench.advance(1)
        await bench.reached("a", .idle, times: 3)
        await bench.advance(2)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Range") == ["-", "bytes=300-", "bytes=600-"])
        #expect(try bench.out("a") == Self.content)
    }

    @Test("a mirror at another host is not held up by the first host's Retry-After, and that host is")
    func mirrorDuringPause() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "b.example"
                ? .file(Self.content, to: request) : .status(503, [.init("Retry-After", "100")])
        }
        try await bench.completed("http://a.example/a") { $0.mirrors = ["http://b.example/a"] }
        let later = try await bench.add("http://a.example/later")
        #expect(await bench.messager.info(.id(later))?.wait?.reason == .host)
        #expect(bench.hosts == ["a.example", "b.example"])
        try await bench.completed("http://b.example/free")
    }

    @Test("attempts and the due time outlive the engine")
    func persisted() async throws {
        let clock = ManualClock()
        let first = try await Bench(clock: clock) { _, _ in .status(503) }
        let id = try await first.add("a")
        await first.reached("a", .idle, times: 2)
        #expect(try first.stored(id).attempts == 1)
        await first.downloader.close()
        let second = try await Bench(in: first.folder, clock: clock, content: Self.content)
        #expect(await second.messager.info(.id(id))?.wait?.reason == .retry)
        await second.advance(0.9)
        #expect(second.transport.requests.isEmpty)
        await second.advance(0.1)
        let info = try #require(await second.finished(id))
        #expect(info.state == .complete && info.attempts == 2)
    }

    @Test("a mirror that is next is next after a restart, too")
    func mirrorAfterRestart() async throws {
        let clock = ManualClock()
        let first = try await Bench(clock: clock) { _, _ in .status(503) }
        let id = try await first.add("http://a.example/a") {
            $0.mirrors = ["http://b.example/a", "http://b.example/a"]
        }
        await first.transport.started(2)
        await first.reached("a", .idle, times: 3)
        await first.downloader.close()
        #expect(first.hosts == ["a.example", "b.example"])
        let second = try await Bench(in: first.folder, clock: clock, content: Self.content)
        await second.advance(10)
        #expect(await second.finished(id)?.state == .complete)
        #expect(second.hosts == ["b.example"])
    }

    @Test("a wall clock set back an hour does not stop a retry", arguments: [-3_600.0, 3_600])
    func wallClock(_ shift: Double) async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(503) : .file(Self.content, to: request)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        // The wake-up is set after the report.
        await bench.sync()
        bench.clock.setDate(bench.clock.date + shift)
        await bench.advance(1)
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("a wall clock set back between two engines makes nobody wait longer than the delay was")
    func wallClockRestart() async throws {
        let first = try await Bench { _, _ in .status(503) }
        let id = try await first.add("a")
        await first.reached("a", .idle, times: 2)
        await first.downloader.close()
        let clock = ManualClock()
        clock.setDate(clock.date - 1e9)
        let second = try await Bench(in: first.folder, clock: clock, content: Self.content)
        await second.advance(1)
        #expect(await second.finished(id)?.state == .complete)
    }

    @Test("suspending and resuming is no failure: the number of retries is whole after it")
    func suspendIsNoFailure() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { request, number in
            number <= 3
                ? .file(Self.content, to: request, gate: gate, pauseAt: 10)
                : .file(Self.content, to: request, cut: number == 4 ? 10 : nil)
        }
        let id = try await bench.add("a")
        for round in 1...3 {
            await bench.transport.started(round)
            try await bench.control.suspend(.id(id))
            try await bench.control.resume(.id(id))
        }
        await bench.reached("a", .action, times: 4)
        await bench.reached("a", .idle, times: 5)
        await bench.advance(60)
        try await bench.expect("a", Self.content, of: id)
    }

    @Test("a stop by the user is no attempt: the next engine counts from one, at the same mirror")
    func stopIsNoFailure() async throws {
        let gate = TestGate()
        let folder = try TemporaryFolder()
        for _ in 1...3 {
            let bench = try await Bench(in: folder, settings: { $0.retry.maxAttempts = 2 }) { request, _ in
                .file(Self.content, to: request, gate: gate, pauseAt: 10)
            }
            let id = try await bench.add("http://a.example/a") { $0.mirrors = ["http://b.example/a"] }
            await bench.transport.started(1)
            #expect(await bench.messager.info(.id(id))?.attempts == 1)
            await bench.downloader.close()
            #expect(try bench.stored(id).attempts == 0 && bench.hosts == ["a.example"])
        }
    }

    @Test("401 on a resumed transfer: the request chain signs anew, once")
    func expired() async throws {
        let tokens = Observed(0)
        let bench = try await Bench { request, number in
            switch number {
            case 1: .file(Self.content, to: request, cut: 500)
            case 2: .status(401)
            default: .file(Self.content, to: request)
            }
        }
        bench.chains.onRequest("request step") { request, _ in
            request.setValue("token \(tokens.update { $0 += 1; return $0 })", forHTTPHeaderField: "Authorization")
        }
        let id = try await bench.add("a")
        await bench.retried("a", after: 1)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.sent("Authorization") == ["token 1", "token 2", "token 3"])
        #expect(try bench.out("a") == Self.content)
    }
}
