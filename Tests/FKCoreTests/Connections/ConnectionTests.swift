import TestSupport
import Testing

@testable import FKEngine

/// Several connections for one file. The first one asks for the whole and is held in its middle by a gate; the further
/// ones ask for ranges.
@Suite("Several connections for one file")
struct ConnectionTests {
    private static let content = Bytes.pattern(count: 8 << 20)

    private func bench(
        _ connections: Int, perHost: Int = 16, gate: TestGate,
        _ further: @escaping @Sendable (TransportRequest, Int) -> Bench.Answer
    ) async throws -> Bench {
        try await Bench(
            settings: {
                $0.connections = .fixed(connections)
                $0.maxConnectionsPerHost = perHost
            }
        ) { request, number in
            number == 1
                ? .file(Self.content, to: request, gate: gate, pauseAt: 300_000) : further(request, number)
        }
    }

    /// Returns once everything is there but what the first connection holds.
    private func othersDone(_ bench: Bench, _ id: TaskID) async throws {
        try await bench.wait {
            let ranges = try await bench.record(id).ranges
            return ranges.count > 1 && ranges.dropFirst().allSatisfy { SegmentPlanner.isFinished($0) }
        }
    }

    @Test("further ones take their halves under If-Range; the first one ends where they began", arguments: [2, 4, 16])
    func halves(_ connections: Int) async throws {
        let gate = TestGate()
        let bench = try await bench(connections, gate: gate) { request, _ in .file(Self.content, to: request) }
        let id = try await bench.add("a")
        try await othersDone(bench, id)
        #expect(try bench.stored(id).ranges.count > 1)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        let asks = bench.sent("Range")
        #expect(asks[0] == "-" && asks.count >= 2 && asks.dropFirst().allSatisfy { $0.hasPrefix("bytes=") })
        #expect(bench.sent("If-Range").dropFirst().allSatisfy { $0 == "\"1\"" })
        #expect(bench.transport.peak <= connections)
        #expect(bench.transport.requests.dropFirst().allSatisfy { $0.prefersHTTP1 })
        let record = try bench.stored(id)
        #expect(record.attempts == 1 && record.received == Int64(Self.content.count))
    }

