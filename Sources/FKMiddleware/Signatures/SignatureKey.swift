import Foundation

/// A public key with which lists and files are signed.
///
/// ```swift
/// let key = try SignatureKey("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")
/// let signer = try key.verify(signature, of: bytes)
/// ```
///
/// minisign's signatures are verified here. The others need a program: `ssh-keygen`, `gpgv` or `cosign`.
public struct SignatureKey: Sendable, Hashable, CustomStringConvertible {
    /// The kinds of keys.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// minisign: Ed25519, over the BLAKE2b-512 of the bytes or over the bytes themselves.
        case minisign
        /// An OpenSSH key; its signatures are those of `ssh-keygen -Y sign -n file`.
        case ssh
        /// OpenPGP's public keys.
        case openPGP = "openpgp"
        /// A public key of Sigstore, for signatures and bundles of `cosign sign-blob`.
        case sigstore
    }

    /// The kind of the key.
    public let scheme: Scheme
    /// The key as text, which `init(_:)` reads: a minisign key, `TYPE BASE64` of an OpenSSH key, `openpgp:BASE64` or
    /// `sigstore:BASE64`.
    public let description: String
    /// minisign's 42 bytes, `TYPE BASE64`, the key ring or the PEM text.
    let bytes: [UInt8]

    /// The maximum length of a key's file in bytes.
    static let limit = 1 << 20

    /// Reads a key that is given as text.
    ///
    /// - Parameter text: a minisign key, an OpenSSH key such as `ssh-ed25519 AAAA...`, or the contents of a file with one key.
    /// - Throws: `.invalidArgument` for any other text.
    public init(_ text: String) throws(DownloadError) { try self.init(contents: Array(text.utf8)) }

    /// Reads a key's file of at most 1 MiB: of minisign, of OpenSSH, OpenPGP's public keys (armored or not), or a PEM public
    /// key.
    ///
    /// - Throws: `.invalidArgument` if the file cannot be read or has no key, or more than one.
    public init(contentsOf file: URL) throws(DownloadError) { try self.init(contentsOfFile: file.path) }

    package init(contentsOfFile path: String) throws(DownloadError) {
        let bytes = try [UInt8](ofFile: path, limit: Self.limit, named: "key file")
        do throws(DownloadError) { try self.init(contents: bytes) } catch {
            throw DownloadError(.invalidArgument, "The key file \(path.visible) cannot be used: \(error.message)")
        }
    }

    /// True for a text that is a key itself, and not the path of a file.
    package static func isLiteral(_ text: String) -> Bool {
        minisign(text) != nil || Self.sshTypes.contains { text.hasPrefix($0) && text.contains(" ") }
    }

    private init(contents: [UInt8]) throws(DownloadError) {
        let text = String(decoding: contents, as: UTF8.self)
        let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") }
        if let body = Self.stored("openpgp:", text) ?? Self.armored(lines)
            ?? (Self.isKeyRing(contents) ? contents : nil)
        {
            guard Self.isKeyRing(body) else { throw Self.refused("it has no public key of OpenPGP") }
            self.init(.openPGP, body, "openpgp:\(Data(body).base64EncodedString())")
        } else if text.contains("-----BEGIN PUBLIC KEY-----") {
            self.init(.sigstore, contents, "sigstore:\(Data(contents).base64EncodedString())")
        } else if let body = Self.stored("sigstore:", text) {
            self.init(.sigstore, body, text)
        } else {
            let keys = lines.filter { !$0.lowercased().hasPrefix("untrusted comment:") }
            guard keys.count < 2 else { throw Self.refused("it has more than one key") }
            guard let key = keys.first else { throw Self.refused("it has no key") }
            if let bytes = Self.minisign(key) {
                self.init(.minisign, bytes, key)
            } else {
                let ssh = try Self.ssh(key)
                self.init(.ssh, Array(ssh.utf8), ssh)
            }
        }
    }

    private init(_ scheme: Scheme, _ bytes: [UInt8], _ description: String) {
        self.scheme = scheme
        self.bytes = bytes
        self.description = description
    }

    private static func refused(_ reason: String) -> DownloadError { DownloadError(.invalidArgument, "\(reason).") }

    // MARK: minisign

    /// `Ed`, the id, and the Ed25519 key.
    private static func minisign(_ text: String) -> [UInt8]? {
        guard let data = Data(base64Encoded: text), data.count == 42, data.starts(with: "Ed".utf8) else { return nil }
        return [UInt8](data)
    }

    /// minisign's way to show an id: a number of 8 bytes, the lowest first.
    static func shown(id: some Collection<UInt8>) -> String { Digester.hex(id.reversed()).uppercased() }

    // MARK: OpenSSH

    private static let sshTypes = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"]

    /// `TYPE BASE64` without the comment. The key's bytes contain the type as well.
    private static func ssh(_ line: String) throws(DownloadError) -> String {
        let words = line.split(separator: " ", maxSplits: 2).map(String.init)
        guard words.count > 1, sshTypes.contains(where: words[0].hasPrefix), let data = Data(base64Encoded: words[1]),
            data.count > words[0].utf8.count + 4, data.dropFirst(4).starts(with: words[0].utf8),
            data.prefix(4).elementsEqual([0, 0, 0, UInt8(truncatingIfNeeded: words[0].utf8.count)])
        else {
            throw refused("it is no key of minisign, OpenSSH, OpenPGP or Sigstore")
        }
        return "\(words[0]) \(words[1])"
    }

    // MARK: OpenPGP

    private static func stored(_ prefix: String, _ text: String) -> [UInt8]? {
        guard text.hasPrefix(prefix) else { return nil }
        return Data(base64Encoded: String(text.dropFirst(prefix.count))).map { [UInt8]($0) }
    }

    /// The bytes of an armored key ring (RFC 9580 section 6); nil for another text.
    private static func armored(_ lines: [String]) -> [UInt8]? {
        guard let begin = lines.firstIndex(of: "-----BEGIN PGP PUBLIC KEY BLOCK-----") else { return nil }
        let body = lines[(begin + 1)...].prefix { !$0.hasPrefix("-----END") }
            .filter { !$0.contains(":") && !$0.hasPrefix("=") }
        return Data(base64Encoded: body.joined()).map { [UInt8]($0) } ?? []
    }

    /// True if the bytes begin with a public key's packet, or are a key box.
    private static func isKeyRing(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first else { return false }
        if bytes.dropFirst(8).starts(with: "KBXf".utf8) { return true }
        let isNew = first & 0xc0 == 0xc0
        return first & 0x80 != 0 && (isNew ? first & 0x3f : (first & 0x3c) >> 2) == 6
    }
}

extension SignatureKey {
    /// The ends of a signature's name beside its file, the likeliest first.
    package var suffixes: [String] {
        switch scheme {
        case .minisign: [".minisig", ".sig"]
        case .ssh: [".sig"]
        case .openPGP: [".asc", ".sig", ".gpg"]
        case .sigstore: [".sigstore.json", ".sigstore", ".bundle", ".sig"]
        }
    }
}

extension SignatureKey {
    /// A signer or key for messages: a key ring or PEM text as its kind alone.
    package static func shown(_ signer: String) -> String {
        signer.utf8.count <= 120 ? signer.visible : String(signer.visible.prefix(60)) + "…"
    }
}
