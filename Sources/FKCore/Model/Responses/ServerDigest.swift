import FKMiddleware
import Foundation

/// The digest of the whole file in a response.
///
/// | field | rule | used |
/// | --- | --- | --- |
/// | `Repr-Digest` | RFC 9530 section 3 | always: it covers the whole representation, also in a 206 |
/// | `Content-Digest` | RFC 9530 section 2 | with 200: it covers the content of this message |
/// | `Digest` | RFC 3230 section 4.3.2 | with 200: servers differ about the instance of a 206 |
/// | `Unencoded-Digest` | draft-ietf-httpbis-unencoded-digest | always, if the body has no content coding |
/// | `Content-MD5` | RFC 2616 section 14.15, Azure | with 200: it covers the range of a 206 |
/// | `x-ms-blob-content-md5` | Azure | always |
/// | `x-goog-hash` | Google Cloud Storage: CRC-32C, MD5 | always, unless the server decodes what it has stored |
/// | `x-amz-checksum-*` | S3: CRC-32C, CRC-64/NVME, SHA-1, SHA-256 | with 200, unless the type is COMPOSITE |
/// | `X-Linked-ETag` | Hugging Face hubs | also on a redirect: a SHA-256, if `X-Linked-Size` is the file's length |
///
/// One rule applies to all fields: the strongest supported algorithm is used, whichever field contains it. If two
/// fields have the same algorithm, the upper one in the table is used. Entity tags are never digests. Within a field the last value of an algorithm
/// counts. A field with a malformed part, such as a digest of the wrong length, is ignored as a whole. An unknown algorithm
/// may have a value of any type.
package enum ServerDigest {
    /// The strongest digest in a response head; nil if there is none.
    package static func parse(_ head: ResponseHead) -> Checksum? {
        // Most responses have no digest, so this check runs before anything is allocated.
        guard !head.carried.isEmpty || head.fields.indices.contains(where: { isDigestField(head.fields[$0].name) })
        else { return nil }
        var found = structured(head["Repr-Digest"])
        let isPart = head.status == 206 || head.isPart
        if !isPart { found += structured(head["Content-Digest"]) + instance(head["Digest"]) }
        if head.contentCoding == nil { found += structured(head["Unencoded-Digest"]) }
        for name in isPart ? [blobMD5] : ["Content-MD5", blobMD5] {
            if let md5 = head[name].flatMap({ checksum(.md5, base64: $0) }) { found.append(md5) }
        }
        // A file that is stored with gzip and sent without has the hash of other bytes.
        let stored = head["x-goog-stored-content-encoding"] ?? "identity"
        if stored == "identity" || stored == head.contentCoding {
            found += instance(head["x-goog-hash"], isStore: true)
        }
        if !isPart, head["x-amz-checksum-type"]?.uppercased() != "COMPOSITE" {
            found += stores.compactMap { algorithm in
                head["x-amz-checksum-" + algorithm.plainName].flatMap { checksum(algorithm, base64: $0) }
            }
        }
        if let linked = linked(head) { found.append(linked) }
        return found.reduce(nil, stronger)
    }

    private static let blobMD5 = "x-ms-blob-content-md5"
    /// The algorithms of S3.
    private static let stores: [Checksum.Algorithm] = [.sha256, .sha1, .crc64nvme, .crc32c]

    /// The digest of a file in LFS.
    private static func linked(_ head: ResponseHead) -> Checksum? {
        let fields = head.carried + head.fields
        func value(_ name: String) -> String? { fields.last { $0.name.caseInsensitiveEquals(name) }?.value }
        guard let tag = value("X-Linked-ETag"), let size = value("X-Linked-Size").flatMap({ Int64($0) }),
            tag.utf8.count == 66, tag.hasPrefix("\""), tag.hasSuffix("\"")
        else { return nil }
        let total =
            head.status == 206 || head.isPart
            ? head["Content-Range"].flatMap(ContentRange.init)?.total : try? ContentLength.parse(head)
        guard total == size else { return nil }
        return try? Checksum(.sha256, hex: String(tag.dropFirst().dropLast()))
    }

    /// The stronger digest; the first one if both are equally strong.
    package static func stronger(_ one: Checksum?, _ other: Checksum?) -> Checksum? {
        guard let one, let other else { return one ?? other }
        // Among the supported algorithms, the longer digest is the stronger one.
        return other.algorithm.byteCount > one.algorithm.byteCount ? other : one
    }

    private static func isDigestField(_ name: String) -> Bool {
        switch name.utf8.count {
        case 6: name.caseInsensitiveEquals("Digest")
        case 11:
            name.caseInsensitiveEquals("Repr-Digest") || name.caseInsensitiveEquals("Content-MD5")
                || name.caseInsensitiveEquals("x-goog-hash")
        case 13: name.caseInsensitiveEquals("X-Linked-ETag")
        case 14: name.caseInsensitiveEquals("Content-Digest")
        case 16: name.caseInsensitiveEquals("Unencoded-Digest")
        case 19...24: name.lowercased().hasPrefix("x-amz-checksum-") || name.caseInsensitiveEquals(blobMD5)
        default: false
        }
    }

    /// `sha-256=:base64:, sha-512=:base64:`.
    private static func structured(_ value: String?) -> [Checksum] {
        guard let value, let members = StructuredField.dictionary(value) else { return [] }
        var found: [Checksum] = []
        for (key, member) in members.sorted(by: { $0.key < $1.key }) {
            guard let algorithm = algorithm(key) else { continue }
            guard let bytes = member.value.bytes, let checksum = checksum(algorithm, bytes) else { return [] }
            found.append(checksum)
        }
        return found
    }

    /// `SHA-256=base64,MD5=base64`; `SHA` is SHA-1. Empty elements are allowed. The values of unknown algorithms are
    /// not checked.
    ///
    /// - Parameter isStore: true for `x-goog-hash`, where `crc32c` has the same form; the default is false.
    private static func instance(_ value: String?, isStore: Bool = false) -> [Checksum] {
        var found: [Checksum.Algorithm: Checksum] = [:]
        for element in (value ?? "").split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) })
        where !element.isEmpty {
            let parts = element.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { return [] }
            guard let algorithm = isStore && parts[0] == "crc32c" ? .crc32c : algorithm(parts[0]) else { continue }
            guard let checksum = checksum(algorithm, base64: parts[1]) else { return [] }
            found[algorithm] = checksum
        }
        return Array(found.values)
    }

    private static func algorithm(_ name: String) -> Checksum.Algorithm? {
        let found = name.lowercased() == "sha" ? .sha1 : Checksum.Algorithm(name: name)
        return found.flatMap { Checksum.Algorithm.usual.contains($0) ? $0 : nil }
    }

    private static func checksum(_ algorithm: Checksum.Algorithm, base64: String) -> Checksum? {
        Data(base64Encoded: base64).flatMap { checksum(algorithm, Array($0)) }
    }

    private static func checksum(_ algorithm: Checksum.Algorithm, _ bytes: [UInt8]) -> Checksum? {
        guard bytes.count == algorithm.byteCount else { return nil }
        return try? Checksum(algorithm, hex: bytes.map { String(format: "%02x", $0) }.joined())
    }
}
