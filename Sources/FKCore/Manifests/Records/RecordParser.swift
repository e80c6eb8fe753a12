import FKMiddleware

/// Reads the record of a repository, an RO-Crate, Croissant or a link set (`RecordShape`). `Reading.baseURL` is the URL of
/// the folder that relative URLs refer to; for Dataverse it names the server.
struct RecordParser: JSONListFormat {
    var list = JSONList(.record, listNames: RecordShape.allCases.map(\.rawValue))
    var collector: ManifestCollector
    private var names = NameBook()
    private let base: RecordBase?

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.record, reading)
        base = reading.baseURL.map(RecordBase.init)
    }

    mutating func note(_ event: JSONList.Event) {
        // The version: a record of Zenodo has a number for each.
        guard case .member(let name, let value) = event, ["id", "version"].contains(name), let text = value.text
        else { return }
        collector.manifest.facts.commit = text
    }

    mutating func add(_ element: JSONList.Element) throws(ManifestError) {
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
