import Foundation

/// Times as text. Foundation's styles ask ICU for the system's time zone, which the command line's program has
/// no data for, and take 20 times as long.
extension Date {
    /// The time in UTC (RFC 3339): `2026-11-22T10:08:23.123Z`
    package var timestamp: String {
        let (seconds, milliseconds) = parts
        return "\(Self.whole(seconds)).\(Self.digits(milliseconds, 3))Z"
    }

    /// `2026-11-22T10:08:23Z`, rounded down.
    package var timestampInSeconds: String { "\(Self.whole(parts.seconds))Z" }

    /// Before the year 1 or after 9999, the nearest time between them counts.
    private var parts: (seconds: Int, milliseconds: Int) {
        let range = -62_135_596_800_000.0...253_402_300_799_999
        let time = (timeIntervalSince1970 * 1_000).rounded()
        let milliseconds = Int(min(max(time.isNaN ? 0 : time, range.lowerBound), range.upperBound))
        let rest = ((milliseconds % 1_000) + 1_000) % 1_000
        return ((milliseconds - rest) / 1_000, rest)
    }

    private static func whole(_ seconds: Int) -> String {
        let second = ((seconds % 86_400) + 86_400) % 86_400
        let (year, month, day) = civil((seconds - second) / 86_400)
        return "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))"
            + "T\(digits(second / 3_600, 2)):\(digits(second / 60 % 60, 2)):\(digits(second % 60, 2))"
    }

    /// The day of the calendar. An era of 400 years has 146,097 days; a year begins in March, so that the leap day is its last.
    private static func civil(_ daysSince1970: Int) -> (year: Int, month: Int, day: Int) {
        let days = daysSince1970 + 719_468
        let era = (days >= 0 ? days : days - 146_096) / 146_097
        let ofEra = days - era * 146_097
        let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let month = (5 * ofYear + 2) / 153
        return (
            year + era * 400 + (month >= 10 ? 1 : 0), month < 10 ? month + 3 : month - 9,
            ofYear - (153 * month + 2) / 5 + 1
        )
    }

    private static func digits(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
