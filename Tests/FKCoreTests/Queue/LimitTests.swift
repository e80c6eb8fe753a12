import TestSupport
import Testing

@testable import FKEngine

/// Limits act at once, and on the tasks they are meant for. The clock stands still where it is not moved: no pause ends by itself.
@Suite("Limits")
struct LimitTests {
    private static let content = Bytes.pattern(count: 10_000)

    private func bench(_ settings: (inout Configure) -> Void = { _ in }) async throws -> Bench {
        try await Bench(settings: settings) { request, _ in .file(Self.content, to: request) }
    }

    private static func add(_ tasks: [TaskDescription], barrel: String? = nil) -> EngineRequest {
        .add(tasks: tasks, barrel: barrel, run: true)
    }

    enum Way: CaseIterable, Sendable {
        case update
        case request
        case own
        case standing
        case barrel
        case group
        case groupAskedAgain
        case leftBarrel
    }

    @Test(
        "a limit that is lifted or raised lets a paused transfer go on at once",
        arguments: Way.allCases, [nil, 1 << 40] as [Int64?])
    func raised(_ way: Way, _ rate: Int64?) async throws {
        let bench = try await bench { if [.update, .request].contains(way) { $0.rateLimit = 1 } }
        let engine = bench.engine
        if way == .standing { _ = await engine.answer(.limit(rate: 1, barrel: nil)) }
        let isBarrel = way == .barrel || way == .leftBarrel
        if isBarrel {
            _ = await engine.answer(.createBarrel(name: "b", options: BarrelOptions()))
            _ = await engine.answer(.limit(rate: 1, barrel: "b"))
        }
        let task = bench.task("a") { if way == .own { $0.options.rateLimit = 1 } }
        let slow = OwnLimits(name: "slow", rateLimit: 1)
        let add = Self.add([task], barrel: isBarrel ? "b" : nil)
        let isGroup = way == .group || way == .groupAskedAgain
        _ = await engine.answer(add, own: isGroup ? slow : nil)
        #expect(await bench.transport.paused(1) == [10_000])
        switch way {
        case .update:
            try await bench.update { $0.rateLimit = rate }
        case .request: _ = await engine.answer(.setLimits(maxAction: nil, rateLimit: rate ?? 0))
        case .own: _ = try await bench.add("a") { $0.options.rateLimit = rate }
        case .standing, .group: _ = await engine.answer(.limit(rate: rate, barrel: nil))
        case .barrel: _ = await engine.answer(.limit(rate: rate, barrel: "b"))
        case .groupAskedAgain:
            _ = await engine.answer(Self.add([task]), own: OwnLimits(name: "fast", rateLimit: rate))
        case .leftBarrel: _ = await engine.answer(.removeFromBarrel(name: "b", urls: [task.url]))
        }
        // The bucket of a new rate fills as the clock goes on; the transfer has asked it at once.
        if rate != nil, way != .leftBarrel {
            let pauses = await bench.transport.paused(2)
            #expect(pauses[1] < 1)
            _ = await engine.answer(.limit(rate: nil, barrel: nil))
            await bench.advance(1)
        }
        #expect(await bench.finished(task.id)?.state == .complete)
        #expect(bench.transport.requests.count == 1, "no attempt was given up for it")
    }

