import Foundation

/// Appends JSON (RFC 8259) to bytes, for the one record that is written several times per task.
///
/// `JSONEncoder` takes 14 µs for a usual record, this less than 1 µs; three writes a task make it the difference between
/// 190 and 110 µs for a small file. What is rare inside a record still goes through `JSONEncoder`, and everything is
/// read with `JSONScanner`. The memory is its own: appending to an array takes twice the instructions.
struct JSONText: ~Copyable {
    private var memory: UnsafeMutableRawBufferPointer
    private let leading: Int
    private var end: Int
    /// The next key or value needs a comma before it.
    private var needsComma = false

    /// - Parameter leading: bytes of room that are left in front of the text.
    init(capacity: Int, leading: Int = 0) {
        memory = Heap.take(leading + max(64, capacity))
        self.leading = leading
        end = leading
    }

    deinit { Heap.giveBack(memory.baseAddress) }

    /// What has been written so far.
    var bytes: [UInt8] { Array(memory[leading..<end]) }
    /// Its length in bytes.
    var count: Int { end - leading }

    /// The room in front, and behind it what has been written.
    func withMemory<Result>(_ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeMutableRawBufferPointer(rebasing: memory[..<end]))
    }

    mutating func beginObject() { open(0x7b) }
    mutating func endObject() { close(0x7d) }
    mutating func beginArray() { open(0x5b) }
    mutating func endArray() { close(0x5d) }

    /// Names that need no escaping only.
    mutating func key(_ name: StaticString) {
        reserve(name.utf8CodeUnitCount + 4)
        separate()
        put(0x22)
        put(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        put(0x22)
        put(0x3a)
    }

    mutating func value(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            // The longest escape has six bytes.
            reserve(6 * utf8.count + 3)
            separate()
            put(0x22)
            // Without a branch, so that the compiler looks at many bytes at once.
            var special: UInt8 = 0
            for byte in utf8 { special |= (byte < 0x20 ? 1 : 0) | (byte == 0x22 ? 1 : 0) | (byte == 0x5c ? 1 : 0) }
            if special == 0 { put(UnsafeRawBufferPointer(utf8)) } else { utf8.forEach { escape($0) } }
            put(0x22)
        }
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

    mutating func value(_ number: some FixedWidthInteger) {
        reserve(21)
        separate()
        if number < 0 { put(0x2d) }
        put(decimal: UInt64(number.magnitude))
        needsComma = true
    }

    mutating func value(_ flag: Bool) { raw(Array((flag ? "true" : "false").utf8)) }

    /// Milliseconds since 1970; a time further away than any record may have is cut.
    static func milliseconds(_ date: Date) -> Int64 {
        let limit = TaskRecord.latestTime * 1000
        return Int64(min(max(-limit, (date.timeIntervalSince1970 * 1000).rounded()), limit))
    }

    /// Seconds since 1970 with three decimals, as `StoreJSON` writes dates.
    mutating func value(_ date: Date) {
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

    mutating func value(_ texts: [String]) {
        beginArray()
        for text in texts { value(text) }
        endArray()
    }

    /// JSON that somebody else has made.
    mutating func raw(_ json: [UInt8]) {
        reserve(json.count + 1)
        separate()
        json.withUnsafeBytes { put($0) }
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

    // MARK: Inside: everything below has its room reserved

    private mutating func separate() {
        if needsComma { put(0x2c) }
        needsComma = false
    }

    private mutating func reserve(_ more: Int) {
        guard end + more > memory.count else { return }
        let larger = Heap.take(2 * (end + more))
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<end]))
        Heap.giveBack(memory.baseAddress)
        memory = larger
    }

    private mutating func put(_ byte: UInt8) {
        memory[end] = byte
        end += 1
    }

    private mutating func put(_ bytes: UnsafeRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: memory[end...]).copyMemory(from: bytes)
        end += bytes.count
    }

    private mutating func put(decimal number: UInt64) {
        var rest = number
        var length = 1
        while rest >= 10 {
            rest /= 10
            length += 1
        }
        rest = number
        for place in (end..<end + length).reversed() {
            memory[place] = 0x30 + UInt8(rest % 10)
            rest /= 10
        }
        end += length
    }
}
