import FKMiddleware

extension Checksum.Algorithm {
    /// The algorithms of lists, the weakest first. The checksums of stores are none of them.
    private static let ofLists: [Self] = [
        .md5, .sha1, .gitBlob, .sha224, .sha256, .sha384, .blake2b, .sha512,
    ]

    /// Reads a name such as `sha256`, `SHA-256`, `SHA2-256` or `sha_256`; nil for another one, and for `gitBlob`.
    package init?(listed name: String) {
        let plain = name.lowercased().filter { $0 != "-" && $0 != "_" }
        let word =
            switch plain {
            case "sha": "sha1"
            case "blake2", "b2", "blake2b512": "blake2b"
            case _ where plain.count == 7 && plain.hasPrefix("sha2"): "sha" + plain.dropFirst(4)
            default: plain
            }
        guard let match = Self.usual.first(where: { $0.plainName == word }) else { return nil }
        self = match
    }

    /// Reads the name of a member of a list, which is written as it is here.
    init?(member name: String) {
        guard let match = Self(rawValue: name), match.isListed else { return nil }
        self = match
    }

    /// False for a checksum of a store.
    var isListed: Bool { Self.ofLists.contains(self) }
    /// The strength. A stronger algorithm has a higher number.
    var strength: Int { Self.ofLists.firstIndex(of: self) ?? 0 }
}

extension Checksum {
    /// Returns nil if `hex` is not a digest of `algorithm`.
    package init?(listed algorithm: Algorithm, hex: some StringProtocol) {
        guard let digest = try? Checksum(algorithm, hex: String(hex)) else { return nil }
        self = digest
    }

    /// The fault of a text that is not a digest of the algorithm.
    static func fault(in text: some StringProtocol, _ algorithm: Algorithm) -> String {
        let digits = algorithm.byteCount * 2
        guard text.utf8.count == digits else {
            return "a \(algorithm.rawValue) digest has \(digits) hexadecimal digits, and \(text.utf8.count) characters "
                + "are given"
        }
        return "a \(algorithm.rawValue) digest has only hexadecimal digits"
    }

    /// The bytes of hexadecimal digits; nil for any other text.
    static func bytes(hex: some StringProtocol) -> [UInt8]? {
        let digits = hex.utf8.compactMap(\.hexValue)
        guard digits.count == hex.utf8.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}

extension [Checksum] {
    /// Inserts a digest in order of strength. Returns false if the list contains another digest of the same algorithm.
    package mutating func add(_ digest: Checksum) -> Bool {
        if let same = first(where: { $0.algorithm == digest.algorithm }) { return same == digest }
        insert(digest, at: firstIndex { $0.algorithm.strength < digest.algorithm.strength } ?? endIndex)
        return true
    }
}
