import TestSupport
import Testing

@Suite("Turns of requests, for all processes of a work path")
struct HostTurnsTests {
    private static let second: Int64 = 1_000_000_000
    private let folder: TemporaryFolder
    private let workPath: WorkPath

    init() throws {
        folder = try TemporaryFolder()
        workPath = WorkPath(folder.file("work"))
    }

    /// A process, and the time at which it asks.
    private struct Process {
        let turns: HostTurns
        let time: Locked<Int64>

        func take(_ host: String, _ intervals: [Int64], now: Int64) -> Int64? { at(now).acquire(host, intervals) }
        func due(_ host: String, _ intervals: [Int64], now: Int64) -> Int64? { at(now).due(host, intervals) }
        func count(_ host: String, _ intervals: [Int64], now: Int64) { at(now).count(host, intervals) }
        func isAwaited(_ host: String, now: Int64) -> Bool { at(now).isAwaited(host) }
        func connect(_ host: String, limit: Int, now: Int64) -> (connection: HostConnection?, until: Int64?) {
            at(now).connect(host, limit: limit)
        }

        private func at(_ now: Int64) -> HostTurns {
            time.withLock { $0 = now }
            return turns
        }
    }

    private func process() -> Process {
        let time = Locked<Int64>(0)
        return Process(turns: HostTurns(workPath) { time.withLock(\.self) }, time: time)
    }

    /// Sends the requests of several processes that never have enough, each asking when it was told to.
    ///
    /// - Returns: the process and the time of each request.
    private func run(_ processes: Int, every interval: Int64, until end: Int64) -> [(process: Int, time: Int64)] {
        let turns = (0..<processes).map { _ in self.process() }
        var asks = [Int64](repeating: 0, count: processes)
        var sent: [(process: Int, time: Int64)] = []
        while let now = asks.min(), now <= end, let process = asks.firstIndex(of: now) {
            let until = turns[process].take("h", [interval], now: now)
            if until == nil { sent.append((process, now)) }
            asks[process] = until ?? now
        }
        return sent
    }

    @Test("what limits leave for a host goes once its intervals are over and nobody waits or holds a connection")
    func sweep() throws {
        func names() -> [String] { ((try? FileIO.names(in: workPath.turnsFolder)) ?? []).sorted() }
        func sweep(_ now: Int64, _ date: Date = Date()) { HostTurns.sweep(workPath, now: now, date: date) }
        let process = process()
        #expect(process.take("a", [Self.second], now: 10 * Self.second) == nil)
        #expect(process.take("b", [9 * Self.second], now: 10 * Self.second) == nil)
        var held = process.connect("c", limit: 2, now: 10 * Self.second).connection
        #expect(held != nil && names() == ["a", "b", "c", "c~0"])
        sweep(12 * Self.second)
        #expect(names() == ["b", "c~0"])
        let due = process.due("b", [9 * Self.second], now: 12 * Self.second)
        #expect(due == 19 * Self.second)
        held = nil
        sweep(20 * Self.second)
        #expect(names().isEmpty)
        _ = held
        // The machine has started again: the time is of another clock.
        #expect(process.take("a", [Self.second], now: 100 * Self.second) == nil)
        sweep(Self.second)
        #expect(names() == ["a"])
        sweep(Self.second, Date() + 3_700)
        #expect(names().isEmpty)
        // A file that was removed while a process had it open is made again.
        #expect(process.take("a", [Self.second], now: 200 * Self.second) == nil && names() == ["a"])
    }

    @Test("several processes keep the interval together, and each has its part", arguments: [1, 2, 5])
    func together(_ processes: Int) {
        let sent = run(processes, every: 3 * Self.second, until: 297 * Self.second)
        #expect(sent.map(\.time) == (0..<100).map { Int64($0) * 3 * Self.second })
        for process in 0..<processes {
            let count = sent.count { $0.process == process }
            #expect(abs(count - 100 / processes) <= 1, "\(process): \(count)")
        }
    }

    @Test("a request waits for each of its intervals, and counts in each")
    func severalIntervals() {
        let turns = process()
        #expect(turns.take("h", [3, 10], now: 0) == nil)
        #expect(turns.take("h", [3, 10], now: 3) == 10 && turns.take("h", [3], now: 4) == nil)
        #expect(turns.take("other", [3], now: 4) == nil)
        #expect(process().due("h", [3], now: 5) == 7)
        turns.count("h", [3], now: 6)
        #expect(turns.due("h", [3], now: 7) == 9 && turns.due("h", [3], now: 9) == nil)
    }

    @Test("a process that dies while it waits holds the others back for a second at most")
    func died() {
        let (one, dead, other) = (process(), process(), process())
        let hour = 3_600 * Self.second
        #expect(one.take("h", [hour], now: 0) == nil)
        #expect(dead.take("h", [hour], now: 1) == hour)
        #expect(other.take("h", [hour], now: 2) == hour + Self.second)
        #expect(other.take("h", [hour], now: hour + Self.second) == nil)
    }

