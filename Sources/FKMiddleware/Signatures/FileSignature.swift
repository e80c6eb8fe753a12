import Foundation

/// A signature that a file must have, with the key of its signer (`TaskOptions.signature`).
public struct FileSignature: Codable, Sendable, Hashable {
    /// The key as text (`SignatureKey.description`).
    public let key: String
    /// The signature in Base64.
    private let signature: String

    /// Creates a signature by a key.
    ///
    /// - Parameter bytes: the contents of the signature's file, at most 1 MiB. They are stored in the task's info file.
    public init(_ bytes: [UInt8], by key: SignatureKey) {
        self.key = key.description
        signature = Data(bytes).base64EncodedString()
    }

    /// The contents of the signature's file.
    public var bytes: [UInt8] { Data(base64Encoded: signature).map { [UInt8]($0) } ?? [] }

    /// Verifies a file. It blocks the calling thread.
    ///
    /// - Returns: why the file was refused, as a clause; nil if it is proven.
    /// - Throws: `.invalidArgument` if the file or the key cannot be read, or the program for this kind of signature is not
    ///   installed.
    package func fault(ofFile path: String) throws(DownloadError) -> String? {
        let key = try SignatureKey(key)
        do throws(SignatureKey.Fault) {
            _ = try key.prove(bytes, .file(path))
            return nil
        } catch {
            if error.isUnknown { throw error.error(of: path) }
            return error.reason
        }
    }
}

extension SignatureKey {
    /// What is wrong with a signature before its file is fetched; nil if nothing is. Only minisign's are readable here.
    package func fault(in signature: [UInt8]) -> String? {
        guard signature.count <= Self.signatureLimit else { return "its signature is longer than 1 MiB" }
        guard scheme == .minisign else { return signature.isEmpty ? "its signature is empty" : nil }
        do throws(SignatureKey.Fault) {
            try MinisignSignature(signature).check(key: bytes)
            return nil
        } catch { return error.reason }
    }
}
