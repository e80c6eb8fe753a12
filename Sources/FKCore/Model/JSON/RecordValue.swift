import FKMiddleware
import Foundation

/// A value of the info file with fast writing and reading.
///
/// Both agree with `Codable`: `StoreJSON` reads everything that `write` writes and that `read` accepts.
protocol RecordValue: Codable {
    func write(to text: inout JSONText) throws
    /// Reads a value.
    ///
    /// - Throws: `JSONScanner.Unexpected` for any form that `write` does not produce.
    static func read(_ scanner: inout JSONScanner) throws -> Self
}

extension String: RecordValue {
    func write(to text: inout JSONText) { text.value(self) }
    static func read(_ scanner: inout JSONScanner) throws -> Self { try scanner.text() }
}

extension Bool: RecordValue {
    func write(to text: inout JSONText) { text.value(self) }
    static func read(_ scanner: inout JSONScanner) throws -> Self { try scanner.flag() }
}

extension Date: RecordValue {
    func write(to text: inout JSONText) { text.value(self) }
    static func read(_ scanner: inout JSONScanner) throws -> Self { try scanner.date() }
}

extension Double: RecordValue {
    func write(to text: inout JSONText) throws { text.raw(try StoreJSON.encode(self)) }
    static func read(_ scanner: inout JSONScanner) throws -> Self { try scanner.decimal() }
}

extension RecordValue where Self: FixedWidthInteger {
    func write(to text: inout JSONText) { text.integer(self) }
    static func read(_ scanner: inout JSONScanner) throws -> Self { try scanner.integer() }
}

extension Int: RecordValue {}
extension Int64: RecordValue {}
extension UInt32: RecordValue {}
extension UInt64: RecordValue {}

extension RecordValue where Self: RawRepresentable<String> {
    func write(to text: inout JSONText) { text.value(rawValue) }

    static func read(_ scanner: inout JSONScanner) throws -> Self {
        guard let value = Self(rawValue: try scanner.text()) else { throw JSONScanner.Unexpected() }
        return value
    }
}
