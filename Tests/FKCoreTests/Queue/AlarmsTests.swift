import TestSupport
import Testing

@testable import FKEngine

@Suite("Alarms of the engine's timer")
struct AlarmsTests {
    private static let second: Int64 = 1_000_000_000

    private func expect(
        _ alarms: inout Alarms, at now: Int64, _ due: Alarms.Due, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = alarms.due(now)
        #expect(found == due, sourceLocation: sourceLocation)
    }

    @Test("the first tick is due at once, and then once a second")
    func ticks() {
        var alarms = Alarms(now: 5)
        #expect(alarms.next == 5)
        expect(&alarms, at: 5, .init(tick: true, sweep: true))
        expect(&alarms, at: 5 + Self.second - 1, .init())
        #expect(alarms.next == 5 + Self.second)
        expect(&alarms, at: 5 + Self.second, .init(tick: true))
    }

    @Test("a tick that is a little late keeps the beat; a very late one runs once", arguments: [0.3, 1, 7.5, 3_600])
    func late(_ seconds: Double) {
        var alarms = Alarms(now: 0)
        _ = alarms.due(0)
        let now = Self.second + Int64(seconds * 1e9)
        let ticks = (0..<2).map { _ in alarms.due(now).tick }
        #expect(ticks == [true, false])
        #expect(alarms.next > now && alarms.next <= now + Self.second)
        #expect(seconds >= 1 || alarms.next == 2 * Self.second)
    }

    @Test("what is set once is due once; the earlier of two deadlines counts")
    func once() {
        var alarms = Alarms(now: 0)
        _ = alarms.due(0)
        alarms.setReport(300)
        alarms.setReport(200)
        alarms.setGrowth(250)
        #expect(alarms.hasReport && alarms.hasGrowth && alarms.next == 200)
        expect(&alarms, at: 200, .init(report: true))
        #expect(!alarms.hasReport && alarms.next == 250)
        expect(&alarms, at: 260, .init(growth: true))
        expect(&alarms, at: 260, .init())
    }

    @Test("tasks wake in the order of their deadlines, each once")
    func wakes() {
        var alarms = Alarms(now: 0)
        _ = alarms.due(0)
        let ids = (0..<3).map { TaskID(url: "http://h/\($0)") }
        for (id, due) in zip(ids, [30, 10, 20] as [Int64]) { alarms.wakes.push(id, due: due) }
        #expect(alarms.next == 10)
        expect(&alarms, at: 25, .init(woken: [ids[1], ids[2]]))
        expect(&alarms, at: 30, .init(woken: [ids[0]]))
    }

    @Test("random looks at the clock: never two ticks within a second of late ones, and no deadline is left behind")
    func random() {
        var random = SeededRandom(seed: 24)
        var alarms = Alarms(now: 0)
        var now: Int64 = 0
        var ticks = 0
        for _ in 0..<10_000 {
            now += Int64.random(in: 0...3 * Self.second, using: &random)
            if Bool.random(using: &random) { alarms.setReport(now + Int64.random(in: -5...5, using: &random)) }
            let due = alarms.due(now)
            ticks += due.tick ? 1 : 0
            #expect(alarms.next > now)
        }
        #expect(Int64(ticks) <= now / Self.second + 1)
    }

    /// Time passes after each look at the wall clock.
    private final class PassingClock: EngineClock {
        let clock = ManualClock()
        var now: Int64 { clock.now }
        var date: Date {
            defer { clock.advance(seconds: 1) }
            return clock.date
        }
        var isManual: Bool { true }
        func onManualChange(_ wake: @escaping @Sendable () -> Void) {}
    }

    @Test("time that passes while a deadline is worked out makes nobody wait longer")
    func deadline() {
        let clock = PassingClock()
        let due = clock.deadline(of: clock.clock.date + 1, atMost: 60)
        #expect(due == clock.clock.now)
        #expect(clock.deadline(of: clock.clock.date, atMost: 60) == nil)
        let now = clock.clock.now
        #expect(clock.deadline(of: clock.clock.date + 1e9, atMost: 60) == now + 60 * Self.second)
    }
}
