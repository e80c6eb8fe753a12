import FKMiddleware
import Foundation

/// A time of each day with a rate limit of its own, by the local clock.
package struct DailyWindow: Codable, Sendable, Hashable {
    /// The minute of the day at which it begins, 0 to 1439.
    package var begin: Int
    /// The minute of the day before which it ends, 1 to 1440. One that is not above `begin` is of the next day.
    package var end: Int
    /// Bytes per second, at least 1; nil for no limit.
    package var rate: Int64?

    /// The most windows of a limit.
    package static let maxCount = 48

    package init(begin: Int, end: Int, rate: Int64? = nil) {
        self.begin = begin
        self.end = end
        self.rate = rate
    }

    /// Parses `08:00-18:00` and `22:00-06:00`; 24:00 is the end of a day. nil for any other text, and for a window without a
    /// length.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minute)
        guard parts.count == 2, let begin = parts[0], let end = parts[1], begin < 1_440, end > 0 || begin > 0,
            begin != end
        else { return nil }
        self.init(begin: begin, end: end == 0 ? 1_440 : end)
    }

    private static func minute(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let hours = Int(parts[0]), let minutes = Int(parts[1]), minutes < 60, hours * 60 + minutes <= 1_440
        else { return nil }
        return hours * 60 + minutes
    }

    /// `08:00-18:00`
    package var text: String { "\(Self.text(begin))-\(Self.text(end))" }

    private static func text(_ minute: Int) -> String {
        func two(_ number: Int) -> String { (number < 10 ? "0" : "") + "\(number)" }
        return "\(two(minute / 60)):\(two(minute % 60))"
    }

    package func contains(_ minute: Int) -> Bool {
        begin < end ? (begin..<end).contains(minute) : minute >= begin || minute < end
    }

    /// True for windows of the same times.
    package func isSameTime(as other: DailyWindow) -> Bool { begin == other.begin && end == other.end }

    /// The minute of the day by the local clock, 0 to 1439.
    package static func minute(of date: Date) -> Int {
        var seconds = time_t(date.timeIntervalSince1970)
        var parts = tm()
        localtime_r(&seconds, &parts)
        return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
    }
}
