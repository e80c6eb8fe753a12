/// The syntax of header field names and values, sent and received (RFC 9110 sections 5.1, 5.5 and 5.6.2).
package enum HTTPToken {
    /// True for a `tchar` (RFC 9110 section 5.6.2).
    @inlinable
    @inline(__always)
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e...0x60, 0x7c, 0x7e: true
        default: false
        }
    }

    /// True for a non-empty token, which is the form of a field name.
    package static func isFieldName(_ name: String) -> Bool {
        // In memory: step by step through `utf8` takes ten times as long.
        let isToken = name.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isTokenByte) }
        return !name.isEmpty && isToken ?? name.utf8.allSatisfy(isTokenByte)
    }

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0d || byte == 0x0a || byte == 0 }

    /// True when the value has no CR, LF or NUL. With one of them a value could become another field or another
    /// request.
    package static func isFieldValue(_ value: String) -> Bool {
        !(value.utf8.withContiguousStorageIfAvailable { $0.contains(where: isLineEnd) }
            ?? value.utf8.contains(where: isLineEnd))
    }
}
