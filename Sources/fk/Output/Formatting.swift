import FKMiddleware

/// Formats numbers. Sizes use powers of 1024, as options do.
enum Formatting {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

    /// `0 B`, `999 B`, `12.3 KiB`, `512 MiB`: at most three digits before the point, and one after it below 100.
    static func bytes(_ count: Int64) -> String {
        let unit = unit(for: count)
        return "\(number(count, unit)) \(units[unit])"
    }

    /// `1.2/2.9 GiB`, both in the unit of the larger one; only the received bytes while the length is unknown.
    ///
    /// - Parameter orMore: the mark of a lower bound: `1.2/≥2.9 GiB`.
    static func amount(_ received: Int64, of expected: Int64?, orMore mark: String? = nil) -> String {
        guard let expected, mark == nil || expected > received else { return bytes(received) }
        let unit = unit(for: max(expected, received))
        return "\(number(received, unit))/\(mark ?? "")\(number(expected, unit)) \(units[unit])"
    }

    /// The mark of a lower bound.
    static func atLeast(usesUnicode: Bool) -> String { usesUnicode ? "≥" : ">=" }

    /// A rate: `12.3 MiB/s`.
    static func rate(_ bytesPerSecond: Double) -> String {
        "\(bytes(Int64(max(0, min(bytesPerSecond.isFinite ? bytesPerSecond : 0, 0x1p60)))))/s"
    }

    /// `17ms` and `0.4s` below 10 seconds if `precise`, `45s`, `3m05s`, `2h07m`, `4d03h`; `99d+` above 99 days.
    static func duration(_ seconds: Double, precise: Bool = false) -> String {
        guard seconds.isFinite, seconds >= 0 else { return "-" }
        if precise, seconds < 0.0995 { return "\(Int((seconds * 1000).rounded(.up)))ms" }
        if precise, seconds < 9.95 { return "\(decimal(seconds))s" }
        let whole = Int(min(seconds, 1e9).rounded(.up))
        switch whole {
        case ..<60: return "\(whole)s"
        case ..<3600: return "\(whole / 60)m\(two(whole % 60))s"
        case ..<86_400: return "\(whole / 3600)h\(two(whole / 60 % 60))m"
        case ..<(100 * 86_400): return "\(whole / 86_400)d\(two(whole / 3600 % 24))h"
        default: return "99d+"
        }
    }

    /// A remaining time, in steps that do not change all the time: seconds below a minute, 5 s below ten minutes, then
    /// whole minutes: `45s`, `3m05s`, `25m`, `2h07m`, `4d03h`.
    static func remaining(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds >= 60 else { return duration(seconds) }
        if seconds <= 595 { return duration((seconds / 5).rounded(.up) * 5) }
        guard seconds < 3_570 else { return duration(max(seconds, 3_600)) }
        return "\(Int((seconds / 60).rounded()))m"
    }

    /// `42%`, rounded down, so that 100% means all bytes. Empty while the length is unknown.
    static func percent(_ received: Int64, of expected: Int64?) -> String {
        guard let expected else { return "" }
        guard expected > 0 else { return "100%" }
        return percent(Double(received) / Double(expected))
    }

    /// The percentage of a fraction in 0...1, rounded down.
    static func percent(_ fraction: Double) -> String { "\(max(0, min(100, Int(fraction * 100 + 1e-9))))%" }

    private static func unit(for count: Int64) -> Int {
        var unit = 0
        var value = Double(count)
        // The limit is 999.5 because a higher value would round up to four digits.
        while value >= 999.5, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        return unit
    }

    private static func number(_ count: Int64, _ unit: Int) -> String {
        guard unit > 0 else { return String(count) }
        var value = Double(count)
        for _ in 0..<unit { value /= 1024 }
        return value < 99.95 ? decimal(value) : String(Int(value.rounded()))
    }

    private static func decimal(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }
}
