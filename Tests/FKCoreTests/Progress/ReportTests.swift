import TestSupport
import Testing

@testable import FKEngine

@Suite("What is reported, and what is kept for it")
struct ReportTests {
    static let content = Bytes.pattern(count: 400_000)

    @Test("received before: of the task that is told of, for a URL with two destinations as well")
    func previous() async throws {
        let gates = [TestGate(), TestGate()]
        let bench = try await Bench { request, number in
            .file(Self.content, to: request, gate: gates[number - 1], pauseAt: number * 1_000)
        }
        let one = try await bench.add("a")
        await gates[0].reached()
        let two = try await bench.add("a") { $0.directory = bench.folder.path + "/other" }
        await gates[1].reached()
        let heard = Observed<[DownloadInfo]>([])
        try await bench.messager.addInfo("http://h.example/a") { info in heard.update { $0.append(info) } }.keep()
        for _ in 0..<3 { await bench.advance(1) }
        let infos = await heard.wait { $0.count { $0.id == one } >= 3 && $0.count { $0.id == two } >= 3 }
        for (id, received) in [(one, Int64(1_000)), (two, 2_000)] {
            let counts = infos.filter { $0.id == id }.map(\.count)
            #expect(counts.allSatisfy { $0.received == received })
            #expect(counts.first?.previousReceived == 0)
            #expect(counts.dropFirst().allSatisfy { $0.previousReceived == received })
        }
        gates.forEach { $0.open() }
    }

    @Test("download middlewares: the count before is the count they were told before, to the end")
    func previousOfMiddlewares() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate, pauseAt: 1_000) }
        let counts = Observed<[ByteCount]>([])
        bench.chains.register(download: DownloadStep(onCount: { _, count in counts.update { $0.append(count) } }))
        let id = try await bench.add("a")
        await gate.reached()
        await bench.advance(1)
        _ = await counts.wait { $0.count >= 1 }
        gate.open()
        _ = await bench.finished(id)
        let told = await counts.wait { $0.last?.received == 400_000 }
        var previous: Int64 = 0
        for count in told {
            #expect(count.previousReceived == previous)
            previous = count.received
        }
    }

    @Test("problems: each text once, and a thousand at most")
    func problems() {
        let problems = Problems()
        for number in 0..<3_000 {
            problems.append("problem \(number)")
            problems.append("problem 0")
        }
        let texts = problems.drain().map(\.message)
        #expect(texts.count == 1_001)
        #expect(texts.first == "problem 0" && texts[999] == "problem 999")
        #expect(texts.last?.contains("2000 more") == true)
        #expect(problems.drain() == [])
    }

    @Test("a task that is trashed while another verb waits for it is no problem")
    func trashedMeanwhile() async throws {
        let bench = try await Bench(content: Self.content)
        let gate = bench.holdRequests()
        let id = try await bench.add("a")
        await bench.reached("a", .action)
        async let suspended = bench.control.suspend(.id(id))
        await bench.reached("a", .suspend)
        async let trashed = bench.control.trash(.id(id))
        await bench.reached("a", .unknown)
        // The record is due to be written.
        await bench.advance(1)
        gate.open()
        _ = try await (suspended, trashed)
        #expect(await bench.downloader.takeProblems() == [])
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.infoPath(id)))
    }

    @Test("of a task that has failed, only its record is kept in memory")
    func failed() async throws {
        let bench = try await Bench { _, _ in .status(404) }
        let id = try await bench.add("a")
        #expect(await bench.finished(id)?.state == .error)
        await bench.sync()
        #expect(await !bench.engine.hasWork(id))
    }

    @Test("failed tasks of a long list leave the memory, as complete ones do, and come back when they are asked for")
    func failedRest() async throws {
        let (count, crowd) = (400, 200)
        let bench = try await Bench(scope: .chosen, crowd: crowd, settings: { $0.maxAction = 50 }) { _, _ in
            .status(404)
        }
        let tasks = (0..<count).map { bench.task("f\($0)") }
        _ = try await bench.engine.add(tasks, barrel: nil, run: true)
        await bench.engine.waitUntilDrained()
        #expect(await bench.engine.taskCounts.known <= crowd + 64)
        for task in [tasks[0], tasks[count - 1]] {
            #expect(await bench.messager.error(.id(task.id))?.status == 404)
        }
        #expect(try await bench.control.retry(.id(tasks[count - 1].id))[0].applied)
        #expect(await bench.finished(tasks[count - 1].id)?.state == .error)
    }
}

extension Engine {
    fileprivate func hasWork(_ id: TaskID) -> Bool { book[id]?.run != nil }
}
