import TestSupport
import Testing

@testable import FKEngine

/// Attempts are counted since the last progress.
@Suite("Progress of attempts")
struct AttemptCountTests {
    private static let content = Bytes.pattern(count: 300_000)

    private func record(_ expected: Int64?) -> TaskRecord {
        var record = TaskRecord(
            task: TaskDescription(url: "http://h.example/a"), number: 1, created: Date(timeIntervalSince1970: 0))
        record.startOver(length: expected)
        return record
    }

    @Test("a connection that brings 1 MiB, or 1 % of a smaller file, begins the count anew")
    func step() {
        for (length, step) in [
            (nil, 1 << 20), (30 << 30, 1 << 20), (100 << 20, 1 << 20), (300_000, 3_000), (100, 1), (5, 1),
        ] as [(Int64?, Int64)] {
            #expect(ProgressMark.step(of: length) == step)
            var record = record(length)
            for attempt in 1...4 {
                record.begin(at: Date(timeIntervalSince1970: 0))
                record.recordProgress(received: step - 1)
                #expect(record.countedAttempts == attempt)
            }
            record.begin(at: Date(timeIntervalSince1970: 0))
            record.recordProgress(received: step)
            #expect(record.attempts == 5 && record.countedAttempts == 1 && record.attemptsBeforeProgress == 4)
            record.begin(at: Date(timeIntervalSince1970: 0))
            record.recordProgress(received: step)
            #expect(record.countedAttempts == 2)
            record.undoAttempt()
            #expect(record.countedAttempts == 1)
            record.freshen()
            #expect(record.countedAttempts == 0 && record.progress == nil)
        }
    }

    @Test("bytes that were dropped and fetched again are none")
    func again() {
        var record = record(1_000)
        for _ in 1...3 {
            record.begin(at: Date(timeIntervalSince1970: 0))
            record.recordProgress(received: 500)
            record.dropBytes()
        }
        #expect(record.countedAttempts == 3)
    }

    @Test("the limit and the delay count from there, the next address does not")
    func rules() {
        let policy = RetryPolicy(maxAttempts: 3, baseDelay: .seconds(1), jitter: 0)
        func decide(_ attempt: Int, _ counted: Int?, mirrors: Int = 0) -> RetryRules.Decision {
            RetryRules.decide(
                error: DownloadError(.connectionLost, "x"), attempt: attempt, policy: policy, mirrors: mirrors,
                resumed: true,
                random: 0, counted: counted)
        }
        #expect(decide(3, nil) == .fail && decide(30, 3) == .fail)
        #expect(decide(30, 1) == .retry(after: 1, nextURLIndex: 0, hostPause: nil))
        #expect(decide(30, 2) == .retry(after: 2, nextURLIndex: 0, hostPause: nil))
        #expect(decide(31, 1, mirrors: 1) == .retry(after: 1, nextURLIndex: 1, hostPause: nil))
    }

    @Test("a server that gives a tenth of the file a connection is waited for, with two attempts")
    func patient() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 2 }) { request, _ in
            .file(Self.content, to: request, cut: 30_000)
        }
        let id = try await bench.add("a")
        let begun = bench.clock.now
        try await bench.advance(by: 1) { await bench.state(id).isOver }
        let info = try #require(await bench.finished(id))
        #expect(info.state == .complete, "\(String(describing: info.error))")
        #expect(bench.transport.requests.count == 10)
        #expect(try bench.out("a") == Self.content)
        // Each wait was as long as the first one.
        #expect(bench.clock.now - begun < 30_000_000_000)
    }

    @Test("a server that always ends at the same byte ends it")
    func stuck() async throws {
        let bench = try await Bench(settings: { $0.retry.maxAttempts = 3 }) { request, number in
            number == 1 ? .file(Self.content, to: request, cut: 30_000) : .file(Self.content, to: request, cut: 0)
        }
        let id = try await bench.add("a")
        try await bench.advance(by: 1) { await bench.state(id) == .error }
        #expect(bench.transport.requests.count == 3)
        #expect(try bench.stored(id).progress == ProgressMark(received: 30_000, attempts: 0))
    }
}
