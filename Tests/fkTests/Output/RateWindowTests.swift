import Foundation
import Testing

@testable import fk

@Suite("Rates over a window") struct RateWindowTests {
    /// Samples each 0.2 s of a counter.
    private func rates(seconds: Double, _ bytes: (Double) -> Double) -> [Double] {
        var window = RateWindow()
        var rates: [Double] = []
        for step in 0...Int(seconds * 5) {
            let time = Double(step) / 5
            window.add(time: Int64(time * 1e9), bytes: Int64(bytes(time)))
            if let rate = window.rate { rates.append(rate) }
        }
        return rates
    }

    @Test("A steady transfer has its rate, from the first value on") func steady() {
        for rate in rates(seconds: 20, { $0 * 1e6 }) { #expect(abs(rate - 1e6) < 1) }
    }

    @Test("A server that sends once in a period does not make it jump", arguments: [0.5, 0.9, 1.0, 1.3, 2.0])
    func bursts(period: Double) {
        let all = rates(seconds: 40) { ($0 / period).rounded(.down) * period * 1e6 }
        let settled = all.dropFirst(40)
        let range = (settled.min() ?? 0)...(settled.max() ?? 0)
        #expect(range.lowerBound > 0.8e6 && range.upperBound < 1.2e6, "\(range)")
        // The smoothed speed of the library goes up and down with each burst.
        #expect(range.upperBound - range.lowerBound < 0.3e6, "\(range)")
    }

    @Test("A change of the rate is there after the window") func change() {
        let all = rates(seconds: 40) { $0 < 20 ? $0 * 1e6 : 20e6 + ($0 - 20) * 3e6 }
        #expect(abs((all.last ?? 0) - 3e6) < 1)
        #expect(abs(all[28 * 5 - 3] - 3e6) < 1)
    }

    @Test("Silence is counted, and the rate falls to nothing") func silence() {
        var window = RateWindow()
        for step in 0...100 {
            window.add(time: Int64(step) * 200_000_000, bytes: Int64(min(step, 50)) * 1_000)
        }
        #expect(window.silence(at: 20_000_000_000) == 10)
        #expect(window.rate == 0)
        #expect(RateWindow().silence(at: 5) == 0 && RateWindow().rate == nil)
    }

    @Test("A counter or a clock that goes back begins again, never below nothing") func back() {
        var window = RateWindow()
        window.add(time: 0, bytes: 1_000_000)
        window.add(time: 5_000_000_000, bytes: 2_000_000)
        window.add(time: 6_000_000_000, bytes: 0)
        #expect(window.rate == nil)
        window.add(time: 7_000_000_000, bytes: 1_000)
        #expect(window.rate == 1_000)
        window.add(time: 1_000_000_000, bytes: 2_000)
        #expect(window.rate == nil)
    }

    @Test("The window holds few samples, however often it is fed") func bounded() {
        var window = RateWindow()
        for step in 0..<100_000 { window.add(time: Int64(step) * 1_000_000, bytes: Int64(step)) }
        #expect(abs((window.rate ?? 0) - 1_000) < 5)
        #expect(Mirror(reflecting: window).children.compactMap { $0.value as? [Any] }.allSatisfy { $0.count <= 22 })
    }

    @Test(
        "Remaining times in units that fit",
        arguments: [
            (0, "0s"), (44.2, "45s"), (61, "1m05s"), (185, "3m05s"), (186, "3m10s"), (594, "9m55s"), (600, "10m"),
            (1_529, "25m"), (3_569, "59m"), (3_571, "1h00m"), (7_620, "2h07m"), (356_400, "4d03h"), (.infinity, "-"),
        ] as [(Double, String)])
    func remaining(seconds: Double, expected: String) {
        #expect(Formatting.remaining(seconds) == expected)
        #expect(Formatting.remaining(seconds).utf8.count <= 6)
    }
}
