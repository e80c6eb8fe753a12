import Foundation

/// Parses the `Content-Disposition` field (RFC 6266), including the deviations of real servers.
package enum ContentDisposition {
    /// A longer field is ignored. A name of 255 bytes, encoded three times, is far shorter.
    package static let maxBytes = 8 << 10

    /// The file name in the field, as sent and not cleaned (`FileNameRules.clean` does that); nil if there is none.
    ///
    /// `filename*` (RFC 8187) takes precedence over `filename`, wherever it stands. It is ignored if it cannot be
    /// decoded, or if it uses another charset than UTF-8 and contains raw bytes outside ASCII. With UTF-8 and such bytes
    /// it counts only without a `filename`, because they may be of any charset. Accepted beyond the standard: a missing
    /// disposition type, unquoted values with spaces, a missing closing quote, a quoted `filename*`, UTF-8 read as
    /// Latin-1, percent-encoded names and RFC 2047 encoded names. In a quoted value, `\` escapes only `"` and itself, so
    /// Windows paths keep their separators.
    ///
    /// A `filename` is percent-decoded as a whole or not at all (`decodePercent`).
    package static func fileName(_ value: String) -> String? {
        guard value.utf8.count <= maxBytes else { return nil }
        let parameters = parse(value)
        let sent = parameters.first { $0.name == "filename*" }?.value
        let extended = sent.flatMap(decodeExtended)
        if let sent, let extended, sent.utf8.allSatisfy({ $0 < 0x80 }) { return extended }
        guard let plain = parameters.first(where: { $0.name == "filename" })?.value, !plain.isEmpty else {
            return extended
        }
        return decodeEncodedWords(plain) ?? decodePercent(repairLatin1(plain) ?? plain)
    }

    // MARK: Parameters

    private static func parse(_ value: String) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = []
        var rest = value.unicodeScalars[...]
        while !rest.isEmpty {
            let name = rest.prefix { $0 != "=" && $0 != ";" && $0 != "\"" }
            rest = rest[name.endIndex...]
            guard rest.first == "=" else {
                // The disposition type, an empty part, or a stray quote is not a parameter.
                if rest.first == "\"" { rest = skipQuoted(rest) }
                rest = rest.drop { $0 != ";" }.dropFirst()
                continue
            }
            rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
            let text: String
            if rest.first == "\"" {
                (text, rest) = quoted(rest)
                rest = rest.drop { $0 != ";" }
            } else {
                let bare = rest.prefix { $0 != ";" }
                text = trimmed(String(bare))
                rest = rest[bare.endIndex...]
            }
            result.append((trimmed(String(name)).lowercased(), text))
            rest = rest.dropFirst()
        }
        return result
    }

    private static func quoted(
        _ text: Substring.UnicodeScalarView
    ) -> (String, Substring.UnicodeScalarView) {
        var result = String.UnicodeScalarView()
        var rest = text.dropFirst()
        while let scalar = rest.popFirst() {
            if scalar == "\"" { break }
            if scalar == "\\", let next = rest.first, next == "\"" || next == "\\" {
                result.append(next)
                rest.removeFirst()
            } else {
                result.append(scalar)
            }
        }
        return (String(result), rest)
    }

    private static func skipQuoted(_ text: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView {
        quoted(text).1
    }

    private static func trimmed(_ text: String) -> String { text.trimmingCharacters(in: .whitespaces) }

    // MARK: Encodings

    /// `charset'language'percent-encoded` (RFC 8187 section 3.2).
    private static func decodeExtended(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[2].isEmpty else { return nil }
        let bytes = Array(parts[2].utf8)[...]
        let isWellFormed = bytes.indices.allSatisfy {
            bytes[$0] != UInt8(ascii: "%") || bytes.percentValue(at: $0) != nil
        }
        let charset = trimmed(String(parts[0])).lowercased()
        // This form must not contain raw bytes outside ASCII. They were already read as UTF-8, so in another charset
        // they would become other letters.
        let isReadable = charset == "utf-8" || charset == "utf8" || bytes.allSatisfy { $0 < 0x80 }
        guard isWellFormed, isReadable else { return nil }
        return text(bytes.percentDecoded, charset: charset)
    }

    private static func text(_ bytes: [UInt8], charset: String) -> String? {
        switch charset.lowercased() {
        case "utf-8", "utf8", "us-ascii": String(validating: bytes, as: UTF8.self)
        case "iso-8859-1", "latin1": String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: nil
        }
    }

    /// `=?utf-8?B?…?=` and `=?utf-8?Q?…?=` (RFC 2047), one or several and nothing else. The form is for mail, but
    /// servers send it.
    private static func decodeEncodedWords(_ value: String) -> String? {
        guard value.hasPrefix("=?"), value.hasSuffix("?=") else { return nil }
        var result = ""
        for word in value.split(separator: " ") {
            let parts = word.split(separator: "?", omittingEmptySubsequences: false)
            guard parts.count == 5, parts[0] == "=", parts[4] == "=",
                let bytes = wordBytes(parts[3], coding: parts[2].lowercased()),
                let text = text(bytes, charset: String(parts[1]))
            else { return nil }
            result += text
        }
        return result.isEmpty ? nil : result
    }

    private static func wordBytes(_ text: Substring, coding: String) -> [UInt8]? {
        switch coding {
        case "b": Data(base64Encoded: String(text)).map(Array.init)
        case "q":
            Array(text.replacing("%", with: "%25").replacing("_", with: " ").replacing("=", with: "%").utf8)[...]
                .percentDecoded
        default: nil
        }
    }

    /// Decodes a percent-encoded name, or returns it as it is.
    ///
    /// A name counts as encoded if each `%` starts a `%XX`, if the decoded bytes are UTF-8, and if a character outside
    /// ASCII is among the encoded ones. `100%25.txt` therefore keeps its `%`. A name that would get a separator or a
    /// control character stays as it is.
    private static func decodePercent(_ value: String) -> String {
        let bytes = Array(value.utf8)[...]
        let percents = bytes.indices.filter { bytes[$0] == UInt8(ascii: "%") }
        let encoded = percents.compactMap { bytes.percentValue(at: $0) }
        guard encoded.count == percents.count, encoded.contains(where: { $0 >= 0x80 }),
            !encoded.contains(where: { $0 < 0x20 || $0 == 0x7f || "/\\".utf8.contains($0) })
        else { return value }
        return String(validating: bytes.percentDecoded, as: UTF8.self) ?? value
    }

    /// Restores UTF-8 that the transport passed on with one character per byte; nil if it is not UTF-8.
    private static func repairLatin1(_ value: String) -> String? {
        var bytes: [UInt8] = []
        for scalar in value.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        guard bytes.contains(where: { $0 >= 0x80 }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
