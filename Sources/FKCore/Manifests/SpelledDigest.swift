import FKMiddleware
import Foundation

/// A digest as lists write it.
///
/// | spelling | written by |
/// | --- | --- |
/// | `HEX` | most lists; without an algorithm, the length tells it |
/// | `ALG:HEX`, `ALG=HEX` | GitHub, pip, Zenodo |
/// | `BASE64` | OpenBSD, Kaggle; 24, 28, 44, 64 or 88 characters |
/// | `ALG-BASE64`, several with blanks between | Subresource Integrity, npm |
/// | a code, a length and `HEX` | STAC (multihash) |
enum SpelledDigest: Equatable {
    /// Digests of one file, each of another algorithm.
    case digests([Checksum])
    /// No value: an empty text, `NA`, `nan`, `None`, `null` or `-`.
    case none
    /// The name of an algorithm that is not supported.
    case unsupported(String)
    /// A text that is no digest of the algorithm.
    case unknown

    /// - Parameter algorithm: the algorithm that the list names; nil if the text has to tell it.
    init(_ text: some StringProtocol, _ algorithm: Checksum.Algorithm? = nil) {
        var text = String(text).trimmingBlanks
        if text.utf8.count > 1, text.hasPrefix("\""), text.hasSuffix("\"") {
            text = String(text.dropFirst().dropLast())
        }
        if MissingValue.isOne(text) {
            self = .none
        } else if text.utf8.contains(0x20) {
            self = Self.several(text.split(separator: " "), algorithm)
        } else {
            self = Self.one(text, algorithm)
        }
    }

    /// The digest, if there is exactly one.
    var digest: Checksum? { if case .digests(let all) = self, all.count == 1 { all[0] } else { nil } }

    private static func several(_ texts: [Substring], _ algorithm: Checksum.Algorithm?) -> SpelledDigest {
        var digests: [Checksum] = []
        for text in texts {
            guard text.contains("-"), let digest = one(String(text), algorithm).digest, digests.add(digest) else {
                return .unknown
            }
        }
        return .digests(digests)
    }

    private static func one(_ text: String, _ algorithm: Checksum.Algorithm?) -> SpelledDigest {
        if let end = text.firstIndex(where: { ":=-".contains($0) }), text.index(after: end) != text.endIndex,
            text[end] != "=" || !isBase64End(text[end...])
        {
            let name = String(text[..<end])
            let value = String(text[text.index(after: end)...])
            if let other = DigestWord.unsupported(name) { return .unsupported(other) }
            // `sha2-256:HEX`, `sha-256=HEX`
            if text[end] == "-", let second = value.firstIndex(where: { ":=".contains($0) }),
                let named = Checksum.Algorithm(member: name + "-" + value[..<second])
                    ?? Checksum.Algorithm(listed: name + "-" + value[..<second])
            {
                let rest = value[value.index(after: second)...]
                if !rest.isEmpty, algorithm == nil || algorithm == named { return plain(rest, named) }
            }
            if let named = Checksum.Algorithm(member: name) ?? Checksum.Algorithm(listed: name) {
                return algorithm == nil || algorithm == named ? plain(value[...], named) : .unknown
            }
            return .unknown
        }
        return plain(text[...], algorithm)
    }

    /// True for the one or two signs at the end of Base64.
    private static func isBase64End(_ text: Substring) -> Bool { text == "=" || text == "==" }

    private static func plain(_ text: Substring, _ algorithm: Checksum.Algorithm?) -> SpelledDigest {
        let isHex = text.utf8.allSatisfy { $0.hexValue != nil }
        let count = text.utf8.count
        if isHex {
            if let algorithm = algorithm ?? Checksum.Algorithm(digits: count),
                let digest = Checksum(listed: algorithm, hex: text)
            {
                return .digests([digest])
            }
            if let found = multihash(text) {
                if case .digests(let all) = found, let algorithm, all[0].algorithm != algorithm { return .unknown }
                return found
            }
        }
        // Any word of 22 letters would be an MD5.
        if algorithm != nil || text.hasSuffix("="), let bytes = base64(text),
            let algorithm = algorithm ?? Checksum.Algorithm(digits: bytes.count * 2),
            let digest = Checksum(listed: algorithm, hex: Digester.hex(bytes))
        {
            return .digests([digest])
        }
        return .unknown
    }

    /// The bytes of Base64 as long as a digest, also with the letters for URLs and without padding.
    private static func base64(_ text: Substring) -> [UInt8]? {
        guard (22...88).contains(text.utf8.count) else { return nil }
        var plain = String(text).replacing("-", with: "+").replacing("_", with: "/")
        while plain.utf8.count % 4 != 0 { plain += "=" }
        guard let data = Data(base64Encoded: plain), [16, 20, 28, 32, 48, 64].contains(data.count) else { return nil }
        return [UInt8](data)
    }