    @Test("a further connection that got no byte before a suspension costs the others none")
    func emptyRange() async throws {
        let gate = TestGate()
        let bench = try await bench(2, gate: gate) { request, number in
            .file(Self.content, to: request, gate: gate, pauseAt: number == 2 ? 0 : 1)
        }
        let id = try await bench.add("a")
        try await bench.wait {
            let ranges = try await bench.record(id).ranges
            return ranges.count > 1 && ranges[0].position == 300_000
        }
        try await bench.control.suspend(.id(id))
        // The middle of what was missing when the connection asked: the first one may have had some bytes by then.
        let ranges = try bench.stored(id).ranges
        #expect(ranges.count == 2 && ranges[0].position == 300_000 && ranges[1].position == ranges[1].start)
        gate.open()
        try await bench.control.resume(.id(id))
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.sent("Range").filter { $0 == "-" }.count == 1, "\(bench.sent("Range"))")
    }

    @Test("the name is taken at the end: no byte of any connection is fetched again")
    func takenName() async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, _ in .file(Self.content, to: request) }
        let id = try await bench.add("a") { $0.fileName = "a" }
        try await othersDone(bench, id)
        _ = try bench.folder.write([1], to: "out/a")
        gate.open()
        let info = await bench.finished(id)
        #expect(info?.error?.code == .fileExists && info?.count.received == Int64(Self.content.count))
        let count = bench.transport.requests.count
        try FileManager.default.removeItem(atPath: bench.out + "/a")
        _ = try await bench.control.retry(.id(id))
        try await bench.expect("a", Self.content, of: id)
        #expect(bench.transport.requests.count == count)
    }

    @Test("a task that is alone wishes for HTTP/1.1, tasks of a list do not, nor who comes to their host later")
    func alone() async throws {
        let bench = try await Bench { request, _ in .file([1, 2, 3], to: request) }
        try await bench.completed("a")
        let list = [bench.task("https://s.example/b"), bench.task("https://s.example/c")]
        for added in try await bench.engine.add(list, barrel: nil, run: true) {
            #expect(await bench.finished(added.id)?.state == .complete)
        }
        for name in ["https://s.example/d", "https://t.example/e"] {
            #expect(await bench.finished(try await bench.add(name))?.state == .complete)
        }
        #expect(bench.transport.requests.map(\.prefersHTTP1) == [true, false, false, false, true])
    }

    @Test(
        "a server that speaks HTTP/2 alone is asked again in the same attempt",
        arguments: [DownloadError.Code.tls, .protocolViolation])
    func onlyHTTP2(_ code: DownloadError.Code) async throws {
        let refusal = DownloadError(code, "no", underlying: "tlsv1 alert no application protocol")
        let bench = try await Bench { request, _ in
            request.prefersHTTP1 ? .init([.fail(refusal)]) : .file([1, 2, 3], to: request)
        }
        let id = try await bench.completed("https://s.example/a")
        #expect(bench.transport.requests.map(\.prefersHTTP1) == [true, false])
        #expect(try bench.stored(id).attempts == 1)
    }

    @Test("after a failure of another kind the wish is dropped")
    func failedAlone() async throws {
        let bench = try await Bench { request, _ in
            request.prefersHTTP1
                ? .init([.fail(DownloadError(.connectionLost, "gone", isRetryable: true))])
                : .file([1, 2, 3], to: request)
        }
        let id = try await bench.add("https://s.example/a")
        await bench.retried("a", after: 120)
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.map(\.prefersHTTP1) == [true, false])
    }

    @Test("a small rest, no strong validator or no ranges: one connection is enough", arguments: [0, 1, 2])
    func notWorth(_ why: Int) async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.connections = .fixed(8) }) { request, _ in
            let content = why == 0 ? Array(Self.content.prefix(1 << 20)) : Self.content
            var answer = Bench.Answer.file(
                content, etag: why == 1 ? "W/\"1\"" : "\"1\"", to: request, gate: gate, pauseAt: 300_000)
            if why == 2, case .head(var head) = answer.steps[0] {
                head.fields[0].value = "none"
                answer.steps[0] = .head(head)
            }
            return answer
        }
        let id = try await bench.add("a")
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(bench.transport.requests.count == 1)
    }

    @Test(
        "the first connection is lost, then the further one is refused: the attempt fails as the first one did, and another follows",
        arguments: [200, 403, 404])
    func refusedLast(_ status: Int) async throws {
        let (first, further) = (TestGate(), TestGate())
        let bench = try await Bench(settings: { $0.connections = .fixed(2) }) { request, number in
            guard number <= 2 else { return .file(Self.content, to: request) }
            var answer = ScriptedTransport.Answer.file(
                Self.content, to: request, cut: number == 1 ? 300_000 : nil, gate: first, pauseAt: 300_000)
            if number == 2 {
                answer = .status(status, [.init("Content-Length", "\(Self.content.count)"), .init("ETag", "\"1\"")])
                answer.steps.insert(.wait(further), at: 0)
            }
            return answer
        }
        let id = try await bench.add("a")
        await bench.transport.started(2)
        first.open()
        try await bench.wait { try await bench.record(id).history.contains { $0.by == "connection" } }
        further.open()
        try await bench.wait { try await bench.record(id).state != .action }
        #expect(try await bench.record(id).error?.code == .connectionLost)
        await bench.advance(60)
        try await bench.expect("a", Self.content, of: id)
        #expect(try bench.stored(id).attempts == 2)
    }

    @Test("a further connection that is lost leaves its rest to the others")
    func lost() async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, number in
            .file(Self.content, to: request, cut: number == 3 ? 100_000 : nil)
        }
        let id = try await bench.add("a")
        try await othersDone(bench, id)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(try bench.stored(id).attempts == 1)
    }

    @Test("a connection through which nothing comes is replaced after three seconds")
    func stuck() async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, _ in .file(Self.content, to: request) }
        let id = try await bench.add("a")
        try await othersDone(bench, id)
        for _ in 0..<5 { await bench.advance(1) }
        try await bench.expect("a", Self.content, of: id)
        #expect(try bench.stored(id).history.contains { $0.by == "connection" })
        gate.open()
    }

    @Test(
        "suspended and resumed, in the same engine or the next: every range keeps its bytes", arguments: [false, true])
    func resumed(_ restarts: Bool) async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, _ in .file(Self.content, to: request) }
        let id = try await bench.add("a")
        try await othersDone(bench, id)
        try await bench.control.suspend(.id(id))
        gate.open()
        let record = try bench.stored(id)
        #expect(record.ranges.count > 1 && record.received >= 4 << 20)
        let before = bench.transport.requests.count
        let next: Bench
        if restarts {
            await bench.downloader.close()
            next = try await Bench(in: bench.folder, settings: { $0.connections = .fixed(4) }) { request, _ in
                .file(Self.content, to: request)
            }
        } else {
            next = bench
        }
        try await next.control.resume(.id(id))
        try await next.expect("a", Self.content, of: id)
        let asks = next.sent("Range").dropFirst(restarts ? 0 : before)
        #expect(asks.allSatisfy { $0 != "-" } && !asks.isEmpty)
    }

    @Test("cancelled with several at work: nothing is left")
    func cancelled() async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await bench.add("a")
        await bench.transport.started(4)
        try await bench.control.cancel(.id(id))
        gate.open()
        #expect(await bench.state(id) == .cancel)
        #expect(bench.names.isEmpty)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("the limit of a host counts connections; one of them ends when another task waits for it")
    func perHost() async throws {
        let gate = TestGate()
        let bench = try await bench(16, perHost: 3, gate: gate) { request, number in
            request.urlRequest.url?.path == "/b"
                ? .file([1, 2, 3], to: request) : .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await bench.add("a")
        await bench.transport.started(3)
        try await bench.completed("b")
        #expect(bench.transport.peak == 3)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("the limit of a host is lowered: further connections end at once, and each file keeps one")
    func lowered() async throws {
        let gate = TestGate()
        let bench = try await bench(4, perHost: 6, gate: gate) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let id = try await bench.add("a")
        await bench.transport.started(4)
        try await bench.update { $0.maxConnectionsPerHost = 1 }
        try await bench.wait { await bench.engine.hosts.connections.values.reduce(0, +) == 1 }
        #expect(await bench.state(id) == .action)
        gate.open()
        try await bench.expect("a", Self.content, of: id)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test(
        "whatever is done to tasks with several connections, in any order: no connection is counted for ever",
        arguments: 0..<6 as Range<UInt64>)
    func released(_ seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let gate = TestGate()
        let chance = Observed(SeededRandom(seed: seed + 100))
        let bench = try await Bench(settings: {
            $0.connections = .fixed(4)
            $0.maxConnectionsPerHost = 3
            $0.maxAction = 3
            $0.retry = RetryPolicy(maxAttempts: 3, baseDelay: .seconds(0.5), maxDelay: .seconds(1), jitter: 0)
        }) { request, _ in
            switch chance.update({ Int.random(in: 0..<8, using: &$0) }) {
            case 0: .status(503, [.init("Retry-After", "1")])
            case 1: .file(Self.content, to: request, cut: 200_000)
            case 2: .status(404)
            case 3: .file(Self.content, to: request)
            default: .file(Self.content, to: request, gate: gate, pauseAt: 300_000)
            }
        }
        var ids: [TaskID] = []
        for index in 0..<5 {
            let host = ["a", "b"][index % 2]
            ids.append(
                try await bench.add("http://\(host).example/\(index)") {
                    $0.mirrors = index < 3 ? ["http://b.example/m\(index)", "http://c.example/m"] : []
                })
        }
        for _ in 0..<40 {
            let id = ids.randomElement(using: &random)!
            switch Int.random(in: 0..<8, using: &random) {
            case 0: _ = await bench.engine.answer(.verb(.suspend, .id(id)))
            case 1: _ = await bench.engine.answer(.verb(.cancel, .id(id)))
            case 2: _ = await bench.engine.answer(.verb(.retry, .id(id)))
            case 3:
                if Int.random(in: 0..<4, using: &random) == 0 {
                    _ = await bench.engine.answer(.verb(.trash, .id(id)))
                }
            case 4: _ = await bench.engine.answer(.verb(.resume, .id(id)))
            default: await bench.advance(Double.random(in: 0.1...1.5, using: &random))
            }
            let load = await bench.engine.hosts.connections
            #expect(load.values.allSatisfy { (1...3).contains($0) }, "\(load)")
        }
        gate.open()
        _ = await bench.engine.answer(.verb(.suspend, .all))
        _ = await bench.engine.answer(.verb(.cancel, .all))
        #expect(await bench.engine.hosts.connections.isEmpty, "seed \(seed)")
        #expect(await bench.engine.taskCounts.running == 0)
    }

    @Test("request middlewares run for every connection")
    func middlewares() async throws {
        let gate = TestGate()
        let bench = try await bench(4, gate: gate) { request, _ in .file(Self.content, to: request) }
        bench.chains.onRequest("request step") { request, task in
            request.setValue("yes", forHTTPHeaderField: "X-Signed")
        }
        let id = try await bench.add("a")
        try await othersDone(bench, id)
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(Set(bench.sent("X-Signed")) == ["yes"])
    }
}
