/// Keeps a large value that is seldom there outside of the structure it belongs to: one word instead of all its bytes in
/// each of a hundred thousand tasks. Copies share it; it reads and is written as JSON like a plain optional.
@propertyWrapper
package struct Seldom<Value: Codable & Sendable & Hashable>: Sendable, Hashable {
    private final class Box: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private var box: Box?

    package init(wrappedValue: Value?) { box = wrappedValue.map(Box.init) }

    package var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map(Box.init) }
    }

    /// There is a value; asked for without copying it.
    package var isThere: Bool { box != nil }

    package static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box?.value == other.box?.value
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(box?.value) }
}

extension Seldom: Codable {
    package init(from decoder: any Decoder) throws { self.init(wrappedValue: try Value(from: decoder)) }
    package func encode(to encoder: any Encoder) throws { try box?.value.encode(to: encoder) }
}

// What the compiler writes for a `Codable` structure calls these: a key that is not there is nil, and nil writes no key.
extension KeyedDecodingContainer {
    package func decode<Value>(_ type: Seldom<Value>.Type, forKey key: Key) throws -> Seldom<Value> {
        Seldom(wrappedValue: try decodeIfPresent(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    package mutating func encode<Value>(_ value: Seldom<Value>, forKey key: Key) throws {
        try encodeIfPresent(value.wrappedValue, forKey: key)
    }
}
