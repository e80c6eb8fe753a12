import Testing

@testable import FKEngine

/// A file's connections to a server, computed: no clock, no network.
private struct SimulatedServer {
    /// The bytes that a connection alone on its link has delivered, by the seconds since its answer.
    var delivered: @Sendable (Double) -> Double
    /// The seconds from a request to its answer: the first one needs a connection as well.
    var answer: Double
    /// What the link carries, in bytes a second.
    var link = Double.infinity

    struct Outcome {
        var largest = 1
        var last = 1
        /// The seconds until the file was complete.
        var end = 0.0
    }

    /// Fetches `size` bytes. The looks come `delay` seconds late.
    func fetch(_ size: Double, delay: Double = 0) -> Outcome {
        var growth = LaneGrowth(limit: .automatic)
        growth.answered(after: answer)
        var outcome = Outcome()
        var answers = [0.0]
        var changed = (time: 0.0, bytes: 0.0)
        var bytes = 0.0
        var look = growth.interval + delay
        var last = 0.0
        let step = 0.001
        var time = 0.0
        while bytes < size, time < 60 {
            time += step
            let wanted = answers.reduce(0.0) { sum, start in
                sum + (time > start ? delivered(time - start) - delivered(max(0, time - step - start)) : 0)
            }
            last += wanted
            // A burst that the link cannot carry at once comes later.
            let sent = min(last, link * step)
            last -= sent
            bytes += sent
            if growth.isGrowing, time >= look {
                let limit = growth.limit
                growth.measured(
                    bytes: Int64(bytes - changed.bytes), seconds: time - changed.time,
                    lanes: answers.count { $0 <= time }, rest: Int64(size - bytes))
                if growth.limit > limit {
                    answers += Array(repeating: time + answer, count: growth.limit - answers.count)
                } else if growth.limit < limit {
                    answers = Array(answers.prefix(growth.limit))
                }
                if growth.limit != limit { changed = (time, bytes) }
                outcome.largest = max(outcome.largest, growth.limit)
                look = time + growth.interval + delay
            }
        }
        outcome.last = growth.limit
        outcome.end = time
        return outcome
    }

    /// Limits each connection as nginx does: a burst of 2 MiB, then a pause.
    static func bursts(_ rate: Double, answer: Double) -> SimulatedServer {
        let burst = Double(2 << 20)
        return SimulatedServer(
            delivered: { $0 <= 0 ? 0 : burst * ($0 * rate / burst + 1).rounded(.down) }, answer: answer)
    }

    /// TCP: ten packets, and twice as many in each round trip, until the line is full.
    static func slowStart(_ rate: Double, roundTrip: Double) -> SimulatedServer {
        SimulatedServer(
            delivered: { time in
                var (sum, window) = (0.0, 14_600.0)
                var left = max(0, time)
                while left >= roundTrip, window < rate * roundTrip {
                    sum += window
                    window *= 2
                    left -= roundTrip
                }
                // The packets of a round trip come one after the other, as fast as the line carries them.
                return sum + (window < rate * roundTrip ? min(window, left * rate) : left * rate)
            }, answer: 4 * roundTrip, link: rate)
    }
}

@Suite("The connections of a file over time, with a computed server")
struct LaneCourseTests {
    @Test(
        "a server that limits each connection: what one fetches in 10 s takes a second, wherever the looks fall",
        arguments: [2.0, 5, 8, 10, 15, 20, 25, 30])
    func bursts(rate: Double) {
        let rate = rate * Double(1 << 20)
        for delay in stride(from: 0, to: 0.05, by: 0.003) {
            let outcome = SimulatedServer.bursts(rate, answer: 0.002).fetch(10 * rate, delay: delay)
            #expect(outcome.last == 16 && outcome.end < 1, "\(delay): \(outcome)")
        }
    }

    @Test("a near server: each step takes one look", arguments: [10.0, 20])
    func near(rate: Double) {
        let rate = rate * Double(1 << 20)
        // Sixteen connections from the beginning need 10 / 16 s.
        #expect(SimulatedServer.bursts(rate, answer: 0.000_5).fetch(10 * rate).end < 0.68)
    }

    @Test(
        "a far server that one connection serves well is asked for no more",
        arguments: [0.01, 0.02, 0.05, 0.08, 0.1, 0.12, 0.15, 0.18, 0.2], [80e6, 120e6])
    func far(roundTrip: Double, rate: Double) {
        let outcome = SimulatedServer.slowStart(rate, roundTrip: roundTrip).fetch(rate * 20)
        #expect(outcome.largest == 1, "\(outcome)")
    }

    @Test(
        "a line that one connection fills: at most one step is tried, and undone",
        arguments: [1e6, 3e6, 8e6, 20e6, 40e6], [0.002, 0.02, 0.05, 0.1, 0.15, 0.2])
    func link(rate: Double, roundTrip: Double) {
        let outcome = SimulatedServer.slowStart(rate, roundTrip: roundTrip).fetch(rate * 20)
        #expect(outcome.largest <= 4 && outcome.last == 1, "\(outcome)")
    }
}
