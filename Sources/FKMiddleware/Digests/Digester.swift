import Foundation

#if canImport(CLibcrypto)
    import CLibcrypto
#else
    import CommonCrypto
    import CryptoKit
#endif

/// Computes one digest over bytes that arrive in pieces. It is not thread-safe: use it from one thread at a time.
public final class Digester {
    /// The algorithm of the digest.
    public let algorithm: Checksum.Algorithm
    /// Set for an algorithm that is no digest.
    private var cyclic: CyclicSum?

    #if canImport(CLibcrypto)
        private let context: OpaquePointer

        /// Starts a digest of zero bytes.
        ///
        /// - Parameter length: the length of the whole file in bytes. Only `.gitBlob` needs it: without a length, or
        ///   with another one, its digest is that of no file. The default is 0.
        public init(_ algorithm: Checksum.Algorithm, length: Int64 = 0) {
            self.algorithm = algorithm
            cyclic = CyclicSum(algorithm)
            context = EVP_MD_CTX_new()
            if cyclic == nil { EVP_DigestInit_ex(context, Self.method(algorithm), nil) }
            if algorithm == .gitBlob { Self.blobHead(length).withUnsafeBytes { update($0) } }
        }

        deinit {
            EVP_MD_CTX_free(context)
        }

        /// Adds bytes.
        public func update(_ bytes: UnsafeRawBufferPointer) {
            guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
            guard cyclic?.update(bytes) == nil else { return }
            EVP_DigestUpdate(context, base, bytes.count)
        }

