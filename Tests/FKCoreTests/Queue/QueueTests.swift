import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine

@Suite("Queue, slots and hosts")
struct QueueTests {
    static let content = Bytes.pattern(count: 100)

    @Test("200 tasks with random priorities, two a host: strictly by priority, then by submission")
    func priorities() async throws {
        let bench = try await Bench(isActive: false, content: Self.content) {
            $0.maxAction = 1
            $0.maxConnectionsPerHost = 2
        }
        var random = SeededRandom(seed: 7)
        let tasks = (0..<200).map { (number: $0, priority: Int(random.below(9)) - 4) }
        for (number, priority) in tasks {
            try await bench.add("http://h\(number % 10).example/\(number)") { $0.priority = priority }
        }
        bench.downloader.activateQueue()
        await bench.engine.waitUntilDrained()
        let sorted = tasks.sorted { ($1.priority, $0.number) < ($0.priority, $1.number) }
        #expect(bench.asked == sorted.map { "\($0.number)" })
    }

    @Test("never more than maxAction at once, and none waits for a tick", arguments: [(1, 50), (3, 50), (16, 2_000)])
    func slots(_ maxAction: Int, _ count: Int) async throws {
        let bench = try await Bench(content: Self.content) { $0.maxAction = maxAction }
        let tasks = (0..<count).map { bench.task("http://h\($0 % 7).example/f\($0)") }
        let added = try await bench.engine.add(tasks, barrel: "all", run: true)
        #expect(added.allSatisfy { $0.error == nil && $0.isNew })
        await bench.engine.waitUntilDrained()
        #expect(bench.clock.now == ManualClock().now)
        #expect(bench.transport.requests.count == count && bench.names.count == count)
        #expect(bench.transport.peak <= maxAction)
        #expect(bench.asked == (0..<count).map { "f\($0)" })
        let sum = try await bench.messager.barrelInfo("all")
        #expect(sum.isComplete && sum.total == count && sum.count.received == Int64(100 * count))
        #expect(await bench.engine.taskCounts == (count, 0, 0))
    }

    @Test("a timer ticks once a second: a request of another process is carried out then, and no sooner")
    func tick() async throws {
        let bench = try await Bench(content: Self.content)
        _ = try Mailbox(bench.workPath).post(.add(tasks: [bench.task("a")], barrel: nil, run: true))
        await bench.advance(0.9)
        #expect(bench.transport.requests.isEmpty)
        await bench.advance(0.1)
        await bench.reached("a", .complete)
    }

