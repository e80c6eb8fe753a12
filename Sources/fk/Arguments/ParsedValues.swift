import FKCore
import FKMiddleware
import Foundation

/// Converts the texts of a command line to numbers, sizes and choices. Every error contains the option, the value and
/// the allowed values.
extension ParsedArguments {
    /// A whole number within the range; nil if the option was not given.
    func integer(_ option: String, _ written: String, in range: ClosedRange<Int>) throws -> Int? {
        guard let text = self[option] else { return nil }
        guard let value = Int(text), range.contains(value), text.first != "+" else {
            throw refusal(written, text, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// Seconds, with optional decimals; nil if the option was not given.
    func seconds(_ option: String, _ written: String, in range: ClosedRange<Double>) throws -> Double? {
        guard let text = self[option] else { return nil }
        guard text.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }), let value = Double(text),
            range.contains(value)
        else {
            throw refusal(written, text, "seconds from \(Int(range.lowerBound)) to \(Int(range.upperBound))")
        }
        return value
    }

    /// Bytes: digits with an optional K, M, G or T (powers of 1024) and optional decimals (`1.5G`), at least `least`;
    /// nil if the option was not given.
    ///
    /// - Parameter words: what else the option takes, for the error.
    func size(_ option: String, _ written: String, atLeast least: Int64 = 1, or words: String = "") throws -> Int64? {
        guard let text = self[option] else { return nil }
        guard let value = try? Int64(byteSize: text), value >= least else {
            let range = least > 0 ? " of at least 1 byte" : ""
            throw refusal(written, text, "a size\(range), such as 500K, 20M or 1.5G (powers of 1024)\(words)")
        }
        return value
    }

    /// Bytes per second, written as a size, or 0 for no limit; nil if the option was not given.
    func rate(_ option: String, _ written: String) throws -> Int64? {
        guard let text = self[option] else { return nil }
        guard let value = try? Int64(byteSize: text) else {
            throw refusal(written, text, "bytes a second such as 500K or 1.5M (powers of 1024), or 0 for no limit")
        }
        return value
    }

    /// `auto` or a number of connections, 1 to 256; nil if the option was not given.
    func connections(_ option: String, _ written: String) throws -> ConnectionLimit? {
        guard let text = self[option] else { return nil }
        if text == "auto" { return .automatic }
        guard let value = Int(text), (1...256).contains(value), text.first != "+" else {
            throw refusal(written, text, "a number of connections from 1 to 256, or auto")
        }
        return .fixed(value)
    }

    /// A time: a day (its start in local time), a full ISO 8601 time, or an age (a number with m, h, d or w); nil if
    /// the option was not given.
    func time(_ option: String, _ written: String, now: Date) throws -> Date? {
        guard let text = self[option] else { return nil }
        if let last = text.last, let unit = Self.ages[last], let count = Double(text.dropLast()), count >= 0 {
            return now - count * unit
        }
        if let date = StartTime.absolute(text) { return date }
        throw refusal(
            written, text,
            "a day such as 2026-11-20, a time such as 2026-11-20T08:00:00Z, or an age such as 90m, 3h or 2d")
    }

    private static let ages: [Character: Double] = ["m": 60, "h": 3_600, "d": 86_400, "w": 604_800]

    /// One of an enumeration's raw values; nil if the option was not given.
    func choice<Choice: RawRepresentable & CaseIterable>(
        _ option: String, _ written: String, of type: Choice.Type
    ) throws -> Choice? where Choice.RawValue == String {
        guard let text = self[option] else { return nil }
        return try parseChoice(text, written, of: type)
    }

    /// One of an enumeration's raw values. The error suggests a similar one.
    func parseChoice<Choice: RawRepresentable & CaseIterable>(
        _ text: String, _ written: String, of type: Choice.Type
    ) throws -> Choice where Choice.RawValue == String {
        if let choice = Choice(rawValue: text) { return choice }
        throw noChoice(text, written, among: Choice.allCases.map(\.rawValue))
    }

    /// The error of a word that is none of the names. It suggests a similar one of them or of the words that are accepted, too.
    func noChoice(_ text: String, _ written: String, among names: [String], alsoKnown: [String] = []) -> UsageError {
        let guess =
            Suggestion.nearest(to: text.lowercased(), among: names + alsoKnown)
            .map { " Did you mean '\($0)'?" } ?? ""
        return error("\(written): '\(text.visible)' is not one of \(names.joined(separator: ", ")).\(guess)")
    }

    func refusal(_ written: String, _ text: String, _ allowed: String) -> UsageError {
        error("\(written): '\(text.visible)' is not allowed here. Give \(allowed).")
    }
}

extension ParsedArguments {
    /// The value of `--proxy`.
    func proxy() throws -> String? {
        guard let text = self["proxy"], !text.isEmpty else { return self["proxy"] }
        do {
            _ = try ProxyAddress(text)
            return text
        } catch {
            throw self.error(
                "--proxy: '\(ProxyAddress.masked(text).visible)' is not a proxy: \(error.reason). Give [scheme://]host:port with one of "
                    + "\(ProxyAddress.schemes.joined(separator: ", ")).")
        }
    }
}
