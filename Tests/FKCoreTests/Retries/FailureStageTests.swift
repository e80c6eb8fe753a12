import TestSupport
import Testing

@testable import FKEngine

@Suite("Middlewares decide on failures and heads")
struct FailureStageTests {
    static let content = Bytes.pattern(count: 1_000)

    @Test("the first decision counts, by priority and then by registration")
    func order() async throws {
        let asked = Observed<[String]>([])
        let bench = try await Bench { _, _ in .status(404) }
        bench.chains.onFailure("third") { _ in
            asked.update { $0.append("third") }
            return .fail(DownloadError(.rejected, "third decides"))
        }
        bench.chains.onFailure("fourth") { _ in
            asked.update { $0.append("fourth") }
            return .useRules
        }
        bench.chains.onFailure("second", priority: 50) { failure in
            asked.update { $0.append("second \(failure.error.status ?? 0) \(failure.response?.statusCode ?? 0)") }
            return .useRules
        }
        bench.chains.onFailure("other", priority: 1, for: .host("other.example")) { _ in
            asked.update { $0.append("other") }
            return .useRules
        }
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        #expect(info.error?.message == "third decides" && info.state == .error)
        #expect(asked.value == ["second 404 404", "third"])
    }

    @Test("a retry comes after its time, within the limit of attempts")
    func retryAfter() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { _, _ in .status(404) }
        bench.chains.onFailure("again") { _ in .retry(after: .seconds(30)) }
        let id = try await bench.add("a.bin")
        await bench.reached("a.bin", .idle, times: 2)
        await bench.advance(29)
        #expect(bench.transport.requests.count == 1)
        await bench.advance(1)
        let info = try #require(await bench.finished(id))
        #expect(info.state == .error && info.error?.status == 404 && info.attempts == 2)
        #expect(bench.transport.requests.count == 2)
    }

    @Test("a retry from another address fetches the file from there")
    func retryFrom() async throws {
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "b.example" ? .file(Self.content, to: request) : .status(403)
        }
        bench.chains.onFailure("moved") { _ in
            URL(string: "http://b.example/a.bin").map { .retry(from: $0) } ?? .useRules
        }
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        #expect(info.state == .complete && info.url == "http://h.example/a.bin")
        #expect(try bench.out("a.bin") == Self.content)
    }

    @Test(
        "in a repair, a retry from another address asks that one, and no mirror before it",
        arguments: ["http://b.example/a.bin", "http://h.example/a.bin"])
    func retryFromInRepair(_ address: String) async throws {
        let isRepair = Locked(false)
        let hasFailed = Locked(false)
        let bench = try await Bench { request, _ in
            guard isRepair.withLock(\.self) else { return .file(Self.content, to: request) }
            return hasFailed.withLock(\.self) ? .file(Self.content, to: request) : .status(403)
        }
        bench.chains.onFailure("moved") { _ in
            hasFailed.withLock { $0 = true }
            return URL(string: address).map { .retry(from: $0) } ?? .useRules
        }
        let id = try await bench.completed("a.bin") {
            $0.mirrors = ["http://m.example/a.bin", "http://n.example/a.bin"]
        }
        try bench.folder.write(Self.content.map { ~$0 }, to: "out/a.bin")
        isRepair.withLock { $0 = true }
        let before = bench.transport.requests.count
        _ = await bench.engine.answer(.renew([Renewal(id, damaged: [0..<Int64(Self.content.count)])]))
        #expect(await bench.finished(id)?.state == .complete)
        let asked = bench.transport.requests.dropFirst(before).compactMap { $0.urlRequest.url?.absoluteString }
        #expect(asked == ["http://m.example/a.bin", address])
    }

    @Test("RetryRequest for a failure begins another attempt")
    func retryRequest() async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(404) : .file(Self.content, to: request)
        }
        let heard = Observed<[String]>([])
        bench.chains.onResponse("late") { response in
            heard.update { $0.append(response.error.map { "\($0.status ?? 0)" } ?? "file") }
            if response.error != nil { throw RetryRequest(reason: "not there yet") }
        }
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        #expect(info.state == .complete && info.attempts == 2)
        #expect(heard.value == ["404", "file"])
    }

    @Test(
        "a task that waits for a decision can be cancelled, suspended and removed",
        arguments: ["cancel", "suspend", "trash"])
    func stopped(_ verb: String) async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request, cut: 400) }
        let gate = TestGate()
        bench.chains.onFailure("slow") { _ in
            await withTaskCancellationHandler {
                await gate.passed()
            } onCancel: {
                gate.open()
            }
            return .useRules
        }
        let id = try await bench.add("a.bin")
        await gate.reached()
        switch verb {
        case "cancel": _ = try await bench.control.cancel(.id(id))
        case "suspend": _ = try await bench.control.suspend(.id(id))
        default: _ = try await bench.control.trash(.id(id))
        }
        switch verb {
        case "cancel":
            #expect(await bench.state(id) == .cancel && bench.names == [])
        case "suspend":
            let record = try bench.stored(id)
            #expect(record.state == .suspend && record.received == 400)
        default:
            #expect(await bench.state(id) == .unknown && bench.names == [])
        }
    }

    @Test("close() while a task waits for a decision keeps its bytes")
    func closed() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request, cut: 400) }
        let gate = TestGate()
        bench.chains.onFailure("slow") { _ in
            await withTaskCancellationHandler {
                await gate.passed()
            } onCancel: {
                gate.open()
            }
            return .useRules
        }
        let id = try await bench.add("a.bin")
        await gate.reached()
        await bench.engine.close()
        #expect(try bench.stored(id).received == 400)
    }

    // MARK: Heads

    @Test("a refused head: no byte is written, and the reason is the middleware's", arguments: [0, 1_000, 600_000])
    func refusedHead(_ count: Int) async throws {
        let content = Bytes.pattern(count: count)
        let bench = try await Bench(content: content)
        let seen = Observed<[Int64]>([])
        bench.chains.onHead("size") { head, _ in
            seen.update { $0.append(head.expectedContentLength) }
            throw DownloadError(.init("unwanted"), "no files of \(head.expectedContentLength) bytes")
        }
        let info = try #require(await bench.finished(try await bench.add("a.bin")))
        #expect(info.error?.code.rawValue == "unwanted" && info.count.received == 0)
        #expect(seen.value == [Int64(count)] && bench.names == [])
    }

    @Test("an accepted head: the file is complete", arguments: [0, 1_000, 600_000])
    func acceptedHead(_ count: Int) async throws {
        let content = Bytes.pattern(count: count)
        let bench = try await Bench(content: content)
        let seen = Observed(0)
        bench.chains.onHead("look") { _, task in seen.update { $0 += task.attempt } }
        #expect(await bench.finished(try await bench.add("a.bin"))?.state == .complete)
        #expect(try bench.out("a.bin") == content && seen.value == 1)
    }

    @Test("a head that asks for another attempt")
    func retriedHead() async throws {
        let bench = try await Bench(content: Self.content)
        bench.chains.onHead("later") { _, task in
            if task.attempt == 1 { throw RetryRequest(reason: "being built", delay: .seconds(5)) }
        }
        let id = try await bench.add("a.bin")
        await bench.reached("a.bin", .idle, times: 2)
        await bench.advance(5)
        #expect(await bench.finished(id)?.attempts == 2)
        #expect(try bench.out("a.bin") == Self.content)
    }
}

