/// The parser of a form that is one document, such as Metalink. The document comes in portions, and the parser holds the
/// bytes of one entry.
protocol DocumentFormat: Sendable {
    /// Takes the next portion.
    mutating func take(_ bytes: [UInt8]) throws(ManifestError)
    /// Removes and returns the complete entries.
    mutating func takeEntries() -> [Manifest.Entry]
    /// Ends the document.
    ///
    /// - Returns: the list without the entries that were taken.
    mutating func finish() throws(ManifestError) -> Manifest
    /// The number of bytes in memory.
    var heldBytes: Int { get }
}

extension Manifest.Reading {
    /// The maximum length of an entry of a document in bytes: 256 MiB. Texts and comments have the same limit.
    static let maxDocumentEntry = 256 << 20

    /// The fault of a longer entry.
    static func longEntry(_ limit: Int) -> String {
        let shown = limit % (1 << 20) == 0 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        return "an entry, text or comment of the document is longer than \(shown)"
    }
}
