extension ArraySlice<UInt8> {
    /// The byte that `%XX` at `index` encodes (RFC 3986 section 2.1); nil if two hexadecimal digits do not follow.
    package func percentValue(at index: Int) -> UInt8? {
        guard self[index] == UInt8(ascii: "%"), index + 2 < endIndex,
            let high = self[index + 1].hexValue, let low = self[index + 2].hexValue
        else { return nil }
        return high << 4 | low
    }

    /// The bytes with every `%XX` decoded. Any other `%` stays.
    package var percentDecoded: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count)
        var index = startIndex
        while index < endIndex {
            if let byte = percentValue(at: index) {
                result.append(byte)
                index += 3
            } else {
                result.append(self[index])
                index += 1
            }
        }
        return result
    }
}

extension [UInt8] {
    /// Appends `%XX` with upper-case digits.
    package mutating func appendPercentEncoded(_ byte: UInt8) {
        let digits = Array("0123456789ABCDEF".utf8)
        self += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}

extension StringProtocol {
    /// The text with every `%XX` decoded; nil if the bytes are not UTF-8.
    package var percentDecoded: String? { String(validating: Array(utf8)[...].percentDecoded, as: UTF8.self) }
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