    @Test("maxAction raised starts waiting tasks at once; lowered it lets running ones finish")
    func liveChange() async throws {
        let gates = (0..<6).map { _ in TestGate() }
        let bench = try await Bench(settings: { $0.maxAction = 2 }) { request, number in
            .file(Self.content, to: request, gate: gates[number - 1])
        }
        for index in 0..<6 { try await bench.add("f\(index)") }
        await bench.transport.started(2)
        try await bench.update { $0.maxAction = 4 }
        await bench.transport.started(4)
        #expect(await bench.engine.taskCounts.running == 4)
        try await bench.update { $0.maxAction = 1 }
        #expect(await bench.engine.taskCounts.running == 4)
        for gate in gates[0..<3] { gate.open() }
        for name in ["f0", "f1", "f2"] { await bench.reached(name, .complete) }
        await bench.sync()
        #expect(bench.transport.requests.count == 4)
        for gate in gates { gate.open() }
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 6)
    }

    @Test("limits also change through a request")
    func setLimits() async throws {
        let bench = try await Bench(content: Self.content)
        let reply = await bench.engine.answer(.setLimits(maxAction: 1_000, rateLimit: 5_000))
        #expect(reply.doneNote != nil)
        #expect(await bench.downloader.configure.maxAction == 256)
        #expect(await bench.downloader.configure.rateLimit == 5_000)
        #expect(await bench.engine.answer(.setLimits(maxAction: nil, rateLimit: -1)).failure != nil)
        _ = await bench.engine.answer(.setLimits(maxAction: nil, rateLimit: 0))
        #expect(await bench.downloader.configure.rateLimit == nil)
    }

    @Test("at most so many at once to one host; another host is not held up")
    func perHost() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: {
            $0.maxAction = 10
            $0.maxConnectionsPerHost = 2
        }) { request, _ in
            .file(Self.content, to: request, gate: gate)
        }
        for index in 0..<4 { try await bench.add("http://a.example/a\(index)") }
        let other = try await bench.add("http://b.example/b")
        let port = try await bench.add("http://a.example:81/c")
        await bench.transport.started(4)
        await bench.sync()
        #expect(Set(bench.asked) == ["a0", "a1", "b", "c"])
        let waiting = try #require(await bench.messager.info("http://a.example/a2"))
        #expect(waiting.state == .idle && waiting.wait?.reason == .host)
        #expect(await bench.state(other) == .action)
        #expect(await bench.state(port) == .action)
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 6)
    }

    @Test("a host pause that ends between two ticks does not keep the engine's thread busy")
    func hostPauseEnds() async throws {
        let bench = try await Bench { request, number in
            number == 1 ? .status(503, [.init("Retry-After", "1")]) : .file(Self.content, to: request)
        }
        await bench.advance(0.5)
        let id = try await bench.add("http://a.example/a")
        await bench.reached("a", .idle, times: 2)
        #expect(await !bench.engine.hosts.pauses.isEmpty)
        await bench.advance(1.1)
        #expect(await bench.engine.hosts.pauses.isEmpty)
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("nothing runs before activateQueue; then everything does")
    func activation() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let id = try await bench.add("a")
        await bench.advance(10)
        #expect(bench.transport.requests.isEmpty)
        #expect(await bench.messager.info(.id(id))?.waiting == .queue)
        bench.downloader.activateQueue()
        bench.downloader.activateQueue()
        #expect(await bench.finished(id)?.state == .complete)
    }

    @Test("a wait for a file is an error while the queue is not active; a download activates it")
    func waiting() async throws {
        let bench = try await Bench(isActive: false, content: Self.content)
        let task = DownloadTask(try await bench.add("a"), "http://h.example/a", in: bench.downloader)
        let error = await #expect(throws: DownloadError.self) { try await task.file }
        #expect(error?.code == .invalidArgument && error?.message.contains("activateQueue()") == true)
        #expect(bench.transport.requests.isEmpty)
        try await bench.downloader.download("http://h.example/b")
        #expect(try await task.file.path == "\(bench.out)/a")
    }

    @Test("a paused queue runs nothing, what is added meanwhile waits, and the bytes are kept")
    func paused() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: number == 1 ? gate : nil, pauseAt: 40)
        }
        let running = try await bench.add("a")
        await gate.reached()
        try await bench.downloader.pause()
        await bench.reached("a", .idle, times: 2)
        gate.open()
        let added = try await bench.add("b")
        await bench.advance(10)
        #expect(bench.transport.requests.count == 1 && bench.transport.running == 0)
        for id in [running, added] { #expect(await bench.messager.info(.id(id))?.waiting == .queue) }
        #expect(await bench.messager.info(.id(running))?.count.received == 40)
        #expect(await bench.downloader.configure.isPaused)
        // New settings do not end a pause.
        var other = Configure(workPath: await bench.downloader.configure.workPath)
        other.maxAction = 7
        try await bench.downloader.update(other)
        await bench.advance(10)
        #expect(bench.transport.requests.count == 1 && bench.transport.running == 0)
        #expect(await bench.downloader.configure.isPaused)
        try await bench.downloader.resume()
        for id in [running, added] { #expect(await bench.finished(id)?.state == .complete) }
        // Nor do old ones begin it again.
        other.isPaused = true
        try await bench.downloader.update(other)
        #expect(await !bench.downloader.configure.isPaused)
        #expect(bench.sent("Range").sorted() == ["-", "-", "bytes=40-"])
    }
}
