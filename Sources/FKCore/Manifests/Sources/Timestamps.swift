import FKMiddleware
import Foundation

/// The times of listings.
enum Timestamps {
    /// A time of HTTP (RFC 9110 section 5.6.7) or of RFC 3339, in whole seconds; nil for any other text.
    static func date(_ text: String) -> Date? {
        if let date = HTTPDate.parse(text) { return date }
        // Foundation's parser asks ICU, whose data the command line's program does not have, and takes no fractions of seconds.
        return RFC3339.seconds(text).map { Date(timeIntervalSince1970: Double($0)) }
    }
}

/// Reads the times of RFC 3339, as listings and APIs have them: `2026-11-22T10:08:23.123Z`.
enum RFC3339 {
    /// The whole seconds since 1970; nil for another text, and for a day that no calendar has.
    static func seconds(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        func number(_ start: Int, _ count: Int) -> Int? {
            guard start + count <= bytes.count, bytes[start..<(start + count)].allSatisfy(\.isASCIIDigit) else {
                return nil
            }
            return bytes[start..<(start + count)].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        guard bytes.count >= 20, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] | 0x20 == UInt8(ascii: "t"), bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"),
            let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
            let minute = number(14, 2), let second = number(17, 2), year >= 1, (1...12).contains(month), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let length = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
        guard (1...length).contains(day) else { return nil }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") { rest = rest.dropFirst().drop(while: \.isASCIIDigit) }
        let offset: Int
        switch rest.first {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): offset = rest.count == 1 ? 0 : -1
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            let start = rest.startIndex
            guard rest.count == 6, let hours = number(start + 1, 2), let minutes = number(start + 4, 2), hours < 24,
                minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (rest.first == UInt8(ascii: "+") ? 1 : -1)
            return seconds(year, month, day) + Int64(hour * 3_600 + minute * 60 + second - offset * 60)
        default: return nil
        }
        return offset < 0 ? nil : seconds(year, month, day) + Int64(hour * 3_600 + minute * 60 + second)
    }

    /// The seconds from 1970 to a day. A year begins in March, so that the leap day is its last.
    private static func seconds(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let ofEra = year - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let days = ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear
        return Int64(era * 146_097 + days - 719_468) * 86_400
    }
}
