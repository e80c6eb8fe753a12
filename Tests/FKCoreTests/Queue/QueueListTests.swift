import TestSupport
import Testing

@Suite("Waiting and running lists")
struct QueueListTests {
    static let content = Bytes.pattern(count: 100)

    private func names(_ infos: [DownloadInfo]) -> [String] {
        infos.map { String($0.url.split(separator: "/").last ?? "") }
    }

    @Test(
        "the waiting list is the order in which the tasks then start, the running list that in which they did",
        arguments: QueueOrder.allCases, [1, 2, 3])
    func order(_ order: QueueOrder, _ limit: Int) async throws {
        let gates = (0..<9).map { _ in TestGate() }
        let bench = try await Bench(settings: {
            $0.maxAction = limit
            $0.order = order
        }) { request, number in .file(Self.content, to: request, gate: gates[number - 1]) }
        for index in 0..<limit { try await bench.add("r\(index)") }
        for name in ["a", "b", "c"] { try await bench.add(name) }
        try await bench.add("urgent") { $0.priority = 5 }
        try await bench.add("late") { $0.priority = -1 }
        await bench.transport.started(limit)
        #expect(try names(await bench.messager.running()) == (0..<limit).map { "r\($0)" })
        let waiting = try names(await bench.messager.waiting())
        #expect(waiting == ["urgent"] + (order == .fifo ? ["a", "b", "c"] : ["c", "b", "a"]) + ["late"])
        for (index, gate) in gates.enumerated().prefix(limit + 5) {
            gate.open()
            await bench.transport.started(min(limit + index + 1, limit + 5))
        }
        await bench.engine.waitUntilDrained()
        #expect(Array(bench.asked.dropFirst(limit)) == waiting)
        #expect(try await bench.messager.waiting().isEmpty)
        #expect(try await bench.messager.running().isEmpty)
    }

    @Test("a change of the order and of maxAction shows at once")
    func live() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            .file(Self.content, to: request, gate: gate)
        }
        for name in ["a", "b", "c", "d"] { try await bench.add(name) }
        #expect(try names(await bench.messager.waiting()) == ["b", "c", "d"])
        try await bench.update { $0.order = .lifo }
        #expect(try names(await bench.messager.waiting()) == ["d", "c", "b"])
        try await bench.update { $0.maxAction = 3 }
        #expect(try names(await bench.messager.running()) == ["a", "d", "c"])
        #expect(try names(await bench.messager.waiting()) == ["b"])
        try await bench.update { $0.maxAction = 1 }
        #expect(try names(await bench.messager.running()) == ["a", "d", "c"], "lowered, it lets them run")
        gate.open()
        await bench.engine.waitUntilDrained()
    }

    @Test("before the queue is active the list is already the order of the later starts, hosts counted")
    func inactive() async throws {
        let bench = try await Bench(
            isActive: false,
            settings: {
                $0.maxAction = 3
                $0.maxConnectionsPerHost = 2
            }
        ) { request, _ in .file(Self.content, to: request) }
        for name in ["1", "2", "3"] { try await bench.add("http://a.example/a\(name)") }
        try await bench.add("http://b.example/b1")
        #expect(try names(await bench.messager.waiting()) == ["a1", "a2", "b1", "a3"])
        bench.downloader.activateQueue()
        await bench.engine.waitUntilDrained()
    }

    @Test("tasks of a closed host come behind those of open ones, due retries last by their time")
    func closedHost() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, _ in
            switch request.urlRequest.url?.lastPathComponent {
            case "slow": .status(503, [.init("Retry-After", "40")])
            case "soon": Bench.Answer([.fail(DownloadError(.connectionLost, "cut", isRetryable: true))])
            default: .file(Self.content, to: request, gate: gate)
            }
        }
        try await bench.add("http://a.example/slow")
        await bench.reached("slow", .idle, times: 2)
        try await bench.add("http://c.example/soon")
        await bench.reached("soon", .idle, times: 2)
        try await bench.add("http://b.example/running")
        await gate.reached()
        try await bench.add("http://a.example/paused")
        try await bench.add("http://b.example/open")
        #expect(try names(await bench.messager.waiting()) == ["open", "paused", "soon", "slow"])
        gate.open()
    }
}
