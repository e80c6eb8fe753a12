import Foundation

/// A JSON value (RFC 8259): a document, or a message of the RPC. Texts of which every task writes some use `JSONText`.
package enum JSON: Sendable, Hashable {
    /// A member of an object. Objects keep the order of their members.
    package struct Member: Sendable, Hashable {
        package var name: String
        package var value: JSON
        package init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    case null
    case bool(Bool)
    /// A number without fraction that fits into 64 bits.
    case integer(Int64)
    /// Any other number. It is finite.
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])
    /// Text that is JSON already, for long lists.
    case text([UInt8])

    /// An object of these members.
    ///
    /// - Parameter omittingNull: true leaves out members that are `null`; the default is false.
    package static func members(_ members: KeyValuePairs<String, JSON>, omittingNull: Bool = false) -> JSON {
        .object(members.compactMap { omittingNull && $0.value == .null ? nil : Member($0.key, $0.value) })
    }

    /// An object of texts, sorted by name.
    package static func texts(_ texts: [String: String]) -> JSON {
        .object(texts.sorted { $0.key < $1.key }.map { Member($0.key, .string($0.value)) })
    }

    /// The member of an object with that name, the last one if there are several; nil for another value.
    package subscript(_ name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    /// Each of these is nil for a value of another kind.
    package var string: String? { if case .string(let text) = self { text } else { nil } }
    package var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
    package var object: [Member]? { if case .object(let members) = self { members } else { nil } }
    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// Any number; nil for another value.
    package var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }

    package init(floatLiteral value: Double) { self = .number(value) }
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }

    package init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    package init(_ number: Int64?) { self = number.map { .integer($0) } ?? .null }
    package init(_ number: Int?) { self = number.map { .integer(Int64($0)) } ?? .null }
    /// A finite number.
    package init(_ number: Double) { self = Int64(exactly: number).map { .integer($0) } ?? .number(number) }
    package init(_ flag: Bool?) { self = flag.map { .bool($0) } ?? .null }
    package init(_ texts: [String]) { self = .array(texts.map { .string($0) }) }
}

// MARK: - Writing

extension JSON {
    /// The value as JSON text.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return bytes
    }

    package func write(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        case .number(let value): bytes += String(value).utf8
        case .string(let text): Self.write(text, into: &bytes)
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.write(member.name, into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        case .text(let text): bytes += text
        }
    }

    /// Appends a text in quotes. All characters except ASCII controls, quotes and backslashes are literal.
    package static func write(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x0a: bytes += "\\n".utf8
            case 0x0d: bytes += "\\r".utf8
            case 0x09: bytes += "\\t".utf8
            case 0..<0x20, 0x7f:
                let digits = Array("0123456789abcdef".utf8)
                bytes += "\\u00".utf8
                bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
