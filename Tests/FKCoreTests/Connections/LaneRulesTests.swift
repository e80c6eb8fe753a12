import Testing

@testable import FKEngine

@Suite("How many connections a file gets")
struct LaneRulesTests {
    @Test(
        "a fixed number is there from the beginning and is not measured",
        arguments: [(0, 1), (1, 1), (16, 16), (999, 256)])
    func fixed(_ given: Int, _ limit: Int) {
        var growth = LaneGrowth(limit: .fixed(given))
        #expect(growth.limit == limit && growth.isGrowing == false)
        growth.measured(bytes: 1_000_000, seconds: 1, lanes: limit, rest: .max)
        #expect(growth.limit == limit)
    }

    /// What the steps bring (MB/s), and the limits after each of them.
    struct Course: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var rates: [Double]
        var limits: [Int]
    }

    @Test(
        "automatic: four times as many while each step brings a tenth more, and back where it does not",
        arguments: [
            Course(
                testDescription: "limited per connection", rates: [10, 40, 160, 160], limits: [4, 16, 16, 16]),
            Course(testDescription: "one fills the link", rates: [10, 10.9, 50], limits: [4, 1, 1]),
            Course(testDescription: "two fill the link", rates: [10, 20, 21, 99], limits: [4, 16, 4, 4]),
            Course(testDescription: "a fast one is left alone", rates: [65, 999], limits: [1, 1]),
            Course(testDescription: "nothing came yet", rates: [0, 0, 5, 10], limits: [1, 1, 4, 16]),
        ])
    func automatic(_ course: Course) {
        var growth = LaneGrowth(limit: .automatic)
        for (rate, limit) in zip(course.rates, course.limits) {
            growth.measured(bytes: Int64(rate * 6e5), seconds: 0.6, lanes: growth.limit, rest: .max)
            #expect(growth.limit == limit)
        }
    }

    @Test("within 0.2 s only a large gain counts; a pause is waited out")
    func bursts() {
        var growth = LaneGrowth(limit: .automatic)
        growth.measured(bytes: 2_000_000, seconds: 0.05, lanes: 1, rest: .max)
        #expect(growth.limit == 1)
        growth.measured(bytes: 2_000_000, seconds: 0.1, lanes: 1, rest: .max)
        #expect(growth.limit == 4)
        // 20 MB/s were the rate of one. 29 are not enough within 0.2 s, and enough then.
        growth.measured(bytes: 1_450_000, seconds: 0.05, lanes: 4, rest: .max)
        for tick in [2, 3] {
            growth.measured(bytes: Int64(tick) * 1_450_000, seconds: Double(tick) * 0.05, lanes: 4, rest: .max)
            #expect(growth.limit == 4 && growth.isGrowing)
        }
        growth.measured(bytes: 5_800_000, seconds: 0.2, lanes: 4, rest: .max)
        #expect(growth.limit == 16)
    }

    @Test("a near server's burst that looks fast does not end the growth")
    func nearBurst() {
        var growth = LaneGrowth(limit: .automatic)
        growth.answered(after: 0.001)
        growth.measured(bytes: 4_000_000, seconds: 0.05, lanes: 1, rest: .max)
        #expect(growth.limit == 1 && growth.isGrowing)
        growth.measured(bytes: 4_000_000, seconds: 0.1, lanes: 1, rest: .max)
        #expect(growth.limit == 4)
        var fast = LaneGrowth(limit: .automatic)
        fast.answered(after: 0.001)
        for tick in 1...2 {
            fast.measured(bytes: Int64(tick) * 4_000_000, seconds: Double(tick) * 0.05, lanes: 1, rest: .max)
        }
        #expect(fast.limit == 1 && fast.isGrowing == false)
    }

    @Test("a connection that still speeds up is waited for, and measured at its speed")
    func ramp() {
        var growth = LaneGrowth(limit: .automatic)
        growth.answered(after: 0.1)
        // MB received after each tenth of a second: the rates are 1, 3, 9, 10 and 10 MB/s.
        for (tick, bytes) in [0.1, 0.4, 1.3, 2.3].enumerated() {
            growth.measured(bytes: Int64(bytes * 1e6), seconds: Double(tick + 1) / 10, lanes: 1, rest: .max)
            #expect(growth.limit == (tick < 3 ? 1 : 4), "tick \(tick)")
        }
        // 10 MB/s were its speed, not 6: four connections with 10 are no gain.
        for tick in 1...6 {
            growth.measured(bytes: Int64(tick) * 1_000_000, seconds: Double(tick) / 10, lanes: 4, rest: .max)
        }
        #expect(growth.limit == 1 && growth.isGrowing == false)
    }

    @Test("a connection that speeds up without end is waited for twelve intervals")
    func longRamp() {
        var growth = LaneGrowth(limit: .automatic)
        growth.answered(after: 0.1)
        var bytes = 10.0
        for tick in 1...12 {
            bytes *= 2.7
            growth.measured(bytes: Int64(bytes), seconds: Double(tick) / 10, lanes: 1, rest: .max)
            #expect(growth.limit == 1)
        }
        bytes *= 2.7
        growth.measured(bytes: Int64(bytes), seconds: 1.3, lanes: 1, rest: .max)
        #expect(growth.limit == 4)
    }

    @Test(
        "the interval is the time to the first answer, within limits",
        arguments: [(0.0, 0.05), (0.001, 0.05), (0.12, 0.12), (3, 0.2)])
    func interval(_ answer: Double, _ interval: Double) {
        var growth = LaneGrowth(limit: .automatic)
        growth.answered(after: answer)
        #expect(growth.interval == interval)
    }

    @Test("a rest of less than four intervals is left to the connections that are there")
    func rest() {
        for (rest, limit) in [(4_100_000, 4), (3_900_000, 1)] as [(Int64, Int)] {
            var growth = LaneGrowth(limit: .automatic, interval: 0.1)
            growth.measured(bytes: 2_000_000, seconds: 0.2, lanes: 1, rest: rest)
            #expect(growth.limit == limit && growth.isGrowing)
        }
        // Those that are there stay.
        var growth = LaneGrowth(limit: .automatic, interval: 0.1)
        growth.measured(bytes: 2_000_000, seconds: 0.2, lanes: 1, rest: 40_000_000)
        growth.measured(bytes: 8_000_000, seconds: 0.2, lanes: 4, rest: 1_000_000)
        #expect(growth.limit == 4)
    }

    @Test("connections without an answer are waited for, for a while, and the time before them is not measured")
    func late() {
        var growth = LaneGrowth(limit: .automatic)
        growth.measured(bytes: 1_000_000, seconds: 0.2, lanes: 1, rest: .max)
        #expect(growth.limit == 4)
        var late = growth
        for tick in 1...100 { late.measured(bytes: 9_000, seconds: Double(tick) * 0.05, lanes: 1, rest: .max) }
        #expect(late.limit == 4 && late.isGrowing)
        late.measured(bytes: 9_000, seconds: 5.05, lanes: 1, rest: .max)
        #expect(late.isGrowing == false)
        // Answers after 0.8 s: only then four connections can bring more.
        for tick in 1...16 {
            growth.measured(bytes: Int64(tick) * 250_000, seconds: Double(tick) * 0.05, lanes: 1, rest: .max)
        }
        growth.measured(bytes: 5_000_000, seconds: 0.85, lanes: 4, rest: .max)
        #expect(growth.limit == 4 && growth.isGrowing)
        growth.measured(bytes: 6_000_000, seconds: 0.9, lanes: 4, rest: .max)
        #expect(growth.limit == 16)
    }

    @Test("a server that does not bear more ends the growth")
    func capped() {
        var growth = LaneGrowth(limit: .fixed(8))
        growth.cap(at: 3)
        #expect(growth.limit == 3)
        growth.cap(at: 5)
        #expect(growth.limit == 3)
        growth.cap(at: 0)
        #expect(growth.limit == 1 && growth.isSegmented == false)
    }

    @Test("a connection is stuck after three ticks without a byte, and not while any comes")
    func watch() {
        var watch = LaneWatch()
        let positions: [Int64] = [5, 5, 5, 6, 6, 6, 6, 6]
        #expect(positions.map { watch.isStuck(at: $0) } == [false, false, false, false, false, false, true, true])
    }
}
