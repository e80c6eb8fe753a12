import FKMiddleware

/// Reads the record of a repository, an RO-Crate, Croissant or a link set (`RecordShape`). `Reading.baseURL` is the URL of
/// the folder that relative URLs refer to; for Dataverse it names the server.
struct RecordParser: DocumentFormat {
    private var list = JSONList(.record, listNames: RecordShape.allCases.map(\.rawValue))
    private var collector: ManifestCollector
    private var names = NameBook()
    private let base: RecordBase?

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.record, reading)
        base = reading.baseURL.map(RecordBase.init)
    }

    mutating func take(_ bytes: [UInt8]) throws(ManifestError) {
        list.take(bytes)
        try readEvents()
    }

    mutating func takeEntries() -> [Manifest.Entry] { collector.takeEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        list.finish()
        try readEvents()
        return collector.manifest
    }

    var heldBytes: Int { list.heldBytes }

    private mutating func readEvents() throws(ManifestError) {
        while true {
            switch try list.next() {
            case .element(let element): try add(element)
            // The version: a record of Zenodo has a number for each.
            case .member("id", let value), .member("version", let value):
                if let text = value.text { collector.manifest.facts.commit = text }
            case .member, .object: break
            case .more, .done: return
            }
        }
    }

    private mutating func add(_ element: JSONList.Element) throws(ManifestError) {
        guard let shape = RecordShape(rawValue: list.listName) else { return }
        let entries: [Manifest.Entry]
        var passedOver: String?
        do throws(EntryFault) {
            entries = try shape.files(of: element.object, base) { passedOver = $0 }
            for name in entries.compactMap(\.name) {
                if let fault = names.add(name, line: element.line) { throw EntryFault("'\(name)': \(fault)") }
            }
        } catch {
            return try collector.leaveOut(
                ManifestError(form: .record, line: element.line, column: element.column, error.reason))
        }
        if let passedOver { collector.passOver(passedOver) }
        for var entry in entries {
            entry.line = element.line
            try collector.add(entry)
        }
    }
}
