import FKMiddleware

/// Formats sizes and rates. Units are powers of 1024, however they are spelled.
package enum ByteSize {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]

    /// `0 B`, `999 B`, `1.0 KiB`, `12.3 MiB`: one decimal digit, rounded half up, with a point in every locale.
    /// Negative values count as 0.
    package static func format(_ bytes: Int64) -> String {
        let bytes = max(0, bytes)
        if bytes < 1024 { return "\(bytes) B" }
        for power in 1..<units.count {
            let unit = Int64(1) << (10 * power)
            let (whole, rest) = bytes.quotientAndRemainder(dividingBy: unit)
            // The tenths of the remainder cannot overflow, because it is below 2^50.
            let tenths = whole * 10 + (rest * 10 + unit / 2) / unit
            if tenths < 10_240 || power == units.count - 1 { return "\(tenths / 10).\(tenths % 10) \(units[power])" }
        }
        return "\(bytes) B"
    }
}

extension Int64 {
    /// Parses `512`, `100K`, `10M`, `1.5G`, `2T`, in either case and with an optional `B` or `iB` after the letter.
    ///
    /// A fraction is rounded down to whole bytes.
    ///
    /// - Throws: `.invalidArgument` for any other text, negative values, and more than `Int64.max` bytes.
    package init(byteSize text: String) throws(DownloadError) {
        let bytes = Array(text.utf8)[...]
        let number = bytes.prefix { $0.isASCIIDigit || $0 == UInt8(ascii: ".") }
        let unit = String(decoding: bytes[number.endIndex...], as: UTF8.self).lowercased()
        let parts = number.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let power = ["", "k", "m", "g", "t", "p"].firstIndex(where: { Self.isUnit(unit, letter: $0) }),
            (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }), power > 0 || parts.count == 1
        else {
            throw DownloadError(
                .invalidArgument,
                "\"\(Self.shown(text))\" is not a size. Write a number, then K, M, G or T, such as 10M.")
        }
        let factor = Int64(1) << (10 * power)
        guard let whole = Int64(String(decoding: parts[0], as: UTF8.self)) else { throw Self.tooLarge(text) }
        let (result, overflow) = whole.multipliedReportingOverflow(by: factor)
        let fraction = parts.count == 2 ? Double("0." + String(decoding: parts[1], as: UTF8.self)) ?? 0 : 0
        let (total, overflow2) = result.addingReportingOverflow(Int64(fraction * Double(factor)))
        if overflow || overflow2 { throw Self.tooLarge(text) }
        self = total
    }

    private static func isUnit(_ text: String, letter: String) -> Bool {
        text == letter || text == letter + "b" || (!letter.isEmpty && text == letter + "ib")
    }

    private static func shown(_ text: String) -> String {
        String(text.filter { !$0.isNewline && $0 >= " " }.prefix(40))
    }

    private static func tooLarge(_ text: String) -> DownloadError {
        DownloadError(.invalidArgument, "\"\(shown(text))\" is more than \(Int64.max) bytes.")
    }
}