@Suite("What a decision on a failure means") struct FailureDecisionTests {
    private static let url = URL(fileURLWithPath: "/a")
    private static let rules = RetryRules.Decision.retry(after: 7, nextURLIndex: 3, hostPause: 7)

    private static func facts(_ attempts: Int, isRepeated: Bool = false) -> FailureStage.Facts {
        .init(
            rules: rules, attempts: attempts, maxAttempts: 3, nextURLIndex: 1, isRepeated: isRepeated, longestDelay: 60)
    }

    @Test("every decision, below the limit of attempts and at it", arguments: [false, true])
    func table(_ isRepeated: Bool) {
        let below = Self.facts(2, isRepeated: isRepeated)
        let at = Self.facts(3, isRepeated: isRepeated)
        let atOnce = RetryRules.Decision.retry(after: 0, nextURLIndex: 1, hostPause: nil)
        #expect(FailureStage.next(.useRules, below) == Self.rules)
        #expect(FailureStage.next(.useRules, at) == Self.rules)
        #expect(FailureStage.next(.fail(DownloadError(.rejected, "")), below) == .fail)
        #expect(FailureStage.next(.retry(after: .seconds(-1)), below) == atOnce)
        #expect(
            FailureStage.next(.retry(after: .seconds(90)), below)
                == .retry(after: 60, nextURLIndex: 1, hostPause: nil))
        #expect(FailureStage.next(.retry(after: .zero), at) == .fail)
        #expect(
            FailureStage.next(.relinked(Self.url), below) == .retry(after: 0, nextURLIndex: 0, hostPause: nil))
        #expect(FailureStage.next(.relinked(Self.url), at) == .fail)
        #expect(FailureStage.next(.renewed, below) == (isRepeated ? atOnce : .askAgain))
        #expect(FailureStage.next(.renewed, at) == (isRepeated ? .fail : .askAgain))
    }
}