    @Test("a clock that began again, and a file that is damaged, hold nobody back longer than an interval")
    func otherClock() throws {
        let (one, other) = (process(), process())
        #expect(one.take("h", [3], now: 1 << 50) == nil)
        #expect(one.take("h", [3], now: 1 << 50) != nil)
        #expect(one.connect("h", limit: 1, now: 1 << 50).connection != nil)
        #expect(other.due("h", [3], now: 5) == nil)
        // An earlier command, which does not ask, keeps the time.
        #expect(other.connect("h", limit: 1, now: 5).connection != nil && other.take("h", [3], now: 5) == 8)
        #expect(other.take("h", [3], now: 8) == nil)
        try "{".write(toFile: "\(workPath.turnsFolder)/h", atomically: false, encoding: .utf8)
        #expect(other.take("h", [3], now: 9) == nil && other.take("h", [3], now: 9) == 12)
    }

    @Test("two processes have as many connections together as the limit, and take turns")
    func connections() throws {
        let (one, other) = (process(), process())
        var held = [one.connect("h", limit: 2, now: 0).connection, other.connect("h", limit: 2, now: 0).connection]
        #expect(held.allSatisfy { $0 != nil })
        let refused = other.connect("h", limit: 2, now: 1)
        #expect(refused.connection == nil && refused.until == 1 + 50_000_000)
        #expect(one.isAwaited("h", now: 2) && !other.isAwaited("h", now: 2))
        held[0] = nil
        // The one that waits is first, and its place is void if it does not come.
        let second = one.connect("h", limit: 2, now: 2)
        #expect(second.connection == nil && second.until != nil)
        held[0] = other.connect("h", limit: 2, now: 3).connection
        #expect(held[0] != nil && !one.isAwaited("h", now: 3))
        held = []
        #expect(other.connect("h", limit: 2, now: 4).connection == nil)
        #expect(other.connect("h", limit: 2, now: 3 * Self.second).connection != nil)
    }

    @Test("another process may be at its file: nobody waits for its lock")
    func locked() throws {
        let turns = process()
        #expect(turns.take("h", [3], now: 0) == nil)
        let descriptor = try FileIO.open("\(workPath.turnsFolder)/h", O_RDWR)
        defer { FileIO.close(descriptor) }
        #expect(flock(descriptor, LOCK_EX) == 0)
        let until = turns.take("h", [3], now: 3)
        #expect(until == 50_000_003)
        #expect(flock(descriptor, LOCK_UN) == 0)
        #expect(turns.take("h", [3], now: 3) == nil)
    }

    @Test("a request without a limit touches no file")
    func free() async throws {
        let bench = try await Bench(
            content: [1], settings: { $0.hosts = [HostPolicy("other.example", connections: 1)] })
        try await bench.completed("a")
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.turnsFolder))
    }

    // MARK: Beside an engine

    private static let rate = RequestRate(20, per: .minute)

    @Test("an engine waits for the turns of another process, and gives it its own")
    func besideEngine() async throws {
        let bench = try await Bench(
            content: [1], settings: { $0.hosts = [HostPolicy("h.example", requestRate: Self.rate)] })
        let other = HostTurns(bench.workPath) { [clock = bench.clock] in clock.now }
        let intervals = [Self.rate.interval]
        #expect(other.acquire("h.example", intervals) == nil)
        for name in ["a", "b"] { try await bench.add(name) }
        await bench.settle()
        #expect(bench.transport.requests.isEmpty)
        await bench.advance(3.05)
        #expect(bench.transport.requests.count == 1)
        let turn = try #require(other.acquire("h.example", intervals))
        #expect(turn == bench.clock.now + intervals[0])
        // Both come at the same time; the other one was first.
        await bench.advance(3.05)
        #expect(bench.transport.requests.count == 1)
        #expect(other.acquire("h.example", intervals) == nil)
        await bench.advance(3)
        #expect(bench.transport.requests.count == 1)
        await bench.advance(0.05)
        #expect(bench.transport.requests.count == 2)
        await bench.engine.waitUntilDrained()
    }

    @Test("an engine with all connections of a host gives one to another process, and goes on when it is free again")
    func engineYields() async throws {
        let gate = TestGate()
        let large = Bytes.pattern(count: 8 << 20)
        let bench = try await Bench(
            settings: {
                $0.connections = .fixed(2)
                $0.hosts = [HostPolicy("h.example", connections: 2)]
            }
        ) { request, _ in .file(large, to: request, gate: gate, pauseAt: 1_000) }
        let other = HostTurns(bench.workPath) { [clock = bench.clock] in clock.now }
        let id = try await bench.add("a")
        try await bench.advance(by: 1) { bench.transport.requests.count == 2 }
        var held = other.connect("h.example", limit: 2).connection
        #expect(held == nil)
        try await bench.advance(by: 0.05) {
            held = other.connect("h.example", limit: 2).connection
            return held != nil
        }
        let waiting = try await bench.add("b")
        await bench.settle()
        #expect(await bench.messager.info(.id(waiting))?.waitingPolicy == "h.example: 2 connections")
        held = nil
        gate.open()
        for id in [id, waiting] {
            try await bench.advance(by: 0.1) { await bench.state(id) == .complete }
        }
    }
}
