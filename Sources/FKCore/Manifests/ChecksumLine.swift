import FKMiddleware

/// One line of a checksum list.
///
/// | form | written by |
/// | --- | --- |
/// | `HEX  NAME`, `HEX *NAME` | `sha256sum` and similar programs; `*` means that the file was read as binary |
/// | `SHA256 (NAME) = HEX` | `sha256sum --tag`, BSD |
/// | `SHA2-256(NAME)= HEX` | `openssl dgst` |
///
/// A backslash before the line means that the name contains the escapes `\\`, `\n` and `\r` for a backslash, a line
/// feed and a carriage return.
struct ChecksumLine {
    var digest: Checksum
    var name: String

    /// A fault in a line.
    struct Fault: Error {
        let reason: String
        /// The position in bytes, from 1; 0 for the whole line.
        let column: Int
        init(_ reason: String, column: Int = 0) {
            self.reason = reason
            self.column = column
        }
    }

    /// - Throws: the fault of a line in none of these forms.
    init(_ line: ArraySlice<UInt8>) throws(Fault) {
        let isEscaped = line.first == UInt8(ascii: "\\")
        let rest = isEscaped ? line.dropFirst() : line
        let name: ArraySlice<UInt8>
        if let tagged = try Self.tagged(rest) {
            (digest, name) = tagged
        } else {
            (digest, name) = try Self.plain(rest)
        }
        let column = name.startIndex - line.startIndex + 1
        guard let bytes = isEscaped ? Self.unescaped(name) : Array(name) else {
            throw Fault("the name has an escape other than \\\\, \\n and \\r", column: column)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault("the name is not UTF-8 text", column: column)
        }
        self.name = text
    }

    /// Reads the form `HEX  NAME`.
    private static func plain(_ line: ArraySlice<UInt8>) throws(Fault) -> (Checksum, ArraySlice<UInt8>) {
        let digits = line.prefix { $0.hexValue != nil }
        var rest = line[digits.endIndex...]
        guard digits.count >= 8, rest.first == 0x20 || rest.first == 0x09 else {
            throw Fault("the line is neither 'HEX  NAME' nor 'ALGORITHM (NAME) = HEX'")
        }
        guard let algorithm = Checksum.Algorithm(digits: digits.count),
            let digest = Checksum(listed: algorithm, hex: String(decoding: digits, as: UTF8.self))
        else {
            throw Fault(
                "\(digits.count) hexadecimal digits are the digest of no known algorithm: md5 has 32, sha-1 40, "
                    + "sha-224 56, "
                    + "sha-256 64, sha-384 96 and sha-512 128", column: 1)
        }
        // A blank and a mark follow: ' ' for text, '*' for binary. Without a mark, the name follows directly.
        rest = rest.dropFirst()
        if rest.first == 0x20 || rest.first == UInt8(ascii: "*") { rest = rest.dropFirst() }
        guard !rest.isEmpty else { throw Fault("the name behind the digest is missing") }
        return (digest, rest)
    }

    /// Reads the form `SHA256 (NAME) = HEX`; nil for a line in another form.
    private static func tagged(
        _ line: ArraySlice<UInt8>
    ) throws(Fault) -> (Checksum, ArraySlice<UInt8>)? {
        guard let open = line.firstIndex(of: UInt8(ascii: "(")), open > line.startIndex, open - line.startIndex <= 16,
            let close = line.lastIndex(of: UInt8(ascii: ")")), close > open
        else { return nil }
        var word = line[..<open]
        if word.last == 0x20 { word = word.dropLast() }
        guard !word.isEmpty,
            word.allSatisfy({
                $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "/")
            })
        else { return nil }
        var rest = line[(close + 1)...].drop { $0 == 0x20 }
        guard rest.first == UInt8(ascii: "=") else { return nil }
        rest = rest.dropFirst().drop { $0 == 0x20 }
        while rest.last == 0x20 || rest.last == 0x09 { rest = rest.dropLast() }
        let name = String(decoding: word, as: UTF8.self)
        guard let algorithm = Checksum.Algorithm(listed: name) else {
            throw Fault("the algorithm \(name) is not supported; md5, sha1, sha224, sha256, sha384 and sha512 are")
        }
        let text = String(decoding: rest, as: UTF8.self)
        guard let digest = Checksum(listed: algorithm, hex: text) else {
            throw Fault(Checksum.fault(in: text, algorithm), column: rest.startIndex - line.startIndex + 1)
        }
        guard close > open + 1 else { throw Fault("the name in brackets is missing") }
        return (digest, line[(open + 1)..<close])
    }

    private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var isEscape = false
        for byte in name {
            guard isEscape else {
                isEscape = byte == UInt8(ascii: "\\")
                if !isEscape { result.append(byte) }
                continue
            }
            isEscape = false
            switch byte {
            case UInt8(ascii: "\\"): result.append(byte)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            default: return nil
            }
        }
        return isEscape ? nil : result
    }
}
