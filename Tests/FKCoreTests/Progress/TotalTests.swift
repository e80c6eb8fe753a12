import TestSupport
import Testing

@Suite("The sum over all tasks")
struct TotalTests {
    static let content = Bytes.pattern(count: 400_000)

    @Test("it has finished, running, suspended and later tasks, and ends when the downloader closes")
    func course() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.progressInterval = .milliseconds(200) }) { request, number in
            number == 1
                ? .file(Self.content, to: request)
                : .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let first = try await bench.completed("a", barrel: "b")
        let second = try await bench.add("b")
        await gate.reached()
        let (sums, queue) = (Observed<[BarrelInfo]>([]), DispatchQueue(label: "test"))
        let registration = try await bench.messager.addTotalInfo { info in sums.update { $0.append(info) } }
        let progress = try await bench.messager.progress(.all, on: queue)
        let reader = Task { [downloader = bench.downloader] in
            var last: BarrelInfo?
            for await sum in downloader.progress { last = sum }
            return last
        }
        func until(_ condition: @escaping @Sendable (BarrelInfo) -> Bool) async -> BarrelInfo? {
            await sums.wait { $0.last.map(condition) ?? false }.last
        }
        let early = await until { $0.count.received == 500_000 }
        #expect(early?.states == [.complete: 1, .action: 1] && early?.fraction == 0.625 && early?.fileFraction == 0.5)
        try await bench.control.suspend(.id(second))
        _ = await until { $0.states == [.complete: 1, .suspend: 1] }
        gate.open()
        try await bench.control.resume(.id(second))
        #expect(await until(\.isComplete)?.count.received == 800_000)
        while !queue.sync(execute: { progress.isFinished }) { await Task.yield() }
        try await bench.add("c")
        #expect(await until { $0.isComplete && $0.total == 3 }?.fraction == 1)
        try await bench.control.trash(.id(first))
        #expect(await until { $0.total == 2 }?.count.received == 800_000)
        await bench.downloader.close()
        #expect(await reader.value?.total == 2)
        registration.cancel()
    }

    @Test("a client has the same sum")
    func client() async throws {
        let gate = TestGate()
        let bench = try await Bench(ticks: true) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        try await bench.add("a")
        await gate.reached()
        var configure = Configure(workPath: bench.folder.file("work"))
        configure.progressInterval = .milliseconds(200)
        let client = try Downloader(configure, role: .client)
        client.activateQueue()
        let sums = Observed<[BarrelInfo]>([])
        let registration = try await client.messager.addTotalInfo { info in sums.update { $0.append(info) } }
        _ = await sums.wait { $0.last?.count.received == 100_000 }
        gate.open()
        #expect(await sums.wait { $0.last?.isComplete ?? false }.last?.count.received == 400_000)
        registration.cancel()
        await client.close()
    }

    @Test("verbs take a text, a URL, a task and a barrel alike; the response of a finished file can be read")
    func alike() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate) }
        let folder = URL(fileURLWithPath: bench.out)
        let barrel = try await bench.downloader.barrel("b")
        let url = try #require(URL(string: "http://h.example/a"))
        let task = try #require(try await barrel.add([url], to: folder).first).get()
        #expect(try await bench.control.suspend("http://h.example/a").map(\.applied) == [true])
        #expect(try await bench.control.resume(url).map(\.applied) == [true])
        #expect(try await bench.control.suspend(task).map(\.applied) == [true])
        #expect(try await bench.control.resume(barrel).map(\.applied) == [true])
        gate.open()
        _ = try await task.file
        #expect(await bench.messager.response(task)?.status == 200)
    }
}
