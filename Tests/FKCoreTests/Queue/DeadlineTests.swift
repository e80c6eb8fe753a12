import TestSupport
import Testing

@Suite("Deadlines and stalls of single tasks")
struct DeadlineTests {
    static let content = Bytes.pattern(count: 400_000)

    /// The deadline as an option, in seconds from now.
    private func deadline(_ seconds: Double, _ bench: Bench) -> @Sendable (inout TaskDescription) -> Void {
        { [date = bench.clock.date + seconds] in $0.options.deadline = date }
    }

    private func isMissed(_ info: DownloadInfo?) -> Bool {
        info?.state == .error && info?.error?.code == .deadlineExceeded && info?.waiting == nil
    }

    @Test("a running task fails at its deadline, keeps its bytes, and is not tried again")
    func running() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 300_000)
        }
        let ends = Observed<[AttemptInfo.Phase]>([])
        bench.chains.onResponse("response step") { response in
            if let error = response.error {
                #expect(error.code == .deadlineExceeded && response.fileURL == nil)
            }
        }
        try await bench.messager.addAttempts("http://h.example/a") { info in ends.update { $0.append(info.phase) } }
            .keep()
        let id = try await bench.add("a", deadline(10, bench))
        await gate.reached()
        await bench.advance(9.999)
        #expect(await bench.state(id) == .action)
        await bench.advance(0.001)
        #expect(isMissed(await bench.finished(id)))
        try await bench.turn { $0.taskCounts.running == 0 }
        let phases = await ends.wait { $0.last?.isEnd == true }
        let error = try #require(await bench.messager.error(.id(id)))
        #expect(phases.last == .failed(error, next: .gaveUp))
        #expect(try bench.stored(id).state == .error && bench.stored(id).received >= 300_000)
        await bench.advance(1_000)
        #expect(bench.transport.requests.count == 1)
        // Without another deadline a verb changes nothing: no request is sent.
        try await bench.control.retry(.id(id))
        #expect(isMissed(await bench.finished(id)))
        #expect(bench.transport.requests.count == 1)
        // A later deadline resumes it where it stopped.
        try await bench.add("a", deadline(10, bench))
        #expect(await bench.finished(id)?.error?.code == nil)
        #expect(await bench.state(id) == .complete)
        #expect(bench.sent("Range").last?.hasPrefix("bytes=") == true)
        #expect(try bench.out("a") == Self.content)
        gate.open()
    }

    @Test("a waiting task fails without a request: behind another one, or before a retry")
    func waiting() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            request.urlRequest.url?.lastPathComponent == "first"
                ? .file(Self.content, to: request, gate: gate) : .status(503, [.init("Retry-After", "60")])
        }
        let told = Observed<[TaskID]>([])
        bench.chains.onResponse("response step") { response in
            if response.error?.code == .deadlineExceeded { told.update { $0.append(response.task.id) } }
        }
        let retried = try await bench.add("retried", deadline(20, bench))
        await bench.reached("retried", .idle, times: 2)
        let first = try await bench.add("http://other.example/first")
        await gate.reached()
        let queued = try await bench.add("http://other.example/queued", deadline(30, bench))
        await bench.advance(20)
        #expect(isMissed(await bench.finished(retried)))
        #expect(await bench.state(queued) == .idle)
        await bench.advance(10)
        #expect(isMissed(await bench.finished(queued)))
        #expect(try bench.stored(queued).error?.code == .deadlineExceeded)
        #expect(bench.transport.requests.count == 2)
        _ = await told.wait { $0 == [retried, queued] }
        gate.open()
        #expect(await bench.finished(first)?.state == .complete)
    }

    @Test("a task that begins after its deadline sends nothing; a suspended one stays suspended until then")
    func late() async throws {
        let bench = try await Bench(content: Self.content)
        let late = try await bench.add("late", deadline(-1, bench))
        #expect(isMissed(await bench.finished(late)))
        let hold = bench.holdRequests()
        let id = try await bench.add("a", deadline(10, bench))
        await bench.reached("a", .action)
        async let suspended = bench.control.suspend(.id(id))
        await bench.reached("a", .suspend)
        hold.open()
        _ = try await suspended
        await bench.advance(20)
        #expect(await bench.state(id) == .suspend)
        try await bench.control.resume(.id(id))
        #expect(isMissed(await bench.finished(id)))
        #expect(bench.transport.requests.isEmpty)
    }

    @Test("a new engine fails what is past its deadline, and nothing that is complete")
    func restart() async throws {
        let clock = ManualClock()
        let bench = try await Bench(clock: clock) { request, _ in
            request.urlRequest.url?.lastPathComponent == "done"
                ? .file(Self.content, to: request) : .status(503, [.init("Retry-After", "600")])
        }
        let done = try await bench.completed("done", deadline(10, bench))
        let open = try await bench.add("open", deadline(10, bench))
        await bench.reached("open", .idle, times: 2)
        await bench.downloader.close()
        clock.advance(seconds: 10)
        let next = try await Bench(in: bench.folder, clock: clock, content: Self.content)
        #expect(isMissed(await next.finished(open)))
        #expect(await next.state(done) == .complete)
        #expect(next.transport.requests.isEmpty)
    }

    @Test("a deadline that passes in a response middleware takes effect when that has returned")
    func responding() async throws {
        let bench = try await Bench(content: Self.content)
        let gate = TestGate()
        bench.chains.onResponse("response step") { response in
            if response.error == nil { await gate.passed() }
        }
        let id = try await bench.add("a", deadline(10, bench))
        await gate.reached()
        await bench.advance(10)
        #expect(isMissed(await bench.messager.info(.id(id))))
        gate.open()
        try await bench.turn { $0.taskCounts.running == 0 }
        #expect(isMissed(await bench.finished(id)))
        // The file has lost its final name and is a part again.
        #expect(bench.names.allSatisfy { $0.hasPrefix(".") } && bench.names.count == 1)
        try await bench.add("a")
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.count == 1)
        #expect(bench.names == ["a"])
        try await bench.control.trash(.id(id))
        #expect(bench.names.isEmpty)
    }

    @Test("a deadline can be moved while the task runs, without another request")
    func moved() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 300_000) }
        let id = try await bench.add("a", deadline(10, bench))
        await gate.reached()
        try await bench.add("a", deadline(30, bench))
        await bench.advance(20)
        #expect(await bench.state(id) == .action)
        try await bench.add("a", deadline(5, bench))
        await bench.advance(5)
        #expect(isMissed(await bench.finished(id)))
        #expect(bench.transport.requests.count == 1)
        gate.open()
    }

    @Test("the time for a run counts over its attempts, and begins anew with a retry and in a new engine")
    func runTime() async throws {
        let clock = ManualClock()
        let bench = try await Bench(clock: clock) { _, _ in .status(503, [.init("Retry-After", "6")]) }
        let id = try await bench.add("a") { $0.options.runSeconds = 10 }
        await bench.reached("a", .idle, times: 2)
        await bench.advance(6)
        await bench.reached("a", .idle, times: 3)
        await bench.advance(4)
        #expect(isMissed(await bench.finished(id)))
        #expect(bench.transport.requests.count == 2)
        try await bench.control.retry(.id(id))
        // The server's pause ends.
        await bench.advance(2)
        await bench.reached("a", .idle, times: 5)
        #expect(bench.transport.requests.count == 3)
        await bench.downloader.close()
        clock.advance(seconds: 60)
        let next = try await Bench(in: bench.folder, clock: clock, content: Self.content)
        #expect(await next.finished(id)?.state == .complete)
    }

    @Test("a task's own stall time-out goes to the transport, over its time-out and the downloader's")
    func stall() async throws {
        let bench = try await Bench(settings: { $0.transport.stallTimeout = .seconds(90) }) { request, _ in
            .file([1], to: request)
        }
        let changes: [(String, @Sendable (inout TaskDescription) -> Void)] = [
            ("a", { _ in }), ("b", { $0.options.timeout = .seconds(7) }),
            ("c", { $0.options.stallTimeout = .seconds(3) }),
            (
                "d",
                {
                    $0.options.timeout = .seconds(7)
                    $0.options.stallTimeout = .milliseconds(2_500)
                }
            ),
        ]
        var seen: [Duration] = []
        for (name, change) in changes {
            _ = await bench.finished(try await bench.add(name, change))
            seen.append(try #require(bench.transport.requests.last).options.stallTimeout)
        }
        #expect(seen == [.seconds(90), .seconds(7), .seconds(3), .milliseconds(2_500)])
        #expect(bench.transport.requests.last?.options.connectTimeout == .seconds(7))
    }

    @Test("both stand in the info file, as seconds, and a record without them is read")
    func stored() throws {
        var builder = try Builder("http://h.example/a")
        builder.options.stallTimeout = .milliseconds(1_500)
        builder.options.deadline = Date(timeIntervalSince1970: 1_700_000_000.25)
        let record = TaskRecord(task: builder.description, number: 1, created: Date(timeIntervalSince1970: 0))
        let json = try record.json()
        let text = String(decoding: json, as: UTF8.self)
        #expect(text.contains("\"options\":{\"deadline\":1700000000.25,\"stallTimeout\":1.5}"), "\(text)")
        let read = try json.withUnsafeBytes { try TaskRecord.read($0) }
        var task = builder.description
        task.words = []
        #expect(read.task == task)
        #expect(read.task.options.stallTimeout == .seconds(1.5))
        builder.options.stallTimeout = nil
        builder.options.deadline = nil
        #expect(!builder.description.hasOptions)
    }
}

extension AttemptInfo.Phase {
    fileprivate var isEnd: Bool {
        switch self {
        case .began, .progressed: false
        case .succeeded, .failed, .stopped: true
        }
    }
}