    @Test("a limit set on what runs without one holds it back", arguments: [nil, "b"])
    func set(_ barrel: String?) async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate) }
        _ = await bench.engine.answer(Self.add([bench.task("a")], barrel: barrel))
        await gate.reached()
        _ = await bench.engine.answer(.limit(rate: 1, barrel: barrel))
        gate.open()
        #expect(await bench.transport.paused(1) == [10_000])
    }

    @Test("a second command's rate limit holds for its own tasks and no others")
    func rateOfSecond() async throws {
        let bench = try await bench()
        let first = TestGate()
        let other = try await Bench { request, _ in .file(Self.content, to: request, gate: first) }
        _ = await other.engine.answer(Self.add([other.task("a")]))
        await first.reached()
        _ = await other.engine.answer(Self.add([other.task("b")]), own: OwnLimits(name: "2", rateLimit: 1))
        first.open()
        #expect(await other.finished(other.task("a").id)?.state == .complete)
        #expect(await other.transport.paused(1) == [10_000])
        #expect(await other.state(other.task("b").id) == .action)
        // What comes after it is free of it, too.
        _ = await bench.engine.answer(Self.add([bench.task("a")]), own: OwnLimits(name: "1", rateLimit: 1))
        _ = await bench.transport.paused(1)
        try await bench.completed("b")
        #expect(await bench.engine.currentConfigure.rateLimit == nil)
    }

    @Test("the limit in force of all tasks, and of the barrel of its running tasks, may be a command's")
    func inForce() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(Self.content, to: request, gate: gate) }
        _ = await bench.engine.answer(
            Self.add([bench.task("a")], barrel: "b"), own: OwnLimits(name: "1", rateLimit: 1 << 20))
        await gate.reached()
        let report = try #require(await bench.engine.answer(.limits).limitsReport)
        #expect(report.inForce(ofBarrel: nil) == 1 << 20 && report.inForce(ofBarrel: "b") == 1 << 20)
        #expect(report.inForce(ofBarrel: "other") == nil)
        _ = await bench.engine.answer(.limit(rate: 4 << 20, barrel: "b"))
        let after = try #require(await bench.engine.answer(.limits).limitsReport)
        #expect(after.inForce(ofBarrel: "b") == 4 << 20)
        gate.open()
    }

    @Test("a command's tasks at once are its own, and bring slots of their own")
    func jobs() async throws {
        let gate = TestGate()
        let bench = try await Bench(settings: { $0.maxAction = 2 }) { request, _ in
            .file(Self.content, to: request, gate: gate)
        }
        let one = OwnLimits(name: "one", maxAction: 1)
        let four = OwnLimits(name: "four", maxAction: 4)
        _ = await bench.engine.answer(Self.add((0..<3).map { bench.task("a\($0)") }), own: one)
        _ = await bench.engine.answer(Self.add((0..<6).map { bench.task("b\($0)") }), own: four)
        _ = await bench.engine.answer(Self.add((0..<3).map { bench.task("c\($0)") }))
        await bench.transport.started(7)
        await bench.sync()
        #expect(Set(bench.asked) == ["a0", "b0", "b1", "b2", "b3", "c0", "c1"])
        let waiting = await bench.engine.waitingInfos().compactMap(\.url.last)
        #expect(Set(waiting) == ["1", "2", "4", "5"])
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 12)
        #expect(await bench.engine.groups.all.isEmpty, "a command's limits end with its tasks")
    }

    @Test("of the total, a barrel's and a command's limit the tightest counts", arguments: 0..<3)
    func tightest(_ which: Int) async throws {
        let rates: [Int64] = (0..<3).map { $0 == which ? 10 : 100 }
        let bench = try await bench()
        _ = await bench.engine.answer(.limit(rate: rates[0], barrel: nil))
        _ = await bench.engine.answer(.createBarrel(name: "b", options: BarrelOptions()))
        _ = await bench.engine.answer(.limit(rate: rates[1], barrel: "b"))
        let own = OwnLimits(name: "1", rateLimit: rates[2])
        _ = await bench.engine.answer(Self.add([bench.task("a")], barrel: "b"), own: own)
        let begun = bench.clock.now
        var count = 0
        repeat {
            count += 1
            await bench.advance(await bench.transport.paused(count)[count - 1])
        } while bench.transport.running > 0
        #expect(await bench.finished(bench.task("a").id)?.state == .complete)
        let seconds = Double(bench.clock.now - begun) / 1e9
        #expect(seconds >= 1_000 && seconds < 1_200)
    }

    @Test("two members share their barrel's limit, and the next engine knows it")
    func shared() async throws {
        let bench = try await bench()
        _ = await bench.engine.answer(.createBarrel(name: "b", options: BarrelOptions()))
        _ = await bench.engine.answer(.limit(rate: 1, barrel: "b"))
        await bench.downloader.close()
        let next = try await Bench(in: bench.folder, content: Self.content)
        _ = await next.engine.answer(Self.add([next.task("a"), next.task("b")], barrel: "b"))
        try await next.completed("c")
        // The second one waits for its turn behind a round of the first.
        #expect(await next.transport.paused(2) == [10_000, 2_048])
        let report = try #require(await next.engine.answer(.limits).limitsReport)
        #expect(report.rate == nil && report.barrels == [.init(name: "b", rate: 1)])
    }

    @Test("barrels whose names differ in their bytes alone have limits of their own")
    func names() async throws {
        let bench = try await bench()
        let (one, other) = ("caf\u{e9}", "cafe\u{301}")
        for name in [one, other] {
            _ = await bench.engine.answer(.createBarrel(name: name, options: BarrelOptions()))
        }
        _ = await bench.engine.answer(.limit(rate: 1, barrel: one))
        _ = await bench.engine.answer(Self.add([bench.task("a")], barrel: one))
        _ = await bench.engine.answer(Self.add([bench.task("b")], barrel: other))
        #expect(await bench.finished(bench.task("b").id)?.state == .complete)
        #expect(await bench.transport.paused(1) == [10_000])
        #expect(await bench.state(bench.task("a").id) == .action)
    }

    @Test("the standing limit lasts until it is changed, and takes the place of the commands' own")
    func standing() async throws {
        let bench = try await bench()
        let engine = bench.engine
        _ = await engine.answer(Self.add([bench.task("a")]), own: OwnLimits(name: "1", rateLimit: 1))
        _ = await bench.transport.paused(1)
        let note = try #require(await engine.answer(.limit(rate: 2, barrel: nil)).doneNote)
        #expect(note.contains("1 running command"))
        #expect(await bench.transport.paused(2) == [10_000, 5_000])
        await bench.downloader.close()
        #expect(try StandingLimit.read(in: bench.workPath) == 2)
        let next = try await Bench(in: bench.folder, content: Self.content)
        #expect(await next.transport.paused(1).first == 5_000)
        let error = try #require(await next.engine.answer(.limit(rate: -1, barrel: nil)).failure)
        #expect(error.code == .invalidArgument && error.message.contains("-1"))
        let missing = try #require(await next.engine.answer(.limit(rate: 1, barrel: "none")).failure)
        #expect(missing.code == .notFound)
        _ = await next.engine.answer(.limit(rate: nil, barrel: nil))
        await next.engine.waitUntilDrained()
        #expect(try StandingLimit.read(in: next.workPath) == nil)
    }

    @Test("a daily window has a limit of its own, begins and ends by the clock, and ends with a limit without windows")
    func daily() async throws {
        let bench = try await bench()
        let engine = bench.engine
        let minute = DailyWindow.minute(of: bench.clock.date)
        let window = DailyWindow(begin: (minute + 2) % 1_440, end: (minute + 5) % 1_440)
        func inForce() async throws -> (Int64?, String?) {
            guard case .limits(let report) = await engine.answer(.limits) else { return (-1, nil) }
            return (report.rate, report.window?.text)
        }
        _ = await engine.answer(.limit(rate: 9, barrel: nil))
        let note = await engine.answer(.limit(rate: 2, barrel: nil, daily: [window])).doneNote
        #expect(note == "all tasks: at most 2 B/s, daily \(window.text)")
        #expect(try await inForce() == (9, nil))
        await bench.advance(125)
        #expect(try await inForce() == (2, window.text))
        _ = await engine.answer(Self.add([bench.task("a")]))
        #expect(await bench.transport.paused(1).count == 1)
        await bench.advance(200)
        #expect(try await inForce() == (9, nil))
        let stored = try StandingLimit.stored(in: bench.workPath)
        #expect(stored.rate == 9 && stored.daily.map(\.text) == [window.text])
        let lifted = await engine.answer(.limit(rate: nil, barrel: nil)).doneNote
        #expect(lifted == "all tasks: no limit; its daily windows are removed")
        #expect(try StandingLimit.stored(in: bench.workPath) == StandingLimit())
        await engine.waitUntilDrained()
        let ofBarrel = try #require(await engine.answer(.limit(rate: 1, barrel: "b", daily: [window])).failure)
        #expect(ofBarrel.code == .notFound || ofBarrel.code == .invalidArgument)
    }

    @Test("the limit and all of its windows are set together, or not at all") func wholeLimit() async throws {
        let bench = try await bench()
        let engine = bench.engine
        let day = try #require(DailyWindow("08:00-18:00"))
        var first = day
        first.rate = 5
        var free = try #require(DailyWindow("20:00-22:00"))
        free.rate = 0
        let note = await engine.answer(.limit(StandingLimit(rate: 9, daily: [first, free]))).doneNote
        #expect(note == "all tasks: at most 9 B/s, and 2 daily windows")
        let stored = try StandingLimit.stored(in: bench.workPath)
        #expect(stored.rate == 9 && stored.daily.map(\.rate) == [5, nil])
        var negative = day
        negative.rate = -1
        let many = (0..<49).map { DailyWindow(begin: $0, end: 700, rate: 1) }
        for windows in [[day, first], [negative], many] {
            let failure = await engine.answer(.limit(StandingLimit(rate: 1, daily: windows))).failure
            #expect(failure?.code == .invalidArgument)
        }
        #expect(await engine.answer(.limit(StandingLimit(rate: -1))).failure?.code == .invalidArgument)
        #expect(try StandingLimit.stored(in: bench.workPath) == stored)
        #expect(await engine.answer(.limit(StandingLimit())).doneNote == "all tasks: no limit")
        #expect(try StandingLimit.stored(in: bench.workPath) == StandingLimit())
    }

    @Test("windows of several commands add up, the lowest of those that overlap applies, and one may pass midnight")
    func windows() throws {
        func window(_ text: String) throws -> DailyWindow { try #require(DailyWindow(text)) }
        let plan = try StandingLimit(rate: 9).setting(4, daily: [window("08:00-18:00"), window("22:00-06:00")])
            .setting(nil, daily: [window("01:00-02:00")]).setting(5, daily: [window("17:00-20:00")])
        #expect(plan.daily.map(\.text) == ["01:00-02:00", "08:00-18:00", "17:00-20:00", "22:00-06:00"])
        let rates = [(7, 9), (8, 4), (17, 4), (18, 5), (21, 9), (23, 4), (1, 4), (6, 9)]
        for (hour, rate) in rates { #expect(plan.limit(at: hour * 60).rate == Int64(rate), "\(hour):00") }
        #expect(try plan.setting(nil, daily: [window("8:00-18:00")]).limit(at: 9 * 60).rate == nil)
        #expect(plan.setting(3, daily: []) == StandingLimit(rate: 3))
        #expect(DailyWindow("0:00-24:00")?.contains(1_439) == true && DailyWindow("20:00-00:00")?.text == "20:00-24:00")
        for text in [
            "", "8-9", "08:00", "08:00-08:00", "24:00-08:00", "08:60-09:00", "25:00-26:00", "08:00-09:00-10:00",
        ] {
            #expect(DailyWindow(text) == nil, "\(text)")
        }
    }

    @Test("the API sets, tells and removes the limit of all and that of a barrel; what cannot be is refused")
    func control() async throws {
        let bench = try await bench()
        let control = bench.control
        _ = try await bench.downloader.barrel("b")
        try await control.setRateLimit(1)
        try await control.setRateLimit(5, ofBarrel: "b")
        #expect(try await control.rateLimit() == 1)
        #expect(try await control.rateLimit(ofBarrel: "b") == 5)
        let id = try await bench.add("a")
        #expect(await bench.transport.paused(1) == [10_000])
        try await control.setRateLimit(nil)
        try await control.setRateLimit(0, ofBarrel: "b")
        #expect(try await control.rateLimit() == nil)
        #expect(try await control.rateLimit(ofBarrel: "b") == nil)
        #expect(await bench.finished(id)?.state == .complete)
        await #expect(throws: DownloadError.self) { try await control.rateLimit(ofBarrel: "none") }
        await #expect { try await control.setRateLimit(1, ofBarrel: "none") } throws: {
            ($0 as? DownloadError)?.code == .notFound
        }
        await #expect { try await control.setRateLimit(-1) } throws: {
            ($0 as? DownloadError)?.code == .invalidArgument
        }
    }
}
