import TestSupport
import Testing

@testable import FKEngine

@Suite("Out of descriptors")
struct DescriptorTests {
    private static let outOfDescriptors = DownloadError(
        .connect, "The server could not be reached.", underlying: "socket: \(String(cString: strerror(EMFILE)))",
        isRetryable: true)

    @Test("the limit says how many tasks there is room for, and there is always room for one")
    func limit() {
        #expect([1_024, 64, 30, 24, 16, 0].map { DescriptorBudget(limit: $0).slots } == [250, 10, 1, 1, 1, 1])
    }

    @Test("where they run out nevertheless, fewer run, and one more after each while")
    func runOut() {
        var budget = DescriptorBudget(limit: 64)
        budget.ranOut(running: 2, now: 0)
        #expect(budget.slots == 2)
        budget.relax(now: DescriptorBudget.patience - 1)
        #expect(budget.slots == 2)
        budget.relax(now: DescriptorBudget.patience)
        #expect(budget.slots == 3)
        for step in 2...40 { budget.relax(now: Int64(step) * DescriptorBudget.patience) }
        #expect(budget.slots == 10)
        budget.ranOut(running: 0, now: 0)
        #expect(budget.slots == 1)
    }

    @Test("a task that finds no descriptor waits for the others; it was no attempt")
    func waits() async throws {
        let content = Bytes.pattern(count: 1_000)
        let gate = TestGate()
        let asked = Observed(0)
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 1 }) { request, _ in
            if request.urlRequest.url?.lastPathComponent == "a" { return .file(content, to: request, gate: gate) }
            let isFirst = asked.next() == 1
            return isFirst ? Bench.Answer([.fail(Self.outOfDescriptors)]) : .file(content, to: request)
        }
        let first = try await bench.add("a")
        await bench.reached("a", .action)
        let second = try await bench.add("b")
        await bench.reached("b", .idle, times: 2)
        gate.open()
        #expect(await bench.finished(first)?.state == .complete)
        let end = await bench.finished(second)
        #expect(end?.state == .complete && end?.attempts == 1)
    }

    @Test("without any other task it is tried again after a while, however often; no attempt counts")
    func aloneWithoutDescriptor() async throws {
        let content = Bytes.pattern(count: 1_000)
        let asked = Observed(0)
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 1 }) { request, _ in
            let count = asked.next()
            return count <= 3 ? Bench.Answer([.fail(Self.outOfDescriptors)]) : .file(content, to: request)
        }
        let task = try await bench.add("a")
        for time in 1...3 {
            await bench.reached("a", .idle, times: time + 1)
            bench.clock.advance(seconds: RetryRules.descriptorDelay)
        }
        let end = await bench.finished(task)
        #expect(end?.state == .complete && end?.attempts == 1)
    }
}
