import Foundation

/// Reads JSON in the form that `JSONText` writes: UTF-8, without white space, members in a known order.
///
/// It throws `Unexpected` for any other form, and the caller then gives the same bytes to `JSONDecoder`. Whatever it
/// accepts, `JSONDecoder` reads as the same value. A test compares both on damaged input. `JSONDecoder` takes 35 us for
/// a usual record.
package struct JSONScanner {
    /// The bytes have another form; `JSONDecoder` decides whether they are valid.
    package struct Unexpected: Error {}

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0
    /// True if a comma must precede the next key.
    private var needsComma = false

    /// Begins at the first byte. The bytes must outlive the scanner.
    package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    // MARK: Structure

    package mutating func beginObject() throws(Unexpected) {
        try expect(0x7b)
        needsComma = false
    }

    package mutating func endObject() throws(Unexpected) {
        try expect(0x7d)
        needsComma = true
    }

    /// Skips the key with its comma and colon and returns true. Returns false, without moving, if another key is next.
    package mutating func has(_ key: StaticString) -> Bool {
        let length = key.utf8CodeUnitCount
        let start = position + (needsComma ? 1 : 0)
        guard start + length + 3 <= bytes.count, let base = bytes.baseAddress,
            !needsComma || bytes[position] == 0x2c, bytes[start] == 0x22,
            memcmp(base + start + 1, key.utf8Start, length) == 0, bytes[start + 1 + length] == 0x22,
            bytes[start + 2 + length] == 0x3a
        else { return false }
        position = start + length + 3
        return true
    }

    /// Skips the key of the next member, which must be this one.
    package mutating func need(_ key: StaticString) throws(Unexpected) {
        if !has(key) { throw Unexpected() }
    }

    /// Calls `body` before each element of an array.
    package mutating func elements(_ body: (inout JSONScanner) throws -> Void) throws {
        try expect(0x5b)
        if peek == 0x5d {
            position += 1
        } else {
            while true {
                needsComma = false
                try body(&self)
                if peek != 0x2c { break }
                position += 1
            }
            try expect(0x5d)
        }
        needsComma = true
    }

    /// Calls `body` with the name of each member of an object, before its value. Names with escapes are unexpected.
    package mutating func members(_ body: (inout JSONScanner, String) throws -> Void) throws {
        try expect(0x7b)
        if peek == 0x7d {
            position += 1
        } else {
            while true {
                let name = try rawText()
                let bytes = UnsafeBufferPointer(rebasing: bytes[name.range])
                guard !name.hasEscapes, let text = String(validating: bytes, as: UTF8.self) else { throw Unexpected() }
                try expect(0x3a)
                needsComma = false
                try body(&self, text)
                if peek != 0x2c { break }
                position += 1
            }
            try expect(0x7d)
        }
        needsComma = true
    }

    /// The bytes of the next value, which must be an object or an array.
    package mutating func rawValue() throws(Unexpected) -> UnsafeRawBufferPointer {
        let start = position
        var depth = 0
        repeat {
            switch peek {
            case 0x7b, 0x5b:
                depth += 1
                position += 1
            case 0x7d, 0x5d:
                depth -= 1
                position += 1
            case 0x22: _ = try rawText()
            case nil: throw Unexpected()
            default:
                if depth == 0 { throw Unexpected() }
                position += 1
            }
        } while depth > 0
        needsComma = true
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[start..<position])
    }

    // MARK: Values

    /// Reads a text without escapes.
    package mutating func text() throws(Unexpected) -> String {
        let raw = try rawText()
        needsComma = true
        let part = UnsafeBufferPointer(rebasing: bytes[raw.range])
        if raw.isASCII, !raw.hasEscapes { return String(decoding: part, as: UTF8.self) }
        let text =
            raw.hasEscapes
            ? String(validating: try unescaped(part), as: UTF8.self) : String(validating: part, as: UTF8.self)
        guard let text else { throw Unexpected() }
        return text
    }

    /// The bytes of a text without escapes.
    mutating func plainText() throws(Unexpected) -> UnsafeBufferPointer<UInt8> {
        let raw = try rawText()
        if raw.hasEscapes { throw Unexpected() }
        needsComma = true
        return UnsafeBufferPointer(rebasing: bytes[raw.range])
    }

    /// Reads an integer that the type can hold.
    package mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(Unexpected)
        -> Number
    {
        let isNegative = peek == 0x2d
        if isNegative { position += 1 }
        let start = position
        var value: Number = 0
        while let digit = peek.map({ $0 &- 0x30 }), digit < 10 {
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflows) =
                isNegative
                ? shifted.subtractingReportingOverflow(Number(digit)) : shifted.addingReportingOverflow(Number(digit))
            if overflow || overflows { throw Unexpected() }
            value = sum
            position += 1
        }
        // Other forms, such as no digits, a leading zero, a minus zero, decimals or an exponent, are left to
        // JSONDecoder.
        guard position > start, bytes[start] != 0x30 || (position == start + 1 && !isNegative), isAtEndOfNumber else {
            throw Unexpected()
        }
        needsComma = true
        return value
    }

    /// A number with at most three decimals. As the quotient of two exact numbers, it is the nearest `Double`.
    mutating func decimal() throws(Unexpected) -> Double {
        let isNegative = peek == 0x2d
        if isNegative { position += 1 }
        let start = position
        var thousandths: Int64 = 0
        func digit(_ byte: UInt8?) -> Int64? { byte.flatMap { (0x30...0x39).contains($0) ? Int64($0) - 0x30 : nil } }
        while let digit = digit(peek), position < start + 12 {
            thousandths = thousandths * 10 + digit
            position += 1
        }
        guard position > start, bytes[start] != 0x30 || position == start + 1 else { throw Unexpected() }
        thousandths *= 1_000
        if peek == 0x2e {
            position += 1
            guard digit(peek) != nil else { throw Unexpected() }
            for weight in [100, 10, 1] as [Int64] {
                guard let digit = digit(peek) else { break }
                thousandths += digit * weight
                position += 1
            }
        }
        guard isAtEndOfNumber, thousandths > 0 || !isNegative else { throw Unexpected() }
        needsComma = true
        return Double(isNegative ? -thousandths : thousandths) / 1_000
    }

    /// A date in seconds since 1970.
    mutating func date() throws(Unexpected) -> Date { Date(timeIntervalSince1970: try decimal()) }

    mutating func flag() throws(Unexpected) -> Bool {
        for (word, value) in [("true" as StaticString, true), ("false", false)] {
            let length = word.utf8CodeUnitCount
            if position + length <= bytes.count, let base = bytes.baseAddress,
                memcmp(base + position, word.utf8Start, length) == 0
            {
                position += length
                needsComma = true
                return value
            }
        }
        throw Unexpected()
    }

    // MARK: Inside

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private var isAtEndOfNumber: Bool { peek == 0x2c || peek == 0x7d || peek == 0x5d }

    private mutating func expect(_ byte: UInt8) throws(Unexpected) {
        guard peek == byte else { throw Unexpected() }
        position += 1
    }

    private mutating func rawText() throws(Unexpected) -> (range: Range<Int>, isASCII: Bool, hasEscapes: Bool) {
        try expect(0x22)
        let start = position
        let plain = PlainBytes.prefix(of: UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[start...])))
        position += plain.count
        var union: UInt8 = plain.isASCII ? 0 : 0x80
        var hasEscapes = false
        while position < bytes.count {
            let byte = bytes[position]
            if byte == 0x22 {
                position += 1
                return (start..<position - 1, union < 0x80, hasEscapes)
            }
            if byte < 0x20 { throw Unexpected() }
            if byte == 0x5c {
                hasEscapes = true
                position += 1
                if position == bytes.count { throw Unexpected() }
            }
            union |= byte
            position += 1
        }
        throw Unexpected()
    }

    /// `\u` above ASCII is left to JSONDecoder, because our writer never produces it.
    private func unescaped(_ part: UnsafeBufferPointer<UInt8>) throws(Unexpected) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(part.count)
        var index = 0
        while index < part.count {
            let byte = part[index]
            index += 1
            guard byte == 0x5c else {
                result.append(byte)
                continue
            }
            let escape = part[index]
            index += 1
            switch escape {
            case 0x22, 0x5c, 0x2f: result.append(escape)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0c)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"):
                guard index + 4 <= part.count, part[index] == 0x30, part[index + 1] == 0x30,
                    let high = Self.hex(part[index + 2]), high < 8, let low = Self.hex(part[index + 3])
                else { throw Unexpected() }
                result.append(high << 4 | low)
                index += 4
            default: throw Unexpected()
            }
        }
        return result
    }

    private static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x61...0x66: byte - 0x57
        case 0x41...0x46: byte - 0x37
        default: nil
        }
    }
}
