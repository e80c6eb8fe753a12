import TestSupport
import Testing

@Suite("Messager")
struct MessagerTests {
    static let content = Bytes.pattern(count: 400_000)

    private func running(_ speed: Int = 5) async throws -> (Bench, TaskID, TestGate) {
        try await Bench.held(Self.content, at: 1_000) { $0.distributeSpeed = speed }
    }

    @Test(
        "a callback comes at once, then every distributeSpeed x 0.2 s, then at each change of state",
        arguments: [1, 5, 10])
    func polled(_ speed: Int) async throws {
        let (bench, id, gate) = try await running(speed)
        let seen = Observed<[DownloadInfo]>([])
        try await bench.messager.addInfo(.id(id)) { info in
            #expect(!Thread.isMainThread)
            seen.update { $0.append(info) }
        }.keep()
        var infos = await seen.wait { $0.count >= 1 }
        #expect(infos[0].state == .action)
        #expect(infos[0].count == ByteCount(received: 1_000, previousReceived: 0, expected: 400_000))
        // The interval began with the task: the first report may come earlier than a whole interval from now.
        await bench.advance(Double(speed) * 0.2)
        infos = await seen.wait { $0.count >= 2 }
        #expect(infos[1].count.previousReceived == 1_000)
        for round in 3...5 {
            await bench.advance(Double(speed) * 0.2 - 0.01)
            await bench.engine.callbacks.drained()
            #expect(seen.value.count == round - 1)
            await bench.advance(0.01)
            _ = await seen.wait { $0.count >= round }
        }
        gate.open()
        let all = await seen.wait { $0.last?.state == .complete }
        #expect(all.last?.count == ByteCount(received: 400_000, previousReceived: 1_000, expected: 400_000))
        #expect(all.last?.path == bench.out + "/a")
    }

    @Test("another distributeSpeed counts from the next report on")
    func intervalChanged() async throws {
        let (bench, id, gate) = try await running()
        let count = Observed(0)
        try await bench.messager.addInfo(.id(id)) { _ in count.update { $0 += 1 } }.keep()
        await bench.advance(1)
        _ = await count.wait { $0 >= 2 }
        try await bench.update { $0.distributeSpeed = 10 }
        await bench.advance(1)
        _ = await count.wait { $0 >= 3 }
        await bench.advance(1.9)
        await bench.engine.callbacks.drained()
        #expect(count.value == 3)
        await bench.advance(0.1)
        _ = await count.wait { $0 >= 4 }
        gate.open()
    }

    @Test(
        "a callback hears once more of a task that has stopped: received is then as before", arguments: [false, true])
    func stopped(_ isSuspended: Bool) async throws {
        let (bench, id, gate) = try await running()
        let seen = Observed<[DownloadInfo]>([])
        try await bench.messager.addInfo(.id(id)) { info in seen.update { $0.append(info) } }.keep()
        if isSuspended { try await bench.control.suspend(.id(id)) }
        gate.open()
        _ = await bench.finished(id)
        let end = isSuspended ? DownloadState.suspend : .complete
        _ = await seen.wait { $0.last?.state == end }
        await bench.advance(1)
        await bench.advance(1)
        await bench.engine.callbacks.drained()
        let last = seen.value.suffix(2)
        #expect(last.map(\.state) == [end, end])
        #expect(last.map { $0.count.received - $0.count.previousReceived } == [isSuspended ? 0 : 399_000, 0])
    }

