import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("Handles: decisions")
struct HandleTests {
    static let id = TaskID(url: "http://h/a")

    static func info(_ state: DownloadState) -> DownloadInfo {
        var info = DownloadInfo(id: id, url: "http://h/a", state: state)
        if state == .complete { info.path = "/tmp/a" }
        if state == .error { info.error = DownloadError(.httpStatus, "404") }
        return info
    }

    /// Nil means a file.
    static func code(_ result: Result<URL, DownloadError>) -> DownloadError.Code? {
        if case .failure(let error) = result { return error.code }
        return nil
    }

    @Test("what a wait for a file comes to, in every state", arguments: DownloadState.allCases, [false, true])
    func outcome(_ state: DownloadState, _ isCancelled: Bool) {
        let info = Self.info(state)
        let expected: DownloadError.Code? =
            switch state {
            case .complete: nil
            case .error: .httpStatus
            case .idle, .action, .suspend, .cancel, .unknown: .cancelled
            }
        #expect(
            Self.code(FileOutcome.judge(last: info, present: info, isCancelled: isCancelled) { _ in false }) == expected
        )
        #expect(
            Self.code(FileOutcome.judge(last: nil, present: info, isCancelled: isCancelled) { _ in false }) == expected)
    }

    @Test("no task at all is not found; one that went meanwhile was cancelled")
    func missing() {
        #expect(Self.code(FileOutcome.judge(last: nil, present: nil, isCancelled: false)) == .notFound)
        #expect(Self.code(FileOutcome.judge(last: nil, present: nil, isCancelled: true)) == .cancelled)
        #expect(Self.code(FileOutcome.judge(last: Self.info(.action), present: nil, isCancelled: false)) == .cancelled)
    }

    @Test("a task that was queued again since its end counts as it ended")
    func again() {
        let result = FileOutcome.judge(last: Self.info(.error), present: Self.info(.action), isCancelled: false)
        #expect(Self.code(result) == .httpStatus)
    }

    @Test("the remaining time needs a length and a speed, and stays within a century")
    func remaining() {
        #expect(RemainingTime.estimate(received: 50, expected: 100, bytesPerSecond: 10) == .seconds(5))
        #expect(RemainingTime.estimate(received: 100, expected: 100, bytesPerSecond: 10) == .zero)
        #expect(RemainingTime.estimate(received: 200, expected: 100, bytesPerSecond: 10) == .zero)
        #expect(RemainingTime.estimate(received: 0, expected: nil, bytesPerSecond: 10) == nil)
        #expect(RemainingTime.estimate(received: 0, expected: 100, bytesPerSecond: 0) == nil)
        #expect(RemainingTime.estimate(received: 0, expected: .max, bytesPerSecond: 1e-9) == .seconds(3_200_000_000))
    }

    // MARK: Who waits

    @Test("only the last caller that is cancelled stops the download")
    func last() async {
        let waiters = DownloadWaiters()
        let stops = Observed(0)
        await waiters.join(Self.id)
        await waiters.join(Self.id)
        await waiters.leave(Self.id) { stops.update { $0 += 1 } }
        #expect(stops.value == 0 && waiters.count(Self.id) == 1)
        await waiters.leave(Self.id) { stops.update { $0 += 1 } }
        #expect(stops.value == 1 && waiters.count(Self.id) == 0)
    }

    @Test("a caller that comes while the download is being stopped waits for the end of that")
    func joinWhileStopping() async {
        let waiters = DownloadWaiters()
        let (gate, log) = (TestGate(), Observed<[String]>([]))
        await waiters.join(Self.id)
        async let left: Void = waiters.leave(Self.id) {
            await gate.passed()
            log.update { $0.append("stopped") }
        }
        await gate.reached()
        async let joined: Void = {
            await waiters.join(Self.id)
            log.update { $0.append("joined") }
        }()
        gate.open()
        _ = await (left, joined)
        #expect(log.value == ["stopped", "joined"] && waiters.count(Self.id) == 1)
    }

    @Test("who waits for the file of a handle keeps the download of a cancelled call running")
    func handleWaits() async throws {
        let gate = TestGate()
        let content = Bytes.pattern(count: 300_000)
        let bench = try await Bench { request, _ in
            .file(content, to: request, gate: gate, pauseAt: 1_000)
        }
        let url = "http://h.example/a"
        let call = Task { try await bench.downloader.download(url) }
        await gate.reached()
        let task = try #require(await bench.downloader.task(.url(url)))
        let waiter = Task { try await task.file }
        while bench.downloader.waiters.count(task.id) < 2 { await Task.yield() }
        call.cancel()
        await #expect(throws: DownloadError.self) { _ = try await call.value }
        #expect(await bench.state(task.id) == .action)
        gate.open()
        #expect(try await waiter.value.lastPathComponent == "a")
        #expect(bench.downloader.waiters.count(task.id) == 0)
    }

    @Test("listeners are removed by their number, by their target and by their end, whatever others there are")
    func listeners() {
        let observers = Observers()
        let ended = Locked(0)
        func add(_ target: Observers.Target, end: (@Sendable () -> Void)? = nil) -> UInt64 {
            let listener = Observers.TaskListener(number: observers.number()) { _ in }
            observers.add(listener, for: target, end: end)
            return listener.number
        }
        let (one, two) = (Observers.Target.id(Self.id), Observers.Target.url("http://h/b"))
        let end: @Sendable () -> Void = { ended.withLock { $0 += 1 } }
        let numbers = [add(one), add(one, end: end), add(two), add(two, end: end)]
        observers.remove(numbers[0])
        #expect(observers.tasks[one]?.map(\.number) == [numbers[1]])
        observers.endInfoSequences(one)
        #expect(observers.tasks[one] == nil && ended.withLock(\.self) == 1)
        observers.removeAll(two)
        #expect(observers.tasks.isEmpty && ended.withLock(\.self) == 2)
        numbers.forEach { observers.remove($0) }
        #expect(!observers.wantsReports)
    }
}
