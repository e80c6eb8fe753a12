import FKCore
import Foundation

/// A JSON value (RFC 8259) of a request or an answer.
package enum JSON: Sendable, Hashable {
    /// A member of an object. Objects keep the order of their members.
    package struct Member: Sendable, Hashable {
        /// Its name.
        package var name: String
        /// Its value.
        package var value: JSON
        /// Creates a member.
        package init(_ name: String, _ value: JSON) {
            self.name = name
            self.value = value
        }
    }

    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without fraction that fits into 64 bits.
    case integer(Int64)
    /// Any other number. It is finite.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object.
    case object([Member])
    /// Text that is JSON already, for long lists.
    case text([UInt8])

    /// An object of these members.
    package static func members(_ members: KeyValuePairs<String, JSON>) -> JSON {
        .object(members.map { Member($0.key, $0.value) })
    }

    /// The member of an object with that name, the last one if there are several; nil for another value.
    package subscript(_ name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    /// The text of a string; nil for another value.
    package var string: String? { if case .string(let text) = self { text } else { nil } }
    /// The elements of an array; nil for another value.
    package var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
    /// The members of an object; nil for another value.
    package var object: [Member]? { if case .object(let members) = self { members } else { nil } }
    /// A whole number; nil for another value.
    package var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// `true` or `false`; nil for another value.
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
    /// A string.
    package init(stringLiteral value: String) { self = .string(value) }
    /// `true` or `false`.
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    package init(integerLiteral value: Int64) { self = .integer(value) }

    /// A number.
    package init(floatLiteral value: Double) { self = .number(value) }
    /// An array.
    package init(arrayLiteral elements: JSON...) { self = .array(elements) }

    /// A string, or `null`.
    package init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    /// A whole number, or `null`.
    package init(_ number: Int64?) { self = number.map { .integer($0) } ?? .null }
    /// A whole number.
    package init(_ number: Int) { self = .integer(Int64(number)) }
    /// A time as RFC 3339 text, or `null`.
    package init(_ date: Date?) { self = date.map { .string(Timestamp.text($0)) } ?? .null }
}

// MARK: - Writing

extension JSON {
    /// The value as JSON text.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return bytes
    }

    /// Appends the value as JSON text.
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

    private static func write(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x0a: bytes += "\\n".utf8
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

// MARK: - Reading

extension JSON {
    /// The maximum number of arrays and objects inside each other.
    package static let maxDepth = 64

    /// Reads JSON text with Foundation's parser. nil for other text, and for text with more than `maxDepth` levels.
    package init?(parsing bytes: [UInt8]) {
        guard Self.isShallow(bytes),
            let value = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed),
            let json = Self.value(of: value)
        else { return nil }
        self = json
    }

    /// Counts the brackets before anything is parsed, because parsers recurse.
    private static func isShallow(_ bytes: [UInt8]) -> Bool {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for byte in bytes {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                if depth > maxDepth { return false }
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
        }
        return true
    }

    private static func value(of value: Any) -> JSON? {
        switch value {
        case let text as String: return .string(text)
        case let values as [Any]:
            var array: [JSON] = []
            array.reserveCapacity(values.count)
            for value in values {
                guard let value = self.value(of: value) else { return nil }
                array.append(value)
            }
            return .array(array)
        case let object as [String: Any]:
            var members: [Member] = []
            members.reserveCapacity(object.count)
            for (name, value) in object.sorted(by: { $0.key < $1.key }) {
                guard let value = self.value(of: value) else { return nil }
                members.append(Member(name, value))
            }
            return .object(members)
        case is NSNull: return .null
        // The last case: the cast of a list to a class makes an NSArray of it (11 % of the time of a multicall).
        case let number as NSNumber: return self.number(number)
        default: return nil
        }
    }

    /// Only true and false have the type of a character.
    private static func number(_ number: NSNumber) -> JSON? {
        let type = UInt8(bitPattern: number.objCType.pointee)
        if type == UInt8(ascii: "c") || type == UInt8(ascii: "B") { return .bool(number.boolValue) }
        if type == UInt8(ascii: "d") || type == UInt8(ascii: "f") {
            let value = number.doubleValue
            if let whole = Int64(exactly: value) { return .integer(whole) }
            return value.isFinite ? .number(value) : nil
        }
        if type == UInt8(ascii: "Q"), number.uint64Value > UInt64(Int64.max) { return .number(number.doubleValue) }
        return .integer(number.int64Value)
    }
}
