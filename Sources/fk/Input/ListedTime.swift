import Foundation

/// The time in a row of a listing: `27-Nov-2026 20:37`, `2026-11-27 20:37`, `Fri, 27 Nov 2026 20:37:14 GMT`, `2026-Nov-27 20:37:14`.
///
/// Its time zone is not known. It is read by hand, because a listing has a million rows and a regular expression takes 30 us for one.
struct ListedTime: Sendable, Hashable {
    /// In seconds since 1970, as if the zone were UTC.
    let seconds: Int
    /// False for a time in minutes.
    let hasSeconds: Bool

    /// Reads the first time of a text; nil if it has none with a date before it.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        func number(_ index: Int) -> Int? {
            guard index >= 0, index + 1 < bytes.count, bytes[index].isASCIIDigit, bytes[index + 1].isASCIIDigit else {
                return nil
            }
            return Int(bytes[index] - 0x30) * 10 + Int(bytes[index + 1] - 0x30)
        }
        guard
            let colon = bytes.indices.first(where: {
                bytes[$0] == UInt8(ascii: ":") && number($0 - 2) != nil && number($0 + 1) != nil
            }), let hour = number(colon - 2), let minute = number(colon + 1)
        else { return nil }
        let isISO = colon >= 3 && bytes[colon - 3] == UInt8(ascii: "T")
        let date = bytes[..<(colon - (isISO ? 3 : 2))]
        let words = date.split { !$0.isASCIIDigit && !$0.isASCIILetter }.suffix(3).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard words.count == 3, let month = Self.month(words[1]) else { return nil }
        let (first, last) = (Int(words[0]), Int(words[2]))
        guard let year = words[0].utf8.count == 4 ? first : last, let day = words[0].utf8.count == 4 ? last : first,
            (1970...9999).contains(year), (1...31).contains(day)
        else { return nil }
        let second = colon + 3 < bytes.count && bytes[colon + 3] == UInt8(ascii: ":") ? number(colon + 4) : nil
        seconds = Self.days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + (second ?? 30)
        hasSeconds = second != nil
    }

    /// True if the time is so near to now, in some time zone, that the file may change again and keep it (RFC 9110 section 8.8.2.2).
    func isTooNew(at now: Date) -> Bool {
        let distance = seconds - Int(now.timeIntervalSince1970.rounded(.down))
        let tolerance = hasSeconds ? 2 : 90
        // Zones are from 12 hours behind UTC to 14 before it, in steps of a quarter of an hour.
        guard (-12 * 3_600 - tolerance...14 * 3_600 + tolerance).contains(distance) else { return false }
        let rest = (distance % 900 + 900) % 900
        return min(rest, 900 - rest) <= tolerance
    }

    private static func month(_ text: String) -> Int? {
        if let number = Int(text) { return (1...12).contains(number) ? number : nil }
        let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        return names.firstIndex(of: text.prefix(3).lowercased()).map { $0 + 1 }
    }

    /// The days from 1970 to a date of the Gregorian calendar.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        // Years that begin in March have the leap day at their end.
        let (year, month) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        return year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
    }
}
