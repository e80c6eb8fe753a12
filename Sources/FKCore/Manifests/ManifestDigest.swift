import FKMiddleware

/// A digest from a list. It always has the length of its algorithm and is in lower case.
public struct ManifestDigest: Sendable, Hashable, CustomStringConvertible {
    /// The digest algorithms of lists.
    public enum Algorithm: String, Sendable, Hashable, CaseIterable {
        /// Shows damage, not forgery.
        case md5
        /// Shows damage, not forgery.
        case sha1 = "sha-1"
        /// SHA-1 of `blob LENGTH\0` and the bytes: git's id of a file.
        case gitBlob = "git-blob-sha-1"
        /// SHA-2 with 28 bytes.
        case sha224 = "sha-224"
        /// SHA-2 with 32 bytes.
        case sha256 = "sha-256"
        /// SHA-2 with 48 bytes.
        case sha384 = "sha-384"
        /// SHA-2 with 64 bytes.
        case sha512 = "sha-512"

        /// The length of the digest in bytes.
        public var byteCount: Int {
            switch self {
            case .md5: 16
            case .sha1, .gitBlob: 20
            case .sha224: 28
            case .sha256: 32
            case .sha384: 48
            case .sha512: 64
            }
        }

        /// Parses a name such as `sha256`, `SHA-256`, `SHA2-256` or `sha_256`. Returns nil for an unknown name and
        /// for `gitBlob`.
        public init?(name: String) {
            switch name.lowercased().utf8.filter({ $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_") }) {
            case Array("md5".utf8): self = .md5
            case Array("sha1".utf8), Array("sha".utf8): self = .sha1
            case Array("sha224".utf8), Array("sha2224".utf8): self = .sha224
            case Array("sha256".utf8), Array("sha2256".utf8): self = .sha256
            case Array("sha384".utf8), Array("sha2384".utf8): self = .sha384
            case Array("sha512".utf8), Array("sha2512".utf8): self = .sha512
            default: return nil
            }
        }

        /// Returns the algorithm for a number of hexadecimal digits; SHA-2 if several match, nil if none does.
        public init?(digits: Int) {
            let all: [Self] = [.md5, .sha1, .sha224, .sha256, .sha384, .sha512]
            guard let match = all.first(where: { $0.byteCount * 2 == digits }) else { return nil }
            self = match
        }

        /// The strength. A stronger algorithm has a higher number.
        var strength: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    }

    /// The algorithm.
    public let algorithm: Algorithm
    /// The digest in lower-case hexadecimal digits, two for each byte.
    public let hex: String

    /// Creates a digest. Returns nil if `hex` is not a digest of `algorithm`.
    public init?(_ algorithm: Algorithm, hex: some StringProtocol) {
        guard hex.utf8.count == algorithm.byteCount * 2, hex.utf8.allSatisfy({ $0.hexValue != nil }) else { return nil }
        self.algorithm = algorithm
        self.hex = hex.lowercased()
    }

    /// The checksum for a task's options.
    public var checksum: Checksum? {
        // Both types name an algorithm by the same text.
        Checksum.Algorithm(rawValue: algorithm.rawValue).flatMap { try? Checksum($0, hex: hex) }
    }

    /// The form `ALG=HEX`.
    public var description: String { "\(algorithm.rawValue)=\(hex)" }

    /// The fault of a text that is not a digest of the algorithm.
    package static func fault(in text: some StringProtocol, _ algorithm: Algorithm) -> String {
        let digits = algorithm.byteCount * 2
        guard text.utf8.count == digits else {
            return "a \(algorithm.rawValue) digest has \(digits) hexadecimal digits, and \(text.utf8.count) characters "
                + "are given"
        }
        return "a \(algorithm.rawValue) digest has only hexadecimal digits"
    }

    /// The lower-case hexadecimal digits of bytes, two for each byte.
    package static func hex(_ bytes: some Collection<UInt8>) -> String { Digester.hex(bytes) }

    /// The bytes of hexadecimal digits; nil for any other text.
    package static func bytes(hex: some StringProtocol) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(hex.utf8.count / 2)
        var high: UInt8?
        for digit in hex.utf8 {
            guard let value = digit.hexValue else { return nil }
            if let first = high {
                result.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? result : nil
    }
}

extension [ManifestDigest] {
    /// Inserts a digest in order of strength.
    ///
    /// - Returns: false if the list contains another digest of the same algorithm.
    package mutating func add(_ digest: ManifestDigest) -> Bool {
        if let same = first(where: { $0.algorithm == digest.algorithm }) { return same == digest }
        let place = firstIndex { $0.algorithm.strength < digest.algorithm.strength } ?? endIndex
        insert(digest, at: place)
        return true
    }
}
