extension UInt8 {
    /// True for a `tchar` (RFC 9110 section 5.6.2).
    @inlinable
    @inline(__always)
    package var isTokenByte: Bool {
        switch self {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e...0x60, 0x7c, 0x7e: true
        default: false
        }
    }

    fileprivate var isLineEnd: Bool { self == 0x0d || self == 0x0a || self == 0 }
}

extension String {
    /// True for a non-empty token, which is the form of the name of a header field, sent or received (RFC 9110 section 5.1).
    package var isFieldName: Bool {
        // In memory: step by step through `utf8` takes ten times as long.
        let isToken = utf8.withContiguousStorageIfAvailable { $0.allSatisfy { $0.isTokenByte } }
        return !isEmpty && isToken ?? utf8.allSatisfy { $0.isTokenByte }
    }

    /// True when the value of a header field has no CR, LF or NUL (RFC 9110 section 5.5). With one of them a value could become another
    /// field or another request.
    package var isFieldValue: Bool {
        !(utf8.withContiguousStorageIfAvailable { $0.contains { $0.isLineEnd } } ?? utf8.contains { $0.isLineEnd })
    }
}
