import FKCore
import FKManifests
import Foundation

@_exported import enum FKModel.JSON

extension JSON {
    /// A time as RFC 3339 text, or `null`.
    package init(_ date: Date?) { self = date.map { .string($0.timestamp) } ?? .null }

    /// The maximum number of arrays and objects inside each other.
    package static let maxDepth = 64

    /// Reads JSON text; nil for other text, and for text with more than `maxDepth` levels. The values take a few times the memory of
    /// the text, also `[{},{},…]`.
    package init?(parsing bytes: [UInt8]) {
        var reader = JSONReader(bytes)
        do throws(JSONReader.Fault) {
            self = try Self.value(from: &reader, depth: 0)
            try reader.expectEnd()
        } catch { return nil }
    }

    private static func value(from reader: inout JSONReader, depth: Int) throws(JSONReader.Fault) -> JSON {
        switch reader.peek() {
        case UInt8(ascii: "{") where depth < maxDepth:
            try reader.expect(UInt8(ascii: "{"))
            var members: [Member] = []
            if reader.skip(UInt8(ascii: "}")) { return .object(members) }
            repeat {
                let name = try reader.memberName()
                members.append(Member(name, try value(from: &reader, depth: depth + 1)))
            } while reader.skip(UInt8(ascii: ","))
            try reader.expect(UInt8(ascii: "}"))
            return .object(members)
        case UInt8(ascii: "[") where depth < maxDepth:
            try reader.expect(UInt8(ascii: "["))
            var values: [JSON] = []
            if reader.skip(UInt8(ascii: "]")) { return .array(values) }
            repeat { values.append(try value(from: &reader, depth: depth + 1)) } while reader.skip(UInt8(ascii: ","))
            try reader.expect(UInt8(ascii: "]"))
            return .array(values)
        case UInt8(ascii: "\""): return .string(try reader.string())
        case UInt8(ascii: "t"):
            try reader.word("true")
            return true
        case UInt8(ascii: "f"):
            try reader.word("false")
            return false
        case UInt8(ascii: "n"):
            try reader.word("null")
            return .null
        case let byte? where byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte):
            let text = try reader.number()
            if let whole = Int64(text) { return .integer(whole) }
            guard let value = Double(text), value.isFinite else { throw reader.unexpected("a finite number") }
            return JSON(value)
        default: throw reader.unexpected("a value")
        }
    }
}
