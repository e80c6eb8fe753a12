import FKMiddleware
import Foundation

/// A structure of the info file with one list of its members, in the order in which they are written. Writing
/// (`JSONText`), reading (`JSONScanner`) and `Codable` (`FieldEncoder`, `FieldDecoder`) all use this list.
///
/// A new member needs a stored property and a line in `visitFields`. The order of the existing lines must not change,
/// because files of earlier versions have it.
protocol RecordObject: RecordValue {
    /// The initial value for reading. Its optional members are nil, so that absent ones stay nil.
    static var blank: Self { get }
    /// Visits every member. A reading visitor replaces them; any other visitor leaves them unchanged.
    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws
}

/// A rare member of a record, most values of which are written and read without Foundation's coders.
protocol UsualValue: Codable {
    /// True for a value that `writeUsual` can write.
    var isUsual: Bool { get }
    /// Writes the value with the members of `Codable`, in its order.
    func writeUsual(to text: inout JSONText)
    /// Reads what `writeUsual` has written.
    ///
    /// - Throws: for any other form, which Foundation's decoder may be able to read.
    static func readUsual(_ scanner: inout JSONScanner) throws -> Self
}

/// An operation on every member of a structure.
protocol FieldVisitor: ~Copyable {
    /// True if the visitor replaces the members.
    static var isReading: Bool { get }

    /// Visits a member that is always present.
    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) throws
    /// Visits a member that is left out if it is nil.
    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) throws
    /// Visits a place (`Places`) that is left out if it is nil. The default implementation takes it as any text.
    mutating func place(_ name: StaticString, _ value: inout String?) throws
    /// Visits a member that few records have. It uses Foundation's encoder and decoder, which take 5 to 10 us.
    ///
    /// - Parameter isRequired: true if `{}` stands for nil, false if the member is left out then.
    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) throws
    /// Visits a member whose usual values need none of Foundation's coders; `{}` stands for nil. By default it is visited as a rare
    /// member.
    mutating func usual<Value: UsualValue>(_ name: StaticString, _ value: inout Value?) throws
}

extension FieldVisitor where Self: ~Copyable {
    mutating func place(_ name: StaticString, _ value: inout String?) throws { try field(name, &value) }

    mutating func usual<Value: UsualValue>(_ name: StaticString, _ value: inout Value?) throws {
        try rare(name, &value, isRequired: true)
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws {
        try rare(name, &value, isRequired: false)
    }
}

// MARK: Writing

extension JSONText: FieldVisitor {
    static var isReading: Bool { false }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) throws {
        key(name)
        try value.write(to: &self)
    }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) throws {
        guard let value else { return }
        key(name)
        try value.write(to: &self)
    }

    mutating func place(_ name: StaticString, _ value: inout String?) throws {
        guard let value else { return }
        key(name)
        self.value(places?.stored(value) ?? value)
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) throws {
        if let value {
            key(name)
            raw(try StoreJSON.encode(value))
        } else if isRequired {
            key(name)
            raw("{}")
        }
    }

    mutating func usual<Value: UsualValue>(_ name: StaticString, _ value: inout Value?) throws {
        guard let value, value.isUsual else { return try rare(name, &value, isRequired: true) }
        key(name)
        value.writeUsual(to: &self)
    }
}

extension RecordObject {
    func write(to text: inout JSONText) throws {
        text.beginObject()
        var copy = self
        try copy.visitFields(&text)
        text.endObject()
    }
}

// MARK: Reading

extension JSONScanner: FieldVisitor {
    static var isReading: Bool { true }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) throws {
        try need(name)
        value = try Value.read(&self)
    }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) throws {
        if has(name) { value = try Value.read(&self) }
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) throws {
        guard has(name) else {
            if isRequired { throw Unexpected() }
            return
        }
        let json = try rawValue()
        if isRequired, json.elementsEqual("{}".utf8) { return }
        value = try StoreJSON.decode(Value.self, from: json)
    }

    mutating func usual<Value: UsualValue>(_ name: StaticString, _ value: inout Value?) throws {
        try need(name)
        let json = try rawValue()
        if json.elementsEqual("{}".utf8) { return }
        var scanner = JSONScanner(json.assumingMemoryBound(to: UInt8.self))
        value = try (try? Value.readUsual(&scanner)) ?? StoreJSON.decode(Value.self, from: json)
    }
}

extension RecordObject {
    static func read(_ scanner: inout JSONScanner) throws -> Self {
        try scanner.beginObject()
        var value = blank
        try value.visitFields(&scanner)
        try scanner.endObject()
        return value
    }
}

// MARK: Codable

private struct FieldName: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: StaticString) { stringValue = "\(name)" }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// Encodes the members of a structure for any `Encoder`.
struct FieldEncoder: FieldVisitor {
    static var isReading: Bool { false }
    private var values: KeyedEncodingContainer<FieldName>

    init(_ encoder: any Encoder) { values = encoder.container(keyedBy: FieldName.self) }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) throws {
        try values.encode(value, forKey: FieldName(name))
    }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) throws {
        try values.encodeIfPresent(value, forKey: FieldName(name))
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) throws {
        if value == nil, isRequired {
            try values.encode([String: String](), forKey: FieldName(name))
        } else {
            try values.encodeIfPresent(value, forKey: FieldName(name))
        }
    }
}

/// Decodes the members of a structure from any `Decoder`.
struct FieldDecoder: FieldVisitor {
    static var isReading: Bool { true }
    private let values: KeyedDecodingContainer<FieldName>

    init(_ decoder: any Decoder) throws { values = try decoder.container(keyedBy: FieldName.self) }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) throws {
        value = try values.decode(Value.self, forKey: FieldName(name))
    }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) throws {
        value = try values.decodeIfPresent(Value.self, forKey: FieldName(name))
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) throws {
        value =
            try isRequired
            ? values.decode(Value.self, forKey: FieldName(name))
            : values.decodeIfPresent(Value.self, forKey: FieldName(name))
    }
}
