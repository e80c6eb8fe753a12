import TestSupport
import Testing

@testable import FKEngine
@testable import FKModel
@testable import FKTransport

/// One file from A and B at once: A's first connection is held in its middle by a gate.
@Suite("Several mirrors at once")
struct MirrorsAtOnceTests {
    private static let content = Bytes.pattern(count: 8 << 20)
    private static let a = "http://a.example/f"
    private static let b = "http://b.example/f"

    private func bench(
        _ connections: Int = 4, gate: TestGate, etag: String = "\"b\"", _ mirror: [UInt8] = content,
        policy: MirrorPolicy = .combine, answer: (@Sendable (TransportRequest, Int) -> Bench.Answer?)? = nil
    ) async throws -> Bench {
        let settings: (inout Configure) -> Void = {
            $0.connections = .fixed(connections)
            $0.mirrorPolicy = policy
        }
        return try await Bench(settings: settings) { request, number in
            if let answer = answer?(request, number) { return answer }
            if request.urlRequest.url?.host == "b.example" { return .file(mirror, etag: etag, to: request) }
            let isFirst = request.urlRequest.value(forHTTPHeaderField: "Range") == nil
            return isFirst
                ? .file(Self.content, etag: "\"a\"", to: request, gate: gate, pauseAt: 300_000)
                : .file(Self.content, etag: "\"a\"", to: request, gate: gate, pauseAt: 100_000)
        }
    }

    private func asks(_ bench: Bench, of host: String) -> [TransportRequest] {
        bench.transport.requests.filter { $0.urlRequest.url?.host == host }
    }

    /// Lets the steps of measuring pass until there is such a request.
    private func wait(_ bench: Bench, until isThere: @escaping @Sendable (Bench) -> Bool) async throws {
        try await bench.advance(by: LaneGrowth.intervals.upperBound) { isThere(bench) }
    }

