import FKMiddleware
import Foundation

/// Parses a Dictionary (RFC 9651 section 4.2), the form of `Repr-Digest` and `Content-Digest`.
///
/// It is strict, as the RFC requires: one malformed member makes the whole field void. Parameters are parsed and
/// ignored. The last value of a repeated key counts.
struct DigestDictionary {
    private struct Malformed: Error {}

    /// The members by key; nil if the text is no dictionary. Several lines of the field are joined by commas.
    ///
    /// A digest is a Byte Sequence. The value of a member of another type is nil.
    static func parse(_ text: String) -> [String: [UInt8]?]? {
        var reader = DigestDictionary(rest: Array(text.utf8)[...])
        return try? reader.members()
    }

    private var rest: ArraySlice<UInt8>

    private mutating func members() throws(Malformed) -> [String: [UInt8]?] {
        var found: [String: [UInt8]?] = [:]
        skipBlanks()
        while !rest.isEmpty {
            let key = try key()
            found.updateValue(try memberValue(), forKey: key)
            try skipParameters()
            skipBlanks()
            if rest.isEmpty { break }
            try expect(",")
            skipBlanks()
            guard !rest.isEmpty else { throw Malformed() }
        }
        return found
    }

    private mutating func key() throws(Malformed) -> String {
        guard let first = rest.first, Self.isLower(first) || first == UInt8(ascii: "*") else { throw Malformed() }
        return String(decoding: take { Self.isLower($0) || $0.isASCIIDigit || "_-.*".utf8.contains($0) }, as: UTF8.self)
    }

    /// The bytes of a Byte Sequence; nil for a value of another type. A key alone is a Boolean.
    private mutating func memberValue() throws(Malformed) -> [UInt8]? {
        guard rest.first == UInt8(ascii: "=") else { return nil }
        rest.removeFirst()
        switch rest.first {
        case UInt8(ascii: ":"): return try byteSequence()
        case UInt8(ascii: "("): try skipInnerList()
        default: try skipItem()
        }
        return nil
    }

    /// Skips `(item item)` (RFC 9651 section 4.2.1.2).
    private mutating func skipInnerList() throws(Malformed) {
        try expect("(")
        rest = rest.drop { $0 == 0x20 }
        while rest.first != UInt8(ascii: ")") {
            try skipItem()
            try skipParameters()
            guard rest.first == 0x20 || rest.first == UInt8(ascii: ")") else { throw Malformed() }
            rest = rest.drop { $0 == 0x20 }
        }
        try expect(")")
    }

    /// Missing padding is added.
    private mutating func byteSequence() throws(Malformed) -> [UInt8] {
        try expect(":")
        let text = take { $0 != UInt8(ascii: ":") }
        try expect(":")
        let digits = text.prefix { $0.isASCIILetter || $0.isASCIIDigit || "+/".utf8.contains($0) }
        let padding = text[digits.endIndex...]
        guard padding.count <= 2, padding.allSatisfy({ $0 == UInt8(ascii: "=") }) else { throw Malformed() }
        let whole = Array(digits) + [UInt8](repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
        guard let bytes = Data(base64Encoded: Data(whole)) else { throw Malformed() }
        return Array(bytes)
    }

    private mutating func skipParameters() throws(Malformed) {
        while rest.first == UInt8(ascii: ";") {
            rest.removeFirst()
            rest = rest.drop { $0 == 0x20 }
            _ = try key()
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest.removeFirst()
            try skipItem()
        }
    }

    /// Skips a bare item of any type (RFC 9651 section 4.2.3.1).
    private mutating func skipItem() throws(Malformed) {
        switch rest.first {
        case UInt8(ascii: ":"): _ = try byteSequence()
        case UInt8(ascii: "\""): try skipQuoted()
        case UInt8(ascii: "?"):
            rest.removeFirst()
            guard let digit = rest.popFirst(), "01".utf8.contains(digit) else { throw Malformed() }
        case UInt8(ascii: "@"):
            rest.removeFirst()
            try skipNumber(mayHaveFraction: false)
        case UInt8(ascii: "%"):
            rest.removeFirst()
            try skipQuoted(isDisplay: true)
        case let byte? where byte.isASCIILetter || byte == UInt8(ascii: "*"):
            _ = take { HTTPToken.isTokenByte($0) || ":/".utf8.contains($0) }
        default: try skipNumber(mayHaveFraction: true)
        }
    }

    private mutating func skipNumber(mayHaveFraction: Bool) throws(Malformed) {
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let digits = take(\.isASCIIDigit).count
        guard (1...15).contains(digits) else { throw Malformed() }
        guard rest.first == UInt8(ascii: ".") else { return }
        rest.removeFirst()
        guard mayHaveFraction, digits <= 12, (1...3).contains(take(\.isASCIIDigit).count) else { throw Malformed() }
    }

    /// Skips a quoted string.
    ///
    /// - Parameter isDisplay: true for a Display String, whose escapes are `%xx`.
    private mutating func skipQuoted(isDisplay: Bool = false) throws(Malformed) {
        try expect("\"")
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\") where !isDisplay:
                guard let next = rest.popFirst(), "\"\\".utf8.contains(next) else { throw Malformed() }
            case UInt8(ascii: "%") where isDisplay:
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
                    throw Malformed()
                }
                rest = rest.dropFirst(2)
            case 0x20...0x7e: continue
            default: throw Malformed()
            }
        }
        throw Malformed()
    }

    // MARK: Bytes

    private mutating func take(_ isWanted: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let taken = rest.prefix(while: isWanted)
        rest = rest[taken.endIndex...]
        return taken
    }

    private mutating func expect(_ character: Unicode.Scalar) throws(Malformed) {
        guard rest.popFirst() == UInt8(ascii: character) else { throw Malformed() }
    }

    private mutating func skipBlanks() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }

    private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
}