        /// The digest of the bytes so far, as raw bytes. More bytes may follow.
        public func bytes() -> [UInt8] {
            if let cyclic { return cyclic.bytes }
            let copy = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(copy) }
            EVP_MD_CTX_copy_ex(copy, context)
            return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
                var length: UInt32 = 0
                EVP_DigestFinal_ex(copy, buffer.baseAddress, &length)
                count = Int(length)
            }
        }

        /// Looked up once, with the first digest of its kind: libcrypto searches its providers, which takes longer than the
        /// digest of a URL. The values are never freed and never changed, so any thread may use them without a lock.
        private static func method(_ algorithm: Checksum.Algorithm) -> OpaquePointer? {
            switch algorithm {
            case .md5: md5
            case .sha1, .gitBlob: sha1
            case .sha224: sha224
            case .sha256: sha256
            case .sha384: sha384
            case .sha512: sha512
            case .blake2b: blake2b
            case .crc32c, .crc64nvme: nil
            }
        }

        private nonisolated(unsafe) static let md5 = EVP_MD_fetch(nil, "md5", nil)
        private nonisolated(unsafe) static let sha1 = EVP_MD_fetch(nil, "sha-1", nil)
        private nonisolated(unsafe) static let sha224 = EVP_MD_fetch(nil, "sha-224", nil)
        private nonisolated(unsafe) static let sha256 = EVP_MD_fetch(nil, "sha-256", nil)
        private nonisolated(unsafe) static let sha384 = EVP_MD_fetch(nil, "sha-384", nil)
        private nonisolated(unsafe) static let sha512 = EVP_MD_fetch(nil, "sha-512", nil)
        private nonisolated(unsafe) static let blake2b = EVP_MD_fetch(nil, "blake2b-512", nil)

        /// The digest of one complete buffer.
        private static func bytes(of bytes: UnsafeRawBufferPointer, _ algorithm: Checksum.Algorithm) -> [UInt8] {
            guard algorithm.isDigest, algorithm != .gitBlob else { return whole(bytes, algorithm) }
            return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
                var length: UInt32 = 0
                EVP_Digest(
                    bytes.baseAddress, bytes.count, buffer.baseAddress, &length, method(algorithm), nil)
                count = Int(length)
            }
        }
    #else
        private var function: any HashFunction
        /// CryptoKit has no SHA-224.
        private var short: SHA224?

        /// Starts a digest of zero bytes.
        ///
        /// - Parameter length: the length of the whole file in bytes. Only `.gitBlob` needs it: without a length, or
        ///   with another one, its digest is that of no file. The default is 0.
        public init(_ algorithm: Checksum.Algorithm, length: Int64 = 0) {
            self.algorithm = algorithm
            function =
                switch algorithm {
                case .md5: Insecure.MD5()
                case .sha1, .gitBlob: Insecure.SHA1()
                case .sha224, .sha256: SHA256()
                case .sha384: SHA384()
                case .sha512: SHA512()
                // No text makes a BLAKE2b here (`Checksum.Algorithm.hasBLAKE2`).
                case .crc32c, .crc64nvme, .blake2b: Insecure.MD5()
                }
            cyclic = CyclicSum(algorithm)
            if algorithm == .sha224 { short = SHA224() }
            if algorithm == .gitBlob { Self.blobHead(length).withUnsafeBytes { update($0) } }
        }

        /// Adds bytes.
        public func update(_ bytes: UnsafeRawBufferPointer) {
            guard cyclic?.update(bytes) == nil else { return }
            if short != nil { short?.update(bytes) } else { function.update(bufferPointer: bytes) }
        }

        private static func bytes(of bytes: UnsafeRawBufferPointer, _ algorithm: Checksum.Algorithm) -> [UInt8] {
            whole(bytes, algorithm)
        }

        /// The digest of the bytes so far, as raw bytes. More bytes may follow.
        public func bytes() -> [UInt8] {
            if let cyclic { return cyclic.bytes }
            func finish(_ function: some HashFunction) -> [UInt8] { Array(function.finalize()) }
            return short?.bytes() ?? finish(function)
        }
    #endif

    /// The bytes that git puts before the file.
    private static func blobHead(_ length: Int64) -> [UInt8] { Array("blob \(length)".utf8) + [0] }

    private static func whole(_ bytes: UnsafeRawBufferPointer, _ algorithm: Checksum.Algorithm) -> [UInt8] {
        let digester = Digester(algorithm, length: Int64(bytes.count))
        digester.update(bytes)
        return digester.bytes()
    }

    /// The digest of the bytes so far, as lower-case hexadecimal digits.
    public func hex() -> String { Self.hex(bytes()) }

    /// Bytes as lower-case hexadecimal digits, two per byte.
    public static func hex(_ bytes: some Collection<UInt8>) -> String {
        let digits: StaticString = "0123456789abcdef"
        return String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
            var index = 0
            for byte in bytes {
                buffer[index] = digits.utf8Start[Int(byte >> 4)]
                buffer[index + 1] = digits.utf8Start[Int(byte & 15)]
                index += 2
            }
            return index
        }
    }

    /// The digest of a text's UTF-8 bytes.
    public static func bytes(of text: String, _ algorithm: Checksum.Algorithm) -> [UInt8] {
        var text = text
        return text.withUTF8 { bytes(of: UnsafeRawBufferPointer($0), algorithm) }
    }

    /// Reads a whole file, 1 MiB at a time, and returns its digest as lower-case hexadecimal digits. It blocks the
    /// calling thread.
    ///
    /// - Throws: the system's error when the file cannot be read.
    public static func hex(ofFile url: URL, _ algorithm: Checksum.Algorithm) throws -> String {
        let handle = try FileHandle(forReadingFrom: url)
        defer { try? handle.close() }
        let digester = Digester(algorithm, length: Int64(try handle.seekToEnd()))
        try handle.seek(toOffset: 0)
        while let chunk = try handle.read(upToCount: 1 << 20), !chunk.isEmpty {
            chunk.withUnsafeBytes { digester.update($0) }
        }
        return digester.hex()
    }
}

#if !canImport(CLibcrypto)
    /// SHA-224 of CommonCrypto.
    private struct SHA224 {
        private var context = CC_SHA256_CTX()

        init() { CC_SHA224_Init(&context) }

        mutating func update(_ bytes: UnsafeRawBufferPointer) {
            CC_SHA224_Update(&context, bytes.baseAddress, CC_LONG(bytes.count))
        }

        func bytes() -> [UInt8] {
            var copy = context
            return [UInt8](unsafeUninitializedCapacity: Int(CC_SHA224_DIGEST_LENGTH)) { buffer, count in
                CC_SHA224_Final(buffer.baseAddress, &copy)
                count = Int(CC_SHA224_DIGEST_LENGTH)
            }
        }
    }
#endif
