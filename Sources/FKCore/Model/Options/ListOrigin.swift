import FKMiddleware

/// The list that gave a file its digest, or that was signed.
package struct ListOrigin: Codable, Sendable, Hashable {
    /// The path as it was given, or the masked URL; at most 80 bytes.
    package var name: String
    /// The signer (`SignatureKey.verify`), or its SHA-256 if it is longer than 100 bytes; nil for none.
    package var signer: String?

    /// The name of a list from a pipe: two of them need not be the same list.
    package static let pipe = "standard input"

    package init(_ name: String, signer: String?) {
        let name = name.masked.visible
        self.name = name.utf8.count <= 80 ? name : "…" + String(decoding: name.utf8.suffix(77), as: UTF8.self)
        self.signer = signer.map {
            $0.utf8.count <= 100 ? $0 : "sha-256:" + Digester.hex(Digester.bytes(of: $0, .sha256))
        }
    }
}
