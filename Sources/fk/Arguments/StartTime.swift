import Foundation

/// The time of `--at`: `18:30`, an ISO 8601 time, or `+90m`. Local times use the system's time zone, which the C library knows;
/// Foundation's time zones would need ICU's data.
enum StartTime {
    static let forms = "a time of day such as 18:30, a time such as 2026-11-23T06:00:00Z, or a delay such as +90m"

    /// The longest time ahead: 366 days. A longer one is a mistake.
    static let farthest: TimeInterval = 366 * 86_400

    /// Why a text is no time to start at.
    enum Fault: Error, Hashable {
        case form
        case past
        case far
    }

    /// - Parameter now: the present time, from which delays and times of day count.
    static func parse(_ text: String, now: Date) throws(Fault) -> Date {
        guard let date = text.first == "+" ? delayed(text.dropFirst(), now) : ofDay(text, now) ?? absolute(text) else {
            throw .form
        }
        // A minute of grace, because the present minute is written without seconds.
        guard date > now - 60 else { throw .past }
        guard date <= now + farthest else { throw .far }
        return date
    }

    /// `90`, `90s`, `15m`, `1h30m`, `2d`
    private static func delayed(_ text: Substring, _ now: Date) -> Date? {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        if let seconds = number(text) { return now + Double(seconds) }
        var sum: Double = 0
        var digits = ""
        for character in text {
            if let unit = units[character] {
                guard let count = number(digits[...]) else { return nil }
                sum += Double(count) * unit
                digits = ""
            } else {
                digits.append(character)
            }
        }
        return digits.isEmpty && !text.isEmpty ? now + sum : nil
    }

    /// `18:30` or `18:30:15`: the next time that the clock shows it.
    private static func ofDay(_ text: String, _ now: Date) -> Date? {
        guard let time = clock(text[...]) else { return nil }
        var parts = tm()
        var seconds = time_t(now.timeIntervalSince1970)
        localtime_r(&seconds, &parts)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = time
        let today = local(parts)
        if today >= now { return today }
        // mktime turns the day after the last of a month into the first of the next.
        parts.tm_mday += 1
        return local(parts)
    }

    /// `2026-11-23`, `2026-11-23T06:00`, `2026-11-23T06:00:00Z`, `2026-11-23 06:00:00.5+02:00`; without a zone in local time.
    static func absolute(_ text: String) -> Date? {
        let day = text.prefix(10).split(separator: "-", omittingEmptySubsequences: false)
        guard text.count >= 10, day.map(\.count) == [4, 2, 2], let year = number(day[0]), let month = number(day[1]),
            let date = number(day[2])
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year) - 1_900, Int32(month) - 1, Int32(date))
        var rest = text.dropFirst(10)
        var offset: Int?
        if !rest.isEmpty {
            guard "Tt ".contains(rest.removeFirst()) else { return nil }
            let time = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ":" || $0 == ".") }
            rest = rest.dropFirst(time.count)
            let whole = time.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
            guard let clock = clock(whole[0]), whole.count == 1 || number(whole[1]) != nil else { return nil }
            (parts.tm_hour, parts.tm_min, parts.tm_sec) = clock
            if !rest.isEmpty {
                guard let zone = zone(rest) else { return nil }
                offset = zone
            }
        }
        guard isDay(parts) else { return nil }
        return offset.map { Date(timeIntervalSince1970: Double(timegm(&parts) - $0)) } ?? local(parts)
    }

    /// `Z`, `+02:00`, `+0200`: seconds east of UTC.
    private static func zone(_ text: Substring) -> Int? {
        if text == "Z" || text == "z" { return 0 }
        guard let sign = text.first, sign == "+" || sign == "-" else { return nil }
        let digits = text.dropFirst().filter { $0 != ":" }
        guard digits.count == 4, let hours = number(digits.prefix(2)), let minutes = number(digits.suffix(2)),
            hours <= 14, minutes < 60
        else { return nil }
        return (sign == "-" ? -1 : 1) * (hours * 3_600 + minutes * 60)
    }

    private static func clock(_ text: Substring) -> (Int32, Int32, Int32)? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3, parts.allSatisfy({ (1...2).contains($0.count) }) else { return nil }
        let numbers = parts.compactMap(number)
        guard numbers.count == parts.count, numbers[0] < 24, numbers.dropFirst().allSatisfy({ $0 < 60 }) else {
            return nil
        }
        return (Int32(numbers[0]), Int32(numbers[1]), numbers.count == 3 ? Int32(numbers[2]) : 0)
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.count <= 9, text.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        return Int(text)
    }

    private static func local(_ parts: tm) -> Date {
        var parts = parts
        parts.tm_isdst = -1
        return Date(timeIntervalSince1970: Double(mktime(&parts)))
    }

    /// False for a day that is in no calendar, such as 30 February.
    private static func isDay(_ parts: tm) -> Bool {
        var day = tm()
        (day.tm_year, day.tm_mon, day.tm_mday) = (parts.tm_year, parts.tm_mon, parts.tm_mday)
        _ = timegm(&day)
        return day.tm_mon == parts.tm_mon && day.tm_mday == parts.tm_mday
    }
}
