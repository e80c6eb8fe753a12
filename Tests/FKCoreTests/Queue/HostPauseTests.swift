import TestSupport
import Testing

@testable import FKEngine
@testable import FKModel
@testable import FKStore

/// What a host asks for holds for all of its tasks, and each of them can say so.
@Suite("Hosts that ask to be left alone")
struct HostPauseTests {
    private static let content = Bytes.pattern(count: 1_000)

    private static func retryAfter(_ seconds: String, status: Int = 503) -> Bench.Answer {
        .status(status, [.init("Retry-After", seconds)])
    }

    /// What another process reads.
    private func read(_ bench: Bench, _ id: TaskID) throws -> Waiting? {
        bench.workPath.waitNotice.waiting(of: try bench.stored(id), now: bench.clock.date)
    }

    @Test("of two Retry-After of one host the longer one holds", arguments: [true, false])
    func longer(_ isLongFirst: Bool) async throws {
        let gates = (0..<2).map { _ in TestGate() }
        let asked = isLongFirst ? ["40", "5"] : ["5", "40"]
        let bench = try await Bench(settings: { $0.maxConnectionsPerHost = 2 }) { request, number in
            guard number <= 2 else { return .file(Self.content, to: request) }
            return Bench.Answer([.wait(gates[number - 1])] + Self.retryAfter(asked[number - 1]).steps)
        }
        for name in ["a", "b"] { try await bench.add(name) }
        let other = try await bench.add("c")
        await bench.transport.started(2)
        for (index, name) in ["a", "b"].enumerated() {
            gates[index].open()
            await bench.reached(name, .idle, times: 2)
        }
        let end = bench.clock.date + 40
        for id in [bench.task("a").id, bench.task("b").id, other] {
            let info = try #require(await bench.messager.info(.id(id)))
            #expect(info.waitingUntil == end && info.waitingHost == "h.example", "\(info.url)")
        }
        await bench.advance(39)
        #expect(bench.transport.requests.count == 2)
        await bench.advance(1)
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 5)
    }

    @Test("each waiting task says which host asked, until when", arguments: [429, 503])
    func said(_ status: Int) async throws {
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, number in
            number == 1 ? Self.retryAfter("40", status: status) : .file(Self.content, to: request)
        }
        let first = try await bench.add("http://a.example:8080/first")
        await bench.reached("first", .idle, times: 2)
        let second = try await bench.add("http://a.example:8080/second")
        let until = bench.clock.date + 40
        let expected: [(TaskID, Waiting)] = [
            (first, Waiting(.retry, until: until, host: "a.example:8080")),
            (second, Waiting(.host, until: until, host: "a.example:8080")),
        ]
        for (id, waiting) in expected {
            let info = try #require(await bench.messager.info(.id(id)))
            #expect(info.wait == waiting && info.waitingUntil == until)
            #expect(info.waitingHost == "a.example:8080" && info.waitingLimit == nil)
            #expect(try read(bench, id) == waiting)
            #expect(try bench.stored(id).state == .idle)
        }
        await bench.advance(40)
        await bench.engine.waitUntilDrained()
        await bench.advance(1)
        #expect(bench.workPath.waitNotice == WaitNotice())
        #expect(!FileManager.default.fileExists(atPath: bench.workPath.waitingPath))
    }

    @Test("a task waits for a slot or for its host: it says which, and of how many")
    func limits() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: {
            $0.maxAction = 3
            $0.maxConnectionsPerHost = 2
        }) { request, _ in .file(Self.content, to: request, gate: gate) }
        for index in 0..<2 { try await bench.add("http://a.example/\(index)") }
        let third = try await bench.add("http://a.example/2")
        await bench.transport.started(2)
        await bench.advance(1)
        var info = try #require(await bench.messager.info(.id(third)))
        #expect(info.waiting == .host("a.example", limit: 2))
        #expect(info.waitingUntil == nil)
        #expect(try read(bench, third) == Waiting(.host, host: "a.example", limit: 2))
        try await bench.add("http://b.example/3")
        await bench.transport.started(3)
        await bench.advance(1)
        info = try #require(await bench.messager.info(.id(third)))
        #expect(info.waiting == .slot(limit: 3) && info.waitingHost == nil && info.waitingLimit == 3)
        #expect(try read(bench, third) == Waiting(.slot, limit: 3))
        gate.open()
        await bench.engine.waitUntilDrained()
    }

    @Test("a host stays paused after a restart, at most for maxRetryAfter; a file with other content is ignored")
    func restart() async throws {
        let clock = ManualClock()
        let first = try await Bench(clock: clock) { _, _ in Self.retryAfter("300") }
        try await first.add("a")
        await first.reached("a", .idle, times: 2)
        await first.downloader.close()
        clock.advance(seconds: 100)
        let second = try await Bench(in: first.folder, clock: clock, content: Self.content)
        let other = try await second.add("b")
        #expect(await second.messager.info(.id(other))?.waitingHost == "h.example")
        await second.advance(199)
        #expect(second.transport.requests.isEmpty)
        await second.advance(1)
        await second.engine.waitUntilDrained()
        #expect(Set(second.asked) == ["a", "b"])
        await second.downloader.close()

        var notice = WaitNotice()
        notice.hosts["http://h.example"] = .init(until: clock.date + 1e7)
        try notice.write(in: first.workPath)
        let third = try await Bench(in: first.folder, clock: clock, content: Self.content)
        let late = try await third.add("c")
        await third.advance(third.downloader.configure.retry.maxRetryAfterSeconds)
        #expect(await third.finished(late)?.state == .complete)
        await third.downloader.close()

        // The wall clock was set back by an hour after a pause of two seconds.
        notice.hosts["http://h.example"] = .init(until: clock.date + 3_602, seconds: 2)
        try notice.write(in: first.workPath)
        let back = try await Bench(in: first.folder, clock: clock, content: Self.content)
        let soon = try await back.add("soon")
        await back.advance(2)
        #expect(await back.finished(soon)?.state == .complete)
        await back.downloader.close()

        try write(Array("{\"hosts\":7".utf8), first.workPath.waitingPath)
        let fourth = try await Bench(in: first.folder, clock: clock, content: Self.content)
        try await fourth.completed("d")
    }

    @Test("after a redirect the host that answered is the one that asked: the first one is not held back")
    func redirected() async throws {
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, number in
            guard number == 1 else { return .file(Self.content, to: request) }
            return Bench.Answer([
                .head(
                    ResponseHead(
                        status: 503, fields: [.init("Retry-After", "40")], url: "http://CDN.example:80/x", redirects: 1)
                )
            ])
        }
        let first = try await bench.add("http://a.example/first")
        await bench.reached("first", .idle, times: 2)
        let held = try await bench.add("http://cdn.example./held")
        try await bench.completed("http://a.example/free")
        for id in [first, held] { #expect(await bench.messager.info(.id(id))?.waitingHost == "cdn.example") }
        await bench.advance(40)
        await bench.engine.waitUntilDrained()
        #expect(await bench.state(held) == .complete)
    }

    @Test("what a further connection is told counts for the host of that connection", arguments: [true, false])
    func furtherConnection(_ isMirror: Bool) async throws {
        let gate = TestGate()
        let content = Bytes.pattern(count: 8 << 20)
        let bench = try await Bench(settings: { $0.connections = .fixed(2) }) { request, number in
            if number == 1 { return .file(content, to: request, gate: gate, pauseAt: 300_000) }
            guard request.urlRequest.url?.lastPathComponent == "f" else { return .file(Self.content, to: request) }
            return isMirror && request.urlRequest.url?.host == "a.example"
                ? .file(content, to: request) : Self.retryAfter("40")
        }
        let id = try await bench.add("http://a.example/f") { $0.mirrors = isMirror ? ["http://b.example/f"] : [] }
        await bench.transport.started(1)
        let host = isMirror ? "http://b.example" : "http://a.example"
        try await bench.advance(by: LaneGrowth.intervals.upperBound) { await !bench.engine.hosts.pauses.isEmpty }
        #expect(await bench.engine.hosts.pauses.keys.sorted() == [host])
        let held = try await bench.add("\(host)/held")
        #expect(await bench.messager.info(.id(held))?.waitingHost == host.shownSite)
        gate.open()
        #expect(await bench.finished(id)?.state == .complete)
        await bench.advance(60)
        #expect(await bench.finished(held)?.state == .complete)
        #expect(await bench.engine.hosts.connections.isEmpty)
    }

    @Test("a task that is not in the queue of an engine of chosen tasks waits for a command, and for no slot")
    func unasked() throws {
        let date = Date(timeIntervalSince1970: 1_800_000_000)
        let records = ["http://h.example/a", "http://h.example/b"].map {
            TaskRecord(task: TaskDescription(url: $0), id: TaskID(url: $0), number: 1, created: date)
        }
        var notice = WaitNotice()
        notice.slots = 3
        notice.queued = [records[0].id.hex]
        #expect(notice.waiting(of: records[0], now: date + 10)?.reason == .slot)
        #expect(notice.waiting(of: records[1], now: date + 10)?.reason == .queue)
        #expect(notice.waiting(of: records[1], now: date + 1)?.reason == .slot, "a new task may be queued by now")
    }

    @Test("an engine with nothing to say leaves no file; what it says comes back as it was")
    func notice() throws {
        let folder = try TemporaryFolder()
        let workPath = WorkPath(folder.file("work"))
        try workPath.open(create: true)
        var notice = WaitNotice()
        try notice.write(in: workPath)
        #expect(!FileManager.default.fileExists(atPath: workPath.waitingPath))
        notice.slots = 4
        notice.hosts = [
            "http://[::1]:81": .init(until: Date(timeIntervalSince1970: 1_800_000_000), seconds: 9, limit: 2)
        ]
        try notice.write(in: workPath)
        #expect(workPath.waitNotice == notice)
        try WaitNotice().write(in: workPath)
        #expect(!FileManager.default.fileExists(atPath: workPath.waitingPath))
    }
}
