import Foundation
import Testing

@testable import FKStore

@Suite("Timestamps") struct TimestampTests {
    @Test("They are those of Foundation, from the Gregorian calendar to 9999") func same() {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true, timeZone: .gmt)
        var seconds = -12_219_292_800.0
        var seed: UInt64 = 1
        while seconds < 253_402_300_800 {
            let date = Date(timeIntervalSince1970: seconds)
            #expect(date.timestamp == date.formatted(style))
            seed = seed &* 6_364_136_223_846_793_005 &+ 1
            // Quarters of a second are exact.
            seconds += Double(seed >> 40) * 40.25
        }
    }

    @Test(
        "Ends of years, months and days, and times that no calendar has",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_399.999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"), (-0.001, "1969-12-31T23:59:59.999Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"), (1_700_000_000.0004, "2023-11-14T22:13:20.000Z"),
            (.infinity, "9999-12-31T23:59:59.999Z"), (-.infinity, "0001-01-01T00:00:00.000Z"),
            (.nan, "1970-01-01T00:00:00.000Z"),
        ] as [(Double, String)])
    func edges(seconds: Double, text: String) {
        #expect(Date(timeIntervalSince1970: seconds).timestamp == text)
        #expect(Date(timeIntervalSince1970: seconds).timestampInSeconds == text.prefix(19) + "Z")
    }
}
