import FKCore
import Foundation

@_exported import enum FKModel.JSON

extension JSON {
    /// A time as RFC 3339 text, or `null`.
    package init(_ date: Date?) { self = date.map { .string(Timestamp.text($0)) } ?? .null }

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
