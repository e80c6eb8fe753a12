import Foundation

/// The signed bytes.
package enum SignedContent: Sendable {
    case bytes([UInt8])
    /// The path of a file, which is read as a whole.
    case file(String)
}

extension SignatureKey {
    /// Why a signature was refused.
    package struct Fault: Error, Hashable {
        /// A clause without a full stop.
        package var reason: String
        /// True if the signature could not be examined, because a program or a file is missing.
        package var isUnknown = false

        init(_ reason: String, isUnknown: Bool = false) {
            self.reason = reason
            self.isUnknown = isUnknown
        }

        /// The error for a file or list.
        ///
        /// - Parameter name: the subject, such as "The list a.txt".
        package func error(of name: String) -> DownloadError {
            DownloadError(isUnknown ? .invalidArgument : .checksumMismatch, "\(name) was refused: \(reason).")
        }
    }
}

extension SignatureKey {
    /// The maximum length of a signature in bytes.
    package static let signatureLimit = 1 << 20

    /// Verifies a signature over bytes.
    ///
    /// - Returns: the signer: `description`, or `openpgp:` and the fingerprint of the key in the key ring that has signed, or
    ///   `sigstore:` and the SHA-256 of the key.
    /// - Throws: `.checksumMismatch` if the signature is not this key's signature of these bytes; `.invalidArgument` if the
    ///   program that verifies it is not installed.
    @discardableResult public func verify(_ signature: [UInt8], of bytes: [UInt8]) throws(DownloadError) -> String {
        do throws(SignatureKey.Fault) { return try prove(signature, .bytes(bytes)) } catch {
            throw error.error(of: "The signature")
        }
    }

    /// Verifies a signature over a file. It blocks the calling thread.
    ///
    /// - Returns: the signer, as `verify(_:of:)`.
    /// - Throws: as `verify(_:of:)`; `.invalidArgument` if the file cannot be read.
    @discardableResult public func verify(_ signature: [UInt8], ofFile file: URL) throws(DownloadError) -> String {
        do throws(SignatureKey.Fault) { return try prove(signature, .file(file.path)) } catch {
            throw error.error(of: "The signature")
        }
    }

    package func prove(_ signature: [UInt8], _ content: SignedContent) throws(SignatureKey.Fault) -> String {
        guard signature.count <= Self.signatureLimit else {
            throw SignatureKey.Fault("its signature is longer than \(Self.signatureLimit >> 20) MiB")
        }
        switch scheme {
        case .minisign:
            try MinisignSignature(signature).prove(content, key: bytes)
            return description
        case .ssh, .openPGP, .sigstore: return try SignatureProgram(scheme).prove(signature, content, by: self)
        }
    }
}

/// A signature of minisign.
///
/// ```text
/// untrusted comment: …
/// base64: `Ed` or `ED`, the key's id (8 bytes), the signature (64 bytes)
/// trusted comment: …
/// base64: the signature of the 64 bytes and the trusted comment
/// ```
///
/// `Ed` signs the bytes, `ED` their BLAKE2b-512. Lines may end in CR LF, as minisign's own reader allows.
struct MinisignSignature: Hashable {
    let isPrehashed: Bool
    let keyID: [UInt8]
    let signature: [UInt8]
    let trustedComment: [UInt8]
    let globalSignature: [UInt8]

    init(_ bytes: [UInt8]) throws(SignatureKey.Fault) {
        var lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false)
            .map { $0.last == 0x0d ? $0.dropLast() : $0 }
        while lines.last?.isEmpty == true { lines.removeLast() }
        guard lines.first?.starts(with: "untrusted comment:".utf8) == true else {
            throw SignatureKey.Fault("its signature is not one of minisign")
        }
        guard lines.count >= 4 else { throw SignatureKey.Fault("its signature is truncated") }
        guard lines.count == 4 else {
            throw SignatureKey.Fault("its signature file has more than one signature, or lines after it")
        }
        guard let first = Self.decode(lines[1]), first.count == 74 else {
            throw SignatureKey.Fault("its signature is truncated or damaged")
        }
        switch first.prefix(2) {
        case [0x45, 0x64]: isPrehashed = false
        case [0x45, 0x44]: isPrehashed = true
        default: throw SignatureKey.Fault("its signature has another algorithm than minisign's Ed25519")
        }
        keyID = Array(first[2..<10])
        signature = Array(first[10...])
        let prefix = "trusted comment: ".utf8
        guard lines[2].starts(with: prefix), let global = Self.decode(lines[3]), global.count == 64 else {
            throw SignatureKey.Fault("the trusted comment of its signature is truncated or damaged")
        }
        trustedComment = Array(lines[2].dropFirst(prefix.count))
        globalSignature = global
    }

    private static func decode(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        Data(base64Encoded: Data(line)).map { [UInt8]($0) }
    }

    /// Checks that the signature names the key.
    ///
    /// - Parameter key: `Ed`, the id, and the Ed25519 key.
    func check(key: [UInt8]) throws(SignatureKey.Fault) {
        guard key[2..<10].elementsEqual(keyID) else {
            throw SignatureKey.Fault(
                "its signature is by the key \(SignatureKey.shown(id: keyID)), not by the key "
                    + SignatureKey.shown(id: key[2..<10]))
        }
    }

    func prove(_ content: SignedContent, key: [UInt8]) throws(SignatureKey.Fault) {
        try check(key: key)
        let key = Array(key[10...])
        let isSigned: Bool
        if isPrehashed {
            isSigned = Ed25519.verify(signature, of: try content.blake2b512(), key: key)
        } else {
            isSigned = try content.withBytes { Ed25519.verify(signature, of: $0, key: key) }
        }
        guard isSigned else { throw SignatureKey.Fault("its signature does not match its bytes") }
        guard Ed25519.verify(globalSignature, of: signature + trustedComment, key: key) else {
            throw SignatureKey.Fault("the trusted comment of its signature was changed")
        }
    }
}
