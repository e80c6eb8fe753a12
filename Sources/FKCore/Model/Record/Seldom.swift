/// Stores an optional value that is rarely set in a separate box, so that nil takes one word instead of the size of
/// the value. Copies share the box. The `Codable` form is that of a plain optional.
@propertyWrapper
package struct Seldom<Value: Codable & Sendable & Hashable>: Sendable, Hashable {
    private final class Box: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private var box: Box?

    /// Boxes the value; nil takes no box.
    package init(wrappedValue: Value?) { box = wrappedValue.map(Box.init) }

    /// The value. Setting it makes a new box.
    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map(Box.init) }
    }

    /// True if there is a value. It does not copy the value.
    package var isThere: Bool { box != nil }

    /// Compares the values, not the boxes.
    package static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box?.value == other.box?.value
    }

    /// Hashes the value.
    package func hash(into hasher: inout Hasher) { hasher.combine(box?.value) }
}

extension Seldom: Codable {
    /// Decodes the value.
    package init(from decoder: any Decoder) throws { self.init(wrappedValue: try Value(from: decoder)) }
    /// Encodes the value; writes nothing for nil.
    package func encode(to encoder: any Encoder) throws { try box?.value.encode(to: encoder) }
}

// The synthesised conformance of a `Codable` structure calls these.
extension KeyedDecodingContainer {
    /// Decodes nil if the key is absent.
    package func decode<Value>(_ type: Seldom<Value>.Type, forKey key: Key) throws -> Seldom<Value> {
        Seldom(wrappedValue: try decodeIfPresent(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    /// Writes no key for nil.
    package mutating func encode<Value>(_ value: Seldom<Value>, forKey key: Key) throws {
        try encodeIfPresent(value.wrappedValue, forKey: key)
    }
}
