/// A digest that a file must have, as given by `--checksum` or to `ChecksumMiddleware`.
public struct Checksum: Codable, Sendable, Hashable, CustomStringConvertible {
    /// The supported algorithms. md5 and sha-1 detect damage but not forgery.
    public enum Algorithm: String, Codable, Sendable, CaseIterable, Hashable {
        /// MD5, 16 bytes (RFC 1321).
        case md5
        /// SHA-1, 20 bytes (RFC 3174).
        case sha1 = "sha-1"
        /// SHA-1 of `blob LENGTH\0` and the bytes, 20 bytes: git's id of a file.
        case gitBlob = "git-blob-sha-1"
        /// SHA-224, 28 bytes (FIPS 180-4).
        case sha224 = "sha-224"
        /// SHA-256, 32 bytes (FIPS 180-4).
        case sha256 = "sha-256"
        /// SHA-384, 48 bytes (FIPS 180-4).
        case sha384 = "sha-384"
        /// SHA-512, 64 bytes (FIPS 180-4).
        case sha512 = "sha-512"
        /// BLAKE2b, 64 bytes (RFC 7693), which `b2sum` writes. Apple's systems have no function for it: there it is refused.
        case blake2b
        /// CRC-32C, 4 bytes (RFC 3720), which stores send. It detects damage but not forgery.
        case crc32c
        /// CRC-64/NVME, 8 bytes, which S3 sends. It detects damage but not forgery.
        case crc64nvme

        /// The algorithms in messages and tables. `gitBlob` is left out, because only hubs use it, and so
        /// are the checksums of stores.
        package static let usual: [Self] =
            [.md5, .sha1, .sha224, .sha256, .sha384, .sha512] + (hasBLAKE2 ? [.blake2b] : [])

        /// True if BLAKE2b can be computed here.
        #if canImport(CLibcrypto)
            package static let hasBLAKE2 = true
        #else
            package static let hasBLAKE2 = false
        #endif

        /// Returns the algorithm for a number of hexadecimal digits: SHA-1 for 40, SHA-512 for 128, nil if there is none.
        public init?(digits: Int) {
            guard let match = Self.usual.first(where: { $0.byteCount * 2 == digits }) else { return nil }
            self = match
        }

        /// The length of the digest in bytes: 4 to 64.
        public var byteCount: Int {
            switch self {
            case .crc32c: 4
            case .crc64nvme: 8
            case .md5: 16
            case .sha1, .gitBlob: 20
            case .sha224: 28
            case .sha256: 32
            case .sha384: 48
            case .sha512, .blake2b: 64
            }
        }

        /// False for a checksum of a store, which two different files may well have in common.
        package var isDigest: Bool { byteCount >= 16 }

        /// Accepts `sha256`, `SHA-256`, `sha_256` and the like; nil for an unknown name.
        public init?(name: String) {
            let plain = name.lowercased().filter { $0 != "-" && $0 != "_" }
            guard let match = Self.allCases.first(where: { $0.plainName == plain }), match != .blake2b || Self.hasBLAKE2
            else { return nil }
            self = match
        }

        /// The name without hyphens: `sha256`.
        package var plainName: String { rawValue.filter { $0 != "-" } }
    }

    /// The algorithm of the digest.
    public var algorithm: Algorithm
    /// Lower-case hexadecimal digits, two per byte.
    public var hex: String

    /// Creates a checksum from hexadecimal digits in either case.
    ///
    /// - Throws: `.invalidArgument` when `hex` does not have the form of a digest of `algorithm`.
    public init(_ algorithm: Algorithm, hex: String) throws(DownloadError) {
        guard let digits = Self.digits(hex, algorithm.byteCount * 2) else {
            let count = algorithm.byteCount * 2
            let given =
                hex.utf8.count == count
                ? "another character was given" : hex.count == 1 ? "1 was given" : "\(hex.count) were given"
            throw DownloadError(
                .invalidArgument, "A \(algorithm.rawValue) digest has \(count) hexadecimal digits; \(given).")
        }
        self.algorithm = algorithm
        self.hex = digits
    }

    /// Hexadecimal digits in lower case; nil for any other text.
    private static func digits(_ hex: String, _ count: Int) -> String? {
        var hex = hex
        return hex.withUTF8 { bytes -> String? in
            var isLower = true
            guard bytes.count == count else { return nil }
            for byte in bytes {
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): break
                case UInt8(ascii: "A")...UInt8(ascii: "F"): isLower = false
                default: return nil
                }
            }
            let digits = String(decoding: bytes, as: UTF8.self)
            return isLower ? digits : digits.lowercased()
        }
    }

    /// Parses `ALG=HEX`, for example `sha-256=2cf2…`, or `ALG:HEX`, as GitHub and registries write it.
    ///
    /// - Throws: `.invalidArgument` for any other text.
    public init(parsing text: String) throws(DownloadError) {
        let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "=" || $0 == ":" }
        guard parts.count == 2, let algorithm = Algorithm(name: String(parts[0])) else {
            let names = Algorithm.usual.map(\.rawValue).joined(separator: ", ")
            throw DownloadError(.invalidArgument, "A checksum is written ALG=HEX with ALG one of \(names).")
        }
        try self.init(algorithm, hex: String(parts[1]))
    }

    /// `ALG=HEX`, as `init(parsing:)` reads it.
    public var description: String { "\(algorithm.rawValue)=\(hex)" }
}
