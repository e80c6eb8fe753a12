/// Percent-encoding of bytes (RFC 3986 section 2.1).
package enum PercentCoding {
    /// The byte that `%XX` at `index` encodes; nil if two hexadecimal digits do not follow.
    package static func value(_ bytes: ArraySlice<UInt8>, at index: Int) -> UInt8? {
        guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.endIndex,
            let high = bytes[index + 1].hexValue, let low = bytes[index + 2].hexValue
        else { return nil }
        return high << 4 | low
    }

    /// Appends `%XX` with upper-case digits.
    package static func append(_ byte: UInt8, to result: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    /// The bytes with every `%XX` decoded. Any other `%` stays.
    package static func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if let byte = value(bytes, at: index) {
                result.append(byte)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// The decoded bytes as text; nil if they are not UTF-8.
    package static func decodedString(_ bytes: ArraySlice<UInt8>) -> String? {
        String(validating: decoded(bytes), as: UTF8.self)
    }
}

extension UInt8 {
    package var isASCIIDigit: Bool { (0x30...0x39).contains(self) }
    /// True for A to Z in either case.
    package var isASCIILetter: Bool { (0x41...0x5a).contains(self) || (0x61...0x7a).contains(self) }
    /// True for an unreserved character (RFC 3986 section 2.3): letters, digits, `-`, `.`, `_` and `~`.
    package var isUnreserved: Bool {
        isASCIILetter || isASCIIDigit || self == 0x2d || self == 0x2e || self == 0x5f || self == 0x7e
    }
    /// The value of a hexadecimal digit in either case; nil for other bytes.
    package var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }
}
