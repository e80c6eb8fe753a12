import FKMiddleware
import Foundation

/// Writes JSON (RFC 8259) into its own memory. It is for values that are written at least once per task: records, and
/// the program's lines about tasks. All other code uses `StoreJSON`.
///
/// `JSONEncoder` takes 26 us for a usual record, `JSONText` 1.2 us, and a task writes its record two or three times.
/// Appending to an array instead takes twice the instructions.
package struct JSONText: ~Copyable {
    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    private let leading: Int
    private var end: Int
    /// True if a comma must precede the next key or value.
    private var needsComma = false
    /// The stored form of places; nil writes them as they are.
    let places: Places?
    /// The length of the text at the last `setMark`.
    package private(set) var mark = 0

    /// Creates an empty text.
    ///
    /// - Parameters:
    ///   - capacity: the expected length in bytes. The default is 1,024. The memory grows as needed.
    ///   - leading: the number of bytes to reserve in front of the text. The default is 0.
    ///   - isRest: true for the rest of an object that has members already. The default is false.
    ///   - places: the stored form of places; nil, the default, writes them as they are.
    package init(capacity: Int = 1_024, leading: Int = 0, isRest: Bool = false, places: Places? = nil) {
        self.places = places
        self.capacity = leading + max(64, capacity)
        memory = .allocate(byteCount: self.capacity, alignment: 8)
        self.leading = leading
        end = leading
        needsComma = isRest
    }

    deinit { memory.deallocate() }

    /// The text written so far, without the reserved bytes.
    package var bytes: [UInt8] { Array(UnsafeRawBufferPointer(start: memory + leading, count: count)) }
    /// The length of the text in bytes.
    package var count: Int { end - leading }

    /// Calls `body` with the reserved bytes and the text that follows them.
    package func withMemory<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeMutableRawBufferPointer(start: memory, count: end))
    }

    /// Calls `body` with the text.
    package func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(start: memory + leading, count: count))
    }

    mutating func setMark() { mark = count }

    package mutating func beginObject() { open(0x7b) }
    package mutating func endObject() { close(0x7d) }
    package mutating func beginArray() { open(0x5b) }
    package mutating func endArray() { close(0x5d) }

    /// Writes the key of the next value.
    ///
    /// - Parameter name: ASCII without characters that JSON escapes.
    package mutating func key(_ name: StaticString) {
        let count = name.utf8CodeUnitCount
        reserve(count + 4)
        separate()
        // A record has some forty keys: one place instead of an end that moves with each byte.
        let place = memory + end
        place.storeBytes(of: 0x22, as: UInt8.self)
        (place + 1).copyMemory(from: name.utf8Start, byteCount: count)
        place.storeBytes(of: 0x22, toByteOffset: count + 1, as: UInt8.self)
        place.storeBytes(of: 0x3a, toByteOffset: count + 2, as: UInt8.self)
        end &+= count &+ 3
    }

    /// Writes any text as the key of the next value.
    mutating func key(_ name: String) {
        value(name)
        reserve(1)
        put(0x3a)
        needsComma = false
    }

    package mutating func value(_ text: String) {
        // Nearly every text is in one piece already. `withUTF8` needs a copy that may change.
        if text.utf8.withContiguousStorageIfAvailable({ value(utf8: $0) }) == nil {
            var text = text
            text.withUTF8 { value(utf8: $0) }
        }
    }

    /// True for a text that has no character to escape.
    static func isPlain(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { PlainBytes.prefix(of: UnsafeRawBufferPointer($0)).count == $0.count }
    }

    private mutating func value(utf8: UnsafeBufferPointer<UInt8>) {
        // The longest escape has six bytes.
        reserve(6 * utf8.count + 3)
        separate()
        put(0x22)
        let isPlain = PlainBytes.prefix(of: UnsafeRawBufferPointer(utf8)).count == utf8.count
        if isPlain { put(UnsafeRawBufferPointer(utf8)) } else { utf8.forEach { escape($0) } }
        put(0x22)
        needsComma = true
    }

    private mutating func escape(_ byte: UInt8) {
        if byte >= 0x20 {
            if byte == 0x22 || byte == 0x5c { put(0x5c) }
            put(byte)
        } else {
            "\\u00".utf8.forEach { put($0) }
            for digit in [byte >> 4, byte & 15] { put(digit < 10 ? 0x30 + digit : 0x57 + digit) }
        }
    }

    /// Writes an id as its 64 digits.
    mutating func value(_ id: TaskID) {
        reserve(67)
        separate()
        put(0x22)
        id.writeHex(
            into: UnsafeMutableBufferPointer(start: (memory + end).assumingMemoryBound(to: UInt8.self), count: 64))
        end &+= 64
        put(0x22)
        needsComma = true
    }

    package mutating func value(_ number: Int64) { integer(number) }
    package mutating func value(_ number: Int) { integer(number) }

    mutating func integer(_ number: some FixedWidthInteger) {
        reserve(21)
        separate()
        if number < 0 { put(0x2d) }
        put(decimal: UInt64(number.magnitude))
        needsComma = true
    }

    package mutating func value(_ flag: Bool) { raw(flag ? "true" : "false") }

    /// The maximum of a time in seconds since 1970, positive or negative: the year 4822.
    static let latestTime: Double = 9e10

    /// Milliseconds since 1970, clamped to the times that a record may have.
    package static func milliseconds(_ date: Date) -> Int64 {
        let limit = latestTime * 1000
        return Int64(min(max(-limit, (date.timeIntervalSince1970 * 1000).rounded()), limit))
    }

    /// Writes seconds since 1970, with three decimals unless it is a whole number. `StoreJSON` rounds dates the same way.
    package mutating func value(_ date: Date) {
        reserve(26)
        separate()
        let milliseconds = Self.milliseconds(date)
        let magnitude = milliseconds.magnitude
        if milliseconds < 0 { put(0x2d) }
        put(decimal: magnitude / 1000)
        let rest = magnitude % 1000
        if rest > 0 {
            put(0x2e)
            put(0x30 + UInt8(rest / 100))
            put(0x30 + UInt8(rest / 10 % 10))
            put(0x30 + UInt8(rest % 10))
        }
        needsComma = true
    }

    /// Writes a value that is in JSON form already.
    package mutating func raw(_ json: [UInt8]) { json.withUnsafeBytes { raw($0) } }

    package mutating func raw(_ json: StaticString) {
        raw(UnsafeRawBufferPointer(start: json.utf8Start, count: json.utf8CodeUnitCount))
    }

    private mutating func raw(_ json: UnsafeRawBufferPointer) {
        reserve(json.count + 1)
        separate()
        put(json)
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        reserve(2)
        separate()
        put(bracket)
    }

    private mutating func close(_ bracket: UInt8) {
        reserve(1)
        put(bracket)
        needsComma = true
    }

    // MARK: Functions that require reserved memory

    private mutating func separate() {
        if needsComma { put(0x2c) }
        needsComma = false
    }

    private mutating func reserve(_ more: Int) {
        if end &+ more > capacity { grow(more) }
    }

    private mutating func grow(_ more: Int) {
        capacity = 2 * (end + more)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        larger.copyMemory(from: memory, byteCount: end)
        memory.deallocate()
        memory = larger
    }

    private mutating func put(_ byte: UInt8) {
        memory.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
        end &+= 1
    }

    private mutating func put(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        (memory + end).copyMemory(from: start, byteCount: bytes.count)
        end &+= bytes.count
    }

    private mutating func put(decimal number: UInt64) {
        var rest = number
        var length = 1
        while rest >= 10 {
            rest /= 10
            length += 1
        }
        rest = number
        var place = end &+ length
        while place > end {
            place &-= 1
            memory.storeBytes(of: 0x30 + UInt8(truncatingIfNeeded: rest % 10), toByteOffset: place, as: UInt8.self)
            rest /= 10
        }
        end &+= length
    }
}

/// Members of an object; nil becomes null. Names are ASCII without characters that JSON escapes.
extension JSONText {
    package mutating func member(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    package mutating func member(_ name: StaticString, _ value: Int64?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    package mutating func member(_ name: StaticString, _ value: Bool?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    /// Writes a value that few tasks have.
    package mutating func member(_ name: StaticString, json value: JSON?) {
        key(name)
        if let value { raw(value.bytes) } else { raw("null") }
    }
}
