import Foundation

/// Writes `Encodable` values as JSON straight into bytes.
///
/// `JSONEncoder` builds a tree first: 23 us for a usual record of 1.1 kB, which is more than all else that an update
/// costs. This one takes 7. It knows what the store's types need: keyed, unkeyed and single-value containers, used one
/// after the other, keys in the order in which they are encoded. For anything else (`superEncoder`, `Data`, `URL`,
/// numbers that are not finite, a container used after its parent went on) `encode` returns nil, and `StoreJSON` leaves
/// the value to `JSONEncoder`; both write forms that the same decoder reads.
///
/// Used by one thread, for one value.
final class StoreJSONWriter: Encoder, SingleValueEncodingContainer {
    private struct Open {
        /// Tells containers apart that were open at the same depth one after the other.
        let number: Int
        let end: UInt8
        var isEmpty = true
    }

    // Unchecked: the checks of exclusive access at run time would take a quarter of the time, and no method here hands
    // out access to these while another one changes them.
    @exclusivity(unchecked) private var bytes: [UInt8] = []
    @exclusivity(unchecked) private var open: [Open] = []
    @exclusivity(unchecked) private var count = 0
    /// True between a key, a comma or the beginning, and the value that belongs there.
    @exclusivity(unchecked) private var expectsValue = true
    @exclusivity(unchecked) private var isBroken = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    private init() {
        bytes.reserveCapacity(2_048)
    }

    /// - Returns: nil for a value this writer cannot write.
    /// - Throws: what the value's own `encode(to:)` throws.
    static func encode(_ value: some Encodable) throws -> [UInt8]? {
        let writer = StoreJSONWriter()
        try writer.write(value)
        return writer.isBroken ? nil : writer.bytes
    }

    // MARK: Encoder

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(place: begin(0x7b, end: 0x7d)))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { Unkeyed(place: begin(0x5b, end: 0x5d)) }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    // MARK: Values

    func encodeNil() { append("null") }
    func encode(_ value: Bool) { append(value ? "true" : "false") }
    func encode(_ value: String) {
        takePlace()
        quote(value)
    }
    func encode(_ value: Double) {
        if !value.isFinite { isBroken = true }
        append(value.description)
    }
    func encode(_ value: Float) { encode(Double(value)) }
    func encode(_ value: Int) { append(value.description) }
    func encode(_ value: Int8) { append(value.description) }
    func encode(_ value: Int16) { append(value.description) }
    func encode(_ value: Int32) { append(value.description) }
    func encode(_ value: Int64) { append(value.description) }
    func encode(_ value: UInt) { append(value.description) }
    func encode(_ value: UInt8) { append(value.description) }
    func encode(_ value: UInt16) { append(value.description) }
    func encode(_ value: UInt32) { append(value.description) }
    func encode(_ value: UInt64) { append(value.description) }
    func encode<Value: Encodable>(_ value: Value) throws { try write(value) }

    /// Writes a value where one is expected, and closes every container it opened.
    fileprivate func write<Value: Encodable>(_ value: Value) throws {
        if Value.self == Date.self, let date = value as? Date {
            write(date)
        } else if Value.self == String.self, let text = value as? String {
            encode(text)
        } else if Value.self == Data.self || Value.self == URL.self || Value.self == Decimal.self {
            isBroken = true
            append("null")
        } else {
            let depth = open.count
            try value.encode(to: self)
            // A value that encodes nothing is an empty object, as with JSONEncoder.
            if expectsValue, open.count == depth { append("{}") }
            close(to: depth)
        }
    }

    private func write(_ date: Date) {
        encode(StoreJSON.seconds(date))
    }

    // MARK: Bytes

    private func takePlace() {
        if !expectsValue { isBroken = true }
        expectsValue = false
    }

    private func append(_ text: String) {
        takePlace()
        bytes.append(contentsOf: text.utf8)
    }

    private func quote(_ text: String) {
        var text = text
        text.withUTF8 { text in
            bytes.append(0x22)
            var start = 0
            for index in 0..<text.count where text[index] < 0x20 || text[index] == 0x22 || text[index] == 0x5c {
                bytes.append(contentsOf: text[start..<index])
                let byte = text[index]
                if byte < 0x20 {
                    let low = byte & 15
                    bytes.append(contentsOf: [
                        0x5c, 0x75, 0x30, 0x30, 0x30 + byte >> 4, low < 10 ? 0x30 + low : 0x57 + low,
                    ])
                } else {
                    bytes.append(0x5c)
                    bytes.append(byte)
                }
                start = index + 1
            }
            bytes.append(contentsOf: text[start...])
            bytes.append(0x22)
        }
    }

    // MARK: Containers

    /// A container that was opened: valid until something is written to one around it.
    fileprivate struct Place {
        let writer: StoreJSONWriter
        let depth: Int
        let number: Int
    }

    private func begin(_ start: UInt8, end: UInt8) -> Place {
        takePlace()
        bytes.append(start)
        count += 1
        open.append(Open(number: count, end: end))
        return Place(writer: self, depth: open.count, number: count)
    }

    private func close(to depth: Int) {
        while open.count > depth, let last = open.popLast() { bytes.append(last.end) }
    }

    /// Gets ready for the next key or element of a container: closes what is open inside it, writes the comma.
    fileprivate func advance(_ place: Place) {
        close(to: place.depth)
        guard open.count == place.depth, open[place.depth - 1].number == place.number, !expectsValue else {
            isBroken = true
            return
        }
        if open[place.depth - 1].isEmpty {
            open[place.depth - 1].isEmpty = false
        } else {
            bytes.append(0x2c)
        }
        expectsValue = true
    }

    fileprivate func advance(_ place: Place, key: some CodingKey) {
        advance(place)
        quote(key.stringValue)
        bytes.append(0x3a)
    }

    fileprivate func unsupported() -> any Encoder {
        isBroken = true
        return self
    }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let place: Place
        var codingPath: [any CodingKey] { [] }

        private func at(_ key: Key) -> StoreJSONWriter {
            place.writer.advance(place, key: key)
            return place.writer
        }

        func encodeNil(forKey key: Key) { at(key).encodeNil() }
        func encode(_ value: Bool, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: String, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Double, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Float, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Int, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Int8, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Int16, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Int32, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: Int64, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: UInt, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: UInt8, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: UInt16, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: UInt32, forKey key: Key) { at(key).encode(value) }
        func encode(_ value: UInt64, forKey key: Key) { at(key).encode(value) }
        func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try at(key).write(value) }
        func nestedContainer<Nested: CodingKey>(
            keyedBy keyType: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> {
            at(key).container(keyedBy: keyType)
        }
        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { at(key).unkeyedContainer() }
        func superEncoder() -> any Encoder { place.writer.unsupported() }
        func superEncoder(forKey key: Key) -> any Encoder { place.writer.unsupported() }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let place: Place
        private(set) var count = 0
        var codingPath: [any CodingKey] { [] }

        init(place: Place) { self.place = place }

        private mutating func next() -> StoreJSONWriter {
            count += 1
            place.writer.advance(place)
            return place.writer
        }

        mutating func encodeNil() { next().encodeNil() }
        mutating func encode<Value: Encodable>(_ value: Value) throws { try next().write(value) }
        mutating func nestedContainer<Nested: CodingKey>(keyedBy keyType: Nested.Type) -> KeyedEncodingContainer<Nested>
        {
            next().container(keyedBy: keyType)
        }
        mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
        mutating func superEncoder() -> any Encoder { place.writer.unsupported() }
    }
}
