import FKMiddleware
import Foundation

/// Parses a List or Dictionary of RFC 9651, the form of `RateLimit`, `Repr-Digest` and others.
///
/// It is strict, as the RFC requires: one malformed member makes the whole field void. The last value of a repeated key
/// counts. Several lines of a field are joined by commas.
package struct StructuredField {
    private struct Malformed: Error {}

    /// A value. What no caller uses is parsed and has no content here.
    package enum Value: Sendable, Hashable {
        /// An Integer or a Decimal.
        case number(Double)
        /// A String.
        case text(String)
        /// A Token.
        case token(String)
        /// A Byte Sequence.
        case bytes([UInt8])
        /// A Boolean, Date, Display String or Inner List.
        case other

        /// The number; nil for a value of another type.
        package var number: Double? { if case .number(let number) = self { number } else { nil } }
        /// The bytes; nil for a value of another type.
        package var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
    }

    /// A member with its parameters.
    package struct Item: Sendable, Hashable {
        /// Its value. A key alone is a Boolean.
        package var value: Value
        package var parameters: [String: Value]
    }

    /// The members of a Dictionary by key (section 4.2.2); nil if the text is none.
    package static func dictionary(_ text: String) -> [String: Item]? {
        var found: [String: Item] = [:]
        var field = StructuredField(rest: Array(text.utf8)[...])
        let isDictionary: Void? = try? field.members { field throws(Malformed) in
            let key = try field.key()
            found[key] = field.rest.first == UInt8(ascii: "=") ? try field.valued() : try field.item(.other)
        }
        return isDictionary.map { found }
    }

    /// The members of a List (section 4.2.1); nil if the text is none.
    package static func list(_ text: String) -> [Item]? {
        var found: [Item] = []
        var field = StructuredField(rest: Array(text.utf8)[...])
        let isList: Void? = try? field.members { field throws(Malformed) in
            found.append(try field.item(field.value()))
        }
        return isList.map { found }
    }

    private var rest: ArraySlice<UInt8>

    private mutating func members(
        _ read: (inout StructuredField) throws(Malformed) -> Void
    ) throws(Malformed) {
        skipBlanks()
        while !rest.isEmpty {
            try read(&self)
            skipBlanks()
            if rest.isEmpty { break }
            try expect(",")
            skipBlanks()
            guard !rest.isEmpty else { throw Malformed() }
        }
    }

    private mutating func key() throws(Malformed) -> String {
        guard let first = rest.first, Self.isLower(first) || first == UInt8(ascii: "*") else { throw Malformed() }
        return String(
            decoding: consume { Self.isLower($0) || $0.isASCIIDigit || "_-.*".utf8.contains($0) }, as: UTF8.self)
    }

    private mutating func valued() throws(Malformed) -> Item {
        try expect("=")
        return try item(value())
    }

    /// Adds the parameters that follow a value.
    private mutating func item(_ value: Value) throws(Malformed) -> Item {
        var item = Item(value: value, parameters: [:])
        while rest.first == UInt8(ascii: ";") {
            rest.removeFirst()
            rest = rest.drop { $0 == 0x20 }
            let key = try key()
            guard rest.first == UInt8(ascii: "=") else {
                item.parameters[key] = .other
                continue
            }
            rest.removeFirst()
            item.parameters[key] = try bareItem()
        }
        return item
    }

    private mutating func value() throws(Malformed) -> Value {
        guard rest.first == UInt8(ascii: "(") else { return try bareItem() }
        try skipInnerList()
        return .other
    }

    /// Skips `(item item)` (section 4.2.1.2).
    private mutating func skipInnerList() throws(Malformed) {
        try expect("(")
        rest = rest.drop { $0 == 0x20 }
        while rest.first != UInt8(ascii: ")") {
            _ = try item(bareItem())
            guard rest.first == 0x20 || rest.first == UInt8(ascii: ")") else { throw Malformed() }
            rest = rest.drop { $0 == 0x20 }
        }
        try expect(")")
    }

    /// Missing padding is added.
    private mutating func byteSequence() throws(Malformed) -> [UInt8] {
        try expect(":")
        let text = consume { $0 != UInt8(ascii: ":") }
        try expect(":")
        let digits = text.prefix { $0.isASCIILetter || $0.isASCIIDigit || "+/".utf8.contains($0) }
        let padding = text[digits.endIndex...]
        guard padding.count <= 2, padding.allSatisfy({ $0 == UInt8(ascii: "=") }) else { throw Malformed() }
        let whole = Array(digits) + [UInt8](repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
        guard let bytes = Data(base64Encoded: Data(whole)) else { throw Malformed() }
        return Array(bytes)
    }

    /// Reads a bare item of any type (section 4.2.3.1).
    private mutating func bareItem() throws(Malformed) -> Value {
        switch rest.first {
        case UInt8(ascii: ":"): return .bytes(try byteSequence())
        case UInt8(ascii: "\""): return .text(try quoted())
        case UInt8(ascii: "?"):
            rest.removeFirst()
            guard let digit = rest.popFirst(), "01".utf8.contains(digit) else { throw Malformed() }
            return .other
        case UInt8(ascii: "@"):
            rest.removeFirst()
            _ = try number(mayHaveFraction: false)
            return .other
        case UInt8(ascii: "%"):
            rest.removeFirst()
            _ = try quoted(isDisplay: true)
            return .other
        case let byte? where byte.isASCIILetter || byte == UInt8(ascii: "*"):
            return .token(String(decoding: consume { $0.isTokenByte || ":/".utf8.contains($0) }, as: UTF8.self))
        default: return .number(try number(mayHaveFraction: true))
        }
    }

    private mutating func number(mayHaveFraction: Bool) throws(Malformed) -> Double {
        let start = rest
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        let digits = consume(\.isASCIIDigit).count
        guard (1...15).contains(digits) else { throw Malformed() }
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            guard mayHaveFraction, digits <= 12, (1...3).contains(consume(\.isASCIIDigit).count) else {
                throw Malformed()
            }
        }
        return Double(String(decoding: start[..<rest.startIndex], as: UTF8.self)) ?? 0
    }

    /// Reads a quoted string.
    ///
    /// - Parameter isDisplay: true for a Display String, whose escapes are `%xx`.
    private mutating func quoted(isDisplay: Bool = false) throws(Malformed) -> String {
        try expect("\"")
        var text: [UInt8] = []
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\") where !isDisplay:
                guard let next = rest.popFirst(), "\"\\".utf8.contains(next) else { throw Malformed() }
                text.append(next)
            case UInt8(ascii: "%") where isDisplay:
                let digits = rest.prefix(2)
                guard digits.count == 2, digits.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
                    throw Malformed()
                }
                rest = rest.dropFirst(2)
            case 0x20...0x7e: text.append(byte)
            default: throw Malformed()
            }
        }
        throw Malformed()
    }

    // MARK: Bytes

    private mutating func consume(_ isWanted: (UInt8) -> Bool) -> ArraySlice<UInt8> {
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
