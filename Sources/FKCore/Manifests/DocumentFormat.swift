/// The parser of a form that is one document, such as Metalink. The document comes in portions, and the parser holds the
/// bytes of one entry.
protocol DocumentFormat: Sendable {
    mutating func parse(_ bytes: [UInt8]) throws(ManifestError)
    /// Removes and returns the complete entries.
    mutating func drainEntries() -> [Manifest.Entry]
    /// - Returns: the list without the entries that were taken.
    mutating func finish() throws(ManifestError) -> Manifest
    var heldBytes: Int { get }
}

/// A document with an array of entries in JSON.
protocol JSONListFormat: DocumentFormat {
    var list: JSONList { get set }
    var collector: ManifestCollector { get set }
    /// Reads an element of the array.
    mutating func add(_ element: JSONList.Element) throws(ManifestError)
    /// Records what else the document has.
    mutating func record(_ event: JSONList.Event) throws(ManifestError)
    /// Decides at the end of the document whether it was a list.
    mutating func end() throws(ManifestError)
}

extension JSONListFormat {
    mutating func parse(_ bytes: [UInt8]) throws(ManifestError) {
        list.append(bytes)
        try readEvents()
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        list.finish()
        try readEvents()
        try end()
        return collector.manifest
    }

    var heldBytes: Int { list.heldBytes }

    private mutating func readEvents() throws(ManifestError) {
        while true {
            let event = try list.next()
            switch event {
            case .element(let element): try add(element)
            case .member, .container: try record(event)
            case .more, .done: return
            }
        }
    }
}

extension Manifest.Reading {
    /// The maximum length of an entry of a document in bytes: 256 MiB. Texts and comments have the same limit.
    static let maxDocumentEntry = 256 << 20

    static func longEntry(_ limit: Int) -> String {
        let shown = limit % (1 << 20) == 0 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        return "an entry, text or comment of the document is longer than \(shown)"
    }
}