    /// A multihash: the code of the algorithm and the length in bytes are in front of the digest.
    private static func multihash(_ text: Substring) -> SpelledDigest? {
        let lower = text.lowercased()
        let codes: [(String, Checksum.Algorithm?)] = [
            ("1220", .sha256), ("1340", .sha512), ("1114", .sha1), ("2030", .sha384), ("d50110", .md5),
            ("c0e40240", .blake2b), ("1e20", nil),
        ]
        for (code, algorithm) in codes where lower.hasPrefix(code) {
            let hex = lower.dropFirst(code.utf8.count)
            guard let algorithm else { return hex.utf8.count == 64 ? .unsupported("blake3") : nil }
            if let digest = Checksum(listed: algorithm, hex: hex) { return .digests([digest]) }
        }
        return nil
    }
}

/// The words of tables for a value that is not there.
enum MissingValue {
    /// True for an empty text, `NA`, `nan`, `None`, `null` and `-`.
    static func isOne(_ text: some StringProtocol) -> Bool {
        guard text.utf8.count <= 5 else { return false }
        return ["", "na", "n/a", "#n/a", "nan", "<na>", "none", "null", "nil", "-"].contains(text.lowercased())
    }
}

/// The names of digests in lists: columns, members, headings and file names.
enum DigestWord {
    private static let others: Set<String> = [
        "blake3", "b3", "b3sum", "b3sums", "crc", "crc32", "crc32c", "crc64", "crc64nvme", "adler32", "xxh32", "xxh64",
        "xxh3", "xxh128", "xxhash", "tiger", "whirlpool", "rmd160", "ripemd160", "sm3", "streebog256", "streebog512",
        "gost",
        "blake2s", "blake2s256", "blake2b256", "blake2b160", "blake2b384", "md4", "md2", "sha3", "sha3224", "sha3256",
        "sha3384",
        "sha3512", "shake128", "shake256", "keccak256", "sha512256", "sha512224", "sha512/256", "murmur3", "ed2k",
        "tth", "btih",
        "skein512", "k12",
    ]

    /// The usual name of an algorithm that is not supported; nil for any other word.
    static func unsupported(_ name: String) -> String? {
        let word = plain(name)
        guard others.contains(word) else {
            return word == "blake2b" && !Checksum.Algorithm.hasBLAKE2 ? "blake2b" : nil
        }
        return word == "b3" || word.hasPrefix("b3sum") ? "blake3" : word
    }

    /// Lower case, without `-`, `_`, blanks and brackets.
    static func plain(_ name: String) -> String {
        name.lowercased().filter { character in
            switch character {
            case "_", "-", " ", ".", ":", "(", ")", "[", "]": false
            default: true
            }
        }
    }

    private static let around = [
        "checksums", "checksum", "digest", "digests", "sums", "sum", "hash", "hashes", "file", "computed", "supplied",
        "package",
        "content", "archive", "hex", "base64", "b64", "value", "download", "source", "src", "tarball", "data", "object",
        "item",
    ]

    enum Meaning: Hashable {
        case algorithm(Checksum.Algorithm)
        /// A digest whose text tells the algorithm. False if it may as well be something else, such as a number.
        case any(isCertain: Bool)
        /// A digest of at least 64 digits. Shorter values are something else, such as a commit of git.
        case long
        /// The name of the algorithm of another column.
        case name
        case unsupported(String)
    }

    /// Reads a column, member or word such as `md5sum`, `checksum_md5`, `file_sha256` or `integrity`; nil for any other.
    static func meaning(of name: String) -> Meaning? {
        let word = plain(name)
        switch word {
        case "checksum", "checksums", "filechecksum", "checksumvalue": return .any(isCertain: true)
        case "hash", "digest", "hashes", "digests", "integrity", "filehash", "filedigest", "contenthash", "multihash",
            "etagmd5", "hashvalue", "digestvalue", "shasum":
            return .any(isCertain: false)
        case "checksumtype", "checksumalgorithm", "hashtype", "hashalgorithm", "checksummethod", "digestalgorithm",
            "checksumalgo", "hashalgo", "hashmethod", "hashfunction", "digesttype":
            return .name
        case "sha", "sum": return .long
        case "b2", "b3": return nil
        default: break
        }
        if let algorithm = Checksum.Algorithm(listed: word) { return .algorithm(algorithm) }
        if let other = unsupported(word) { return .unsupported(other) }
        guard word.utf8.count <= 40, word.utf8.contains(where: \.isASCIIDigit) else { return nil }
        var rest = word
        while let part = around.first(where: { rest.hasPrefix($0) && rest.utf8.count > $0.utf8.count }) {
            rest = String(rest.dropFirst(part.count))
        }
        while let part = around.first(where: { rest.hasSuffix($0) && rest.utf8.count > $0.utf8.count }) {
            rest = String(rest.dropLast(part.count))
        }
        guard rest != word, rest != "sha", rest != "b2" else { return nil }
        if let algorithm = Checksum.Algorithm(listed: rest) { return .algorithm(algorithm) }
        return unsupported(rest).map { .unsupported($0) }
    }
}