    @Test("the first report has a speed")
    func firstSpeed() async throws {
        let first = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: first, pauseAt: 1_000) }
        let speeds = Observed<[Double]>([])
        try await bench.messager.addInfo("http://h.example/a") { info in
            if info.state == .action { speeds.update { $0.append(info.bytesPerSecond) } }
        }.keep()
        try await bench.add("a")
        await first.reached()
        await bench.advance(1)
        #expect(await speeds.wait { $0.count >= 2 } == [0, 1_000])
        first.open()
    }

    @Test("previousReceived is each listener's own")
    func previous() async throws {
        let (bench, id, gate) = try await running()
        let early = Observed<[Int64]>([])
        let late = Observed<[Int64]>([])
        try await bench.messager.addInfo(.id(id)) { info in early.update { $0.append(info.count.previousReceived) } }
            .keep()
        await bench.advance(1)
        _ = await early.wait { $0.starts(with: [0, 1_000]) }
        try await bench.messager.addInfo("http://h.example/a") { info in
            late.update { $0.append(info.count.previousReceived) }
        }.keep()
        _ = await late.wait { !$0.isEmpty }
        gate.open()
        _ = await bench.finished(id)
        #expect(await early.wait { $0.count >= 3 } == [0, 1_000, 1_000])
        #expect(await late.wait { $0.count >= 2 } == [0, 1_000])
    }

    @Test("a callback may be registered before its task is there; by URL it hears of every task of it")
    func beforehand() async throws {
        let bench = try await Bench(content: Self.content)
        let seen = Observed<[TaskID]>([])
        try await bench.messager.addInfo("http://h.example/a") { info in
            if info.state == .complete { seen.update { $0.append(info.id) } }
        }.keep()
        let one = try await bench.add("a")
        let two = try await bench.add("a") { $0.directory = bench.out + "/two" }
        #expect(Set(await seen.wait { $0.count >= 2 }) == [one, two])
        await #expect(throws: DownloadError.self) { try await bench.messager.addInfo("no url") { _ in } }
        await #expect(throws: DownloadError.self) { try await bench.messager.addInfo(.all) { _ in } }
    }

    @Test("a removed or released callback is not called again, one by one or all of a task")
    func remove() async throws {
        let (bench, id, gate) = try await running()
        let counts = Observed([0, 0, 0])
        var registrations: [Messager.Registration] = []
        for index in 0..<3 {
            registrations.append(
                try await bench.messager.addInfo(.id(id)) { _ in counts.update { $0[index] += 1 } })
        }
        _ = await counts.wait { $0.allSatisfy { $0 >= 1 } }
        registrations[1].cancel()
        registrations.removeLast()
        await bench.advance(1)
        await bench.engine.callbacks.drained()
        #expect(counts.value == [2, 1, 1])
        await bench.messager.removeInfo(.id(id))
        gate.open()
        _ = await bench.finished(id)
        await bench.engine.callbacks.drained()
        #expect(counts.value == [2, 1, 1])
        #expect(await !bench.engine.hasListeners)
    }

    enum End: CaseIterable { case complete, error, cancel, trash, close }

    @Test("a sequence of infos ends with its task, and leaves no listener behind", arguments: End.allCases)
    func sequence(_ end: End) async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in
            if end == .error { return Bench.Answer([.wait(gate), .fail(DownloadError(.tls, "no"))]) }
            return .file(Self.content, to: request, gate: gate, pauseAt: 1_000)
        }
        let id = try await bench.add("a")
        await gate.reached()
        let began = Observed(false)
        let reader = Task { [messager = bench.messager] in
            var states: [DownloadState] = []
            for await info in messager.infos(.id(id)) {
                states.append(info.state)
                began.update { $0 = true }
            }
            return states
        }
        _ = await began.wait { $0 }
        switch end {
        case .complete, .error: gate.open()
        case .cancel: try await bench.control.cancel(.id(id))
        case .trash: try await bench.control.trash(.id(id))
        case .close: await bench.downloader.close()
        }
        let states = await reader.value
        #expect(states.first == .action)
        switch end {
        case .complete: #expect(states.last == .complete)
        case .error: #expect(states.last == .error)
        case .cancel: #expect(states.last == .cancel)
        case .trash: #expect(states.last == .unknown)
        case .close: break
        }
        try await bench.unobserved()
    }

    @Test("the speed is smoothed while a task runs and 0 when it does not")
    func speed() async throws {
        let (bench, id, gate) = try await running()
        try await bench.messager.addInfo(.id(id)) { _ in }.keep()
        await bench.advance(1)
        await bench.advance(1)
        let speed = try #require(await bench.messager.info(.id(id))?.bytesPerSecond)
        #expect(speed > 0 && speed < 1_000)
        gate.open()
        let info = try #require(await bench.finished(id))
        #expect(info.bytesPerSecond == 0)
    }
}
