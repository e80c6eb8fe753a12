import FKMiddleware
import Foundation

/// The digest of the whole file that a server sends along.
///
/// | field | rule | counts |
/// | --- | --- | --- |
/// | `Repr-Digest` | RFC 9530 section 3 | always: it is of the whole representation, also in a 206 |
/// | `Content-Digest` | RFC 9530 section 2 | with 200: it is of this message's content |
/// | `Digest` | RFC 3230 section 4.3.2 | with 200: servers differ in what they take for the instance of a 206 |
/// | `Content-MD5` | RFC 2616 section 14.15 | with 200 |
///
/// Of several digests sha-256 is preferred, then sha-512, sha-1, md5. What cannot be read is passed over.
package enum ServerDigest {
    private static let preferred: [Checksum.Algorithm] = [.sha256, .sha512, .sha1, .md5]

    package static func parse(_ head: ResponseHead) -> Checksum? {
        // Nearly no answer has one: look before anything is built.
        guard head.fields.contains(where: { isDigestField($0.name) }) else { return nil }
        var found = structured(head["Repr-Digest"])
        if head.status != 206 {
            found += structured(head["Content-Digest"]) + instance(head["Digest"])
            if let md5 = head["Content-MD5"].flatMap({ checksum(.md5, base64: $0[...]) }) { found.append(md5) }
        }
        return preferred.lazy.compactMap { algorithm in found.first { $0.algorithm == algorithm } }.first
    }

    private static func isDigestField(_ name: String) -> Bool {
        switch name.utf8.count {
        case 6: name.caseInsensitiveEquals("Digest")
        case 11: name.caseInsensitiveEquals("Repr-Digest") || name.caseInsensitiveEquals("Content-MD5")
        case 14: name.caseInsensitiveEquals("Content-Digest")
        default: false
        }
    }

    /// `sha-256=:base64:, sha-512=:base64:` (a dictionary of byte sequences, RFC 8941 section 3.2).
    private static func structured(_ value: String?) -> [Checksum] {
        members(value).compactMap { name, text in
            let value = text.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
            guard value.count >= 2, value.first == ":", value.last == ":" else { return nil }
            return algorithm(name).flatMap { checksum($0, base64: value.dropFirst().dropLast()) }
        }
    }

    /// `SHA-256=base64,MD5=base64`; `SHA` is SHA-1.
    private static func instance(_ value: String?) -> [Checksum] {
        members(value).compactMap { name, text in
            algorithm(name).flatMap { checksum($0, base64: text[...]) }
        }
    }

    private static func members(_ value: String?) -> [(name: String, value: String)] {
        (value ?? "").split(separator: ",").compactMap { member in
            let parts = member.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { return nil }
            return (
                parts[0].trimmingCharacters(in: .whitespaces), parts[1].trimmingCharacters(in: .whitespaces)
            )
        }
    }

    private static func algorithm(_ name: String) -> Checksum.Algorithm? {
        name.lowercased() == "sha" ? .sha1 : Checksum.Algorithm(name: name)
    }

    private static func checksum(_ algorithm: Checksum.Algorithm, base64: Substring) -> Checksum? {
        guard let bytes = Data(base64Encoded: base64.trimmingCharacters(in: .whitespaces)),
            bytes.count == algorithm.byteCount
        else { return nil }
        return try? Checksum(algorithm, hex: bytes.map { String(format: "%02x", $0) }.joined())
    }
}
