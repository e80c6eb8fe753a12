import Foundation

#if canImport(CLibcrypto)
    import CLibcrypto
#else
    import CryptoKit
#endif

/// Signatures of Ed25519 (RFC 8032).
enum Ed25519 {
    static func verify(_ signature: [UInt8], of bytes: [UInt8], key: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { verify(signature, of: $0, key: key) }
    }

    #if canImport(CLibcrypto)
        static func verify(_ signature: [UInt8], of bytes: UnsafeRawBufferPointer, key: [UInt8]) -> Bool {
            guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, key, key.count) else { return false }
            defer { EVP_PKEY_free(key) }
            guard let context = EVP_MD_CTX_new() else { return false }
            defer { EVP_MD_CTX_free(context) }
            var none: UInt8 = 0
            let base = bytes.bindMemory(to: UInt8.self).baseAddress
            return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
                && withUnsafePointer(to: &none) {
                    EVP_DigestVerify(context, signature, signature.count, base ?? $0, bytes.count) == 1
                }
        }
    #else
        static func verify(_ signature: [UInt8], of bytes: UnsafeRawBufferPointer, key: [UInt8]) -> Bool {
            guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: key) else { return false }
            return key.isValidSignature(signature, for: Data(bytes))
        }
    #endif
}

extension SignedContent {
    /// Reads the bytes in portions.
    ///
    /// - Throws: a fault if the file cannot be read.
    private func forEachPortion(_ take: (UnsafeRawBufferPointer) -> Void) throws(SignatureKey.Fault) {
        switch self {
        case .bytes(let bytes): bytes.withUnsafeBytes(take)
        case .file(let path):
            let descriptor = try Self.open(path)
            defer { close(descriptor) }
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
            defer { buffer.deallocate() }
            while true {
                let count = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count >= 0 else { throw Self.unreadable() }
                if count == 0 { return }
                take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
    }

    /// All bytes at once: a file is mapped.
    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) throws(SignatureKey.Fault) -> Value {
        switch self {
        case .bytes(let bytes): return bytes.withUnsafeBytes(body)
        case .file(let path):
            guard let data = try? Data(contentsOf: URL(fileURLWithPath: path), options: .alwaysMapped) else {
                throw Self.unreadable()
            }
            return data.withUnsafeBytes(body)
        }
    }

    static func open(_ path: String) throws(SignatureKey.Fault) -> Int32 {
        let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable() }
        return descriptor
    }

    private static func unreadable() -> SignatureKey.Fault {
        SignatureKey.Fault("it cannot be read: \(String(cString: strerror(errno)))", isUnknown: true)
    }

    /// The BLAKE2b-512 (RFC 7693) of the bytes.
    func blake2b512() throws(SignatureKey.Fault) -> [UInt8] {
        #if canImport(CLibcrypto)
            let context = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(context) }
            let method = EVP_MD_fetch(nil, "BLAKE2B-512", nil)
            defer { EVP_MD_free(method) }
            guard EVP_DigestInit_ex(context, method, nil) == 1 else {
                throw SignatureKey.Fault("libcrypto has no BLAKE2b-512", isUnknown: true)
            }
            try forEachPortion { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
            return [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
                var length: UInt32 = 0
                EVP_DigestFinal_ex(context, buffer.baseAddress, &length)
                count = Int(length)
            }
        #else
            throw SignatureKey.Fault(
                "its signature needs BLAKE2b, which this system lacks: sign with minisign -l", isUnknown: true)
        #endif
    }
}
