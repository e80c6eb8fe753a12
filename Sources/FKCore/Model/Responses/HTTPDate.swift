import Foundation

/// Parses the three forms of a date in HTTP (RFC 9110 section 5.6.7), in whole seconds, without locale or calendar
/// objects.
package enum HTTPDate {
    /// Parses a date.
    ///
    /// - Parameter now: decides the century of a two-digit year. A year more than 50 years ahead is in the past. The
    ///   default is the current time.
    /// - Returns: the date; nil for other forms and for a day that is not in the calendar.
    package static func parse(_ value: String, now: Date = Date()) -> Date? {
        let words = value.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "," })
        // Sun, 06 Nov 1994 08:49:37 GMT
        if words.count == 6, isZone(words[5]) {
            return date(day: words[1], month: words[2], year: words[3], time: words[4], now: now)
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        if words.count == 4, isZone(words[3]) {
            let parts = words[1].split(separator: "-")
            guard parts.count == 3 else { return nil }
            return date(day: parts[0], month: parts[1], year: parts[2], time: words[2], now: now)
        }
        // Sun Nov  6 08:49:37 1994
        if words.count == 5 {
            return date(day: words[2], month: words[1], year: words[4], time: words[3], now: now)
        }
        return nil
    }

    private static func isZone(_ text: Substring) -> Bool { text == "GMT" || text == "UTC" }

    private static func date(day: Substring, month: Substring, year: Substring, time: Substring, now: Date) -> Date? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(number)
        guard let day = number(day), let year = fullYear(year, now: now), clock.count == 3,
            let hour = clock[0], let minute = clock[1], let second = clock[2],
            let monthIndex = months.firstIndex(of: month.lowercased()),
            (1...daysIn(month: monthIndex + 1, year: year)).contains(day),
            (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        let days = daysSince1970(year: year, month: monthIndex + 1, day: day)
        return Date(timeIntervalSince1970: Double(days * 86_400 + hour * 3_600 + minute * 60 + second))
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    private static func number(_ text: Substring) -> Int? {
        guard (1...4).contains(text.utf8.count), text.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int(text)
    }

    private static func fullYear(_ text: Substring, now: Date) -> Int? {
        guard let year = number(text) else { return nil }
        if text.utf8.count == 4 { return year }
        guard text.utf8.count == 2 else { return nil }
        let present = 1970 + Int((now.timeIntervalSince1970 / 31_556_952).rounded(.down))
        let guess = present - present % 100 + year
        return guess > present + 50 ? guess - 100 : guess
    }

    private static func daysIn(month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// The days of the proleptic Gregorian calendar. Years start in March, so that leap days come last.
    private static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
