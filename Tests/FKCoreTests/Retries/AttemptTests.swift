import TestSupport
import Testing

@testable import FKEngine
@testable import FKStore

@Suite("One attempt, and the work of its run")
struct AttemptTests {
    private func attempt(mirrors: [String] = []) -> (Attempt, TaskRecord) {
        var task = TaskDescription(url: "http://a.example/x")
        task.mirrors = mirrors
        var record = TaskRecord(task: task, number: 1, created: Date(timeIntervalSince1970: 0))
        record.edit { $0.ranges = [SavedRange(start: 0, end: 100, position: 40)] }
        let entry = TaskEntry(record: record, info: InfoHandle(generation: 0, slotSize: 0), isNew: false)
        record.begin(at: Date(timeIntervalSince1970: 1))
        return (Attempt(entry, now: 0), record)
    }

    private func decide(_ attempt: Attempt, _ record: TaskRecord, _ code: DownloadError.Code) -> RetryRules.Decision {
        var policy = RetryPolicy()
        policy.jitter = 0
        return attempt.decide(
            DownloadError(code, "x"), of: record, from: "http://a.example/x", received: 40, isResumed: false,
            policy: policy,
            random: 0)
    }

    @Test("a failure of the server moves on to the mirror; a refused existing file fails, whatever mirrors there are")
    func existing() {
        var (attempt, record) = attempt(mirrors: ["http://b.example/x"])
        #expect(
            decide(attempt, record, .checksumMismatch) == .retry(after: 0, nextURLIndex: 1, hostPause: nil))
        attempt.refuseExisting()
        #expect(decide(attempt, record, .checksumMismatch) == .fail)
    }

    @Test("the average speed counts the bytes of this attempt; all of them once those before were dropped")
    func speed() {
        var (attempt, _) = attempt()
        #expect(attempt.averageSpeed(received: 40, now: 1_000_000_000) == nil)
        #expect(attempt.averageSpeed(received: 60, now: 2_000_000_000) == 10)
        attempt.drop(because: "one")
        attempt.drop(because: "two")
        #expect(attempt.dropReason == "one")
        #expect(attempt.averageSpeed(received: 60, now: 2_000_000_000) == 30)
    }

    @Test("work is taken once; a stop that drops the bytes is final")
    func work() throws {
        var work = RunWork()
        work.request(.prove)
        guard case .prove = work.nextStep() else { return unexpected("no work") }
        #expect(work.nextStep() == nil)
        try work.check()
        work.stop(.keepingBytes)
        work.stop(.droppingBytes)
        work.stop(.keepingBytes)
        #expect(work.stop == .droppingBytes)
        #expect(throws: DownloadError.self) { try work.check() }
        #expect(!work.isOver)
        work.end()
        #expect(work.isOver)
    }
}