    @Test(
        "B is asked for bytes we hold, and then for ranges under its own tag; A keeps its own", arguments: [2, 4, 16])
    func both(_ connections: Int) async throws {
        let gate = TestGate()
        let bench = try await bench(connections, gate: gate)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count > 1 }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        let tags = { (host: String) in
            Set(asks(bench, of: host).dropFirst().map { $0.urlRequest.value(forHTTPHeaderField: "If-Range") })
        }
        #expect(tags("b.example") == ["\"b\""])
        #expect(connections == 2 || tags("a.example") == ["\"a\""])
        let trial = asks(bench, of: "b.example")[0].urlRequest
        #expect(trial.value(forHTTPHeaderField: "Range") == "bytes=\(300_000 - 4096)-299999")
        #expect(trial.value(forHTTPHeaderField: "If-Range") == nil)
        #expect(bench.transport.peak <= connections)
        let record = try bench.stored(id)
        let runs = try #require(record.trace).runs(length: Int64(Self.content.count))
        #expect(Set(runs.map(\.source)) == [nil, Self.b] && runs.first?.source == nil)
        #expect(zip(runs, runs.dropFirst()).allSatisfy { $0.range.upperBound == $1.range.lowerBound })
        #expect(record.attempts == 1 && record.source == nil && record.validator?.etag == "\"a\"")
        // Only the newest lines are kept, and every connection that the gate holds is replaced in time.
        #expect(connections == 16 || record.history.contains { $0.by == "mirror" && $0.what.contains("used at once") })
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("another file at B, of the same length: it gets no connection but the trial's, and its share goes to A")
    func different() async throws {
        let gate = TestGate()
        let bench = try await bench(gate: gate, Bytes.pattern(count: Self.content.count, seed: 3))
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "a.example").count >= 4 }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        #expect(asks(bench, of: "b.example").count == 1)
        #expect(try bench.stored(id).history.contains { $0.by == "mirror" && $0.what.contains("another file") })
    }

    @Test(
        "equal bytes prove nothing: a mirror without proof gets no connection but the trial's, or not even that",
        arguments: [MirrorPolicy.prove, .failover])
    func unproven(_ policy: MirrorPolicy) async throws {
        let gate = TestGate()
        let bench = try await bench(gate: gate, policy: policy)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "a.example").count >= 4 }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        #expect(asks(bench, of: "b.example").count == (policy == .prove ? 1 : 0))
    }

    @Test("one connection: the mirror is for the next attempt, as ever")
    func single() async throws {
        let gate = TestGate()
        let bench = try await bench(1, gate: gate)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        await bench.transport.started(1)
        for _ in 0..<5 { await bench.advance(1) }
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        #expect(asks(bench, of: "b.example").isEmpty)
    }

    @Test("B is lost in the middle, or answers another version: A fetches the rest", arguments: [0, 1, 2])
    func lost(_ how: Int) async throws {
        let gate = TestGate()
        let isProven = Observed(false)
        let bench = try await bench(gate: gate) { request, _ in
            guard request.urlRequest.url?.host == "b.example",
                request.urlRequest.value(forHTTPHeaderField: "If-Range") != nil
            else { return nil }
            isProven.update { $0 = true }
            switch how {
            case 0: return .file(Self.content, etag: "\"b\"", to: request, cut: 100_000)
            case 1: return .file(Bytes.pattern(count: Self.content.count, seed: 5), etag: "\"c\"", to: request)
            default: return .status(503)
            }
        }
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { _ in isProven.value }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        #expect(try bench.stored(id).attempts == 1)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("suspended with bytes of both, then resumed: no byte of either is asked for again")
    func resumed() async throws {
        let gate = TestGate()
        let bench = try await bench(gate: gate)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count > 2 }
        try await bench.control.suspend(.id(id))
        gate.open()
        let held = try bench.stored(id)
        #expect(held.ranges.count > 1 && held.received > 300_000)
        let before = bench.transport.requests.count
        try await bench.control.resume(.id(id))
        try await bench.expect("f", Self.content, of: id)
        let asked = bench.transport.requests.dropFirst(before)
        #expect(asked.allSatisfy { $0.urlRequest.value(forHTTPHeaderField: "Range") != nil })
    }

    @Test("cancelled while a trial is under way: nothing is left")
    func cancelled() async throws {
        let gate = TestGate()
        let bench = try await bench(gate: gate) { request, _ in
            request.urlRequest.url?.host == "b.example"
                ? .file(Self.content, etag: "\"b\"", to: request, gate: gate, pauseAt: 10) : nil
        }
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count == 1 }
        try await bench.control.cancel(.id(id))
        gate.open()
        #expect(await bench.state(id) == .cancel)
        #expect(bench.names.isEmpty)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    /// A small file beside the large one, of which B's connections are held too.
    private func bench(_ connections: Int, perHost: Int, gate: TestGate) async throws -> Bench {
        try await Bench(settings: {
            $0.connections = .fixed(connections)
            $0.maxConnectionsPerHost = perHost
            $0.mirrorPolicy = .combine
        }) { request, _ in
            if request.urlRequest.url?.path == "/small" { return .file([1, 2, 3], to: request) }
            let isB = request.urlRequest.url?.host == "b.example"
            return .file(
                Self.content, etag: isB ? "\"b\"" : "\"a\"", to: request, gate: gate, pauseAt: isB ? 100_000 : 300_000)
        }
    }

    @Test("a task waits for the mirror's host, which the mirror's connections fill: one of those ends")
    func yielded() async throws {
        let gate = TestGate()
        let bench = try await bench(2, perHost: 1, gate: gate)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count > 1 }
        try await bench.completed("http://b.example/small")
        #expect(await bench.state(id) == .action)
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("a task waits for the file's own host: not the mirror's connection ends, though it is the newest")
    func yieldedOwn() async throws {
        let gate = TestGate()
        let bench = try await bench(3, perHost: 2, gate: gate)
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count > 1 && asks($0, of: "a.example").count > 1 }
        let asked = asks(bench, of: "b.example").count
        try await bench.completed("http://a.example/small")
        #expect(await bench.engine.hosts.connections["http://b.example"] == 1)
        #expect(asks(bench, of: "b.example").count == asked)
        gate.open()
        try await bench.expect("f", Self.content, of: id)
    }

    @Test("a trial that is slow does not hold up a file that is all there")
    func slowTrial() async throws {
        let gate = TestGate()
        let never = TestGate()
        let bench = try await bench(gate: gate) { request, _ in
            request.urlRequest.url?.host == "b.example"
                ? .file(Self.content, etag: "\"b\"", to: request, gate: never, pauseAt: 10) : nil
        }
        let id = try await bench.add(Self.a) { $0.mirrors = [Self.b] }
        try await wait(bench) { asks($0, of: "b.example").count == 1 }
        gate.open()
        try await bench.expect("f", Self.content, of: id)
        never.open()
    }
}
