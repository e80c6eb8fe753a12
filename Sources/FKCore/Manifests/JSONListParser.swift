import FKMiddleware

/// Reads JSON exports of barrels: an array of tasks, or an object with the array `members`.
///
/// It uses these members of a task: `url`, `mirrors`, `fileName`, `directory`, `expected` (the size), `checksum`
/// (`ALG=HEX`), `digests` (an object) and `pieces`. Others are ignored.
struct JSONListParser: JSONListFormat {
    var list: JSONList
    var collector: ManifestCollector

    init(_ reading: Manifest.Reading, maxEntry: Int = Manifest.Reading.maxDocumentEntry) {
        list = JSONList(.json, listNames: ["members"], maxEntry: maxEntry)
        collector = ManifestCollector(.json, reading)
    }

    mutating func note(_ event: JSONList.Event) {
        switch event {
        case .member("name", let value): collector.manifest.facts.barrel = value.string
        case .member("origin", let value): collector.manifest.facts.origin = value.string
        case .member("commit", let value): collector.manifest.facts.commit = value.string
        default: break
        }
    }

    mutating func add(_ element: JSONList.Element) throws(ManifestError) {
        let entry: Manifest.Entry
        do throws(EntryFault) {
            entry = try Self.entry(element.object, element.line)
        } catch {
            return try collector.leaveOut(
                ManifestError(form: .json, line: element.line, column: element.column, error.reason))
        }
        try collector.add(entry)
    }

    private static func entry(_ object: JSONReader.Object, _ line: Int) throws(EntryFault) -> Manifest.Entry {
        var entry = Manifest.Entry(line: line)
        entry.sources = try EntryFields.sources(object)
        guard !entry.sources.isEmpty else { throw EntryFault("the member has no 'url'") }
        if let name = object["fileName"]?.string { entry.name = try EntryFields.name(name) }
        entry.directory = object["directory"]?.string
        if let folder = entry.directory, folder.isEmpty || folder.utf8.contains(0) {
            throw EntryFault("its 'directory' is no folder")
        }
        entry.size = try EntryFields.size(object["expected"])
        if let digests = object["digests"]?.object { entry.digests = try EntryFields.digests(digests) }
        if let text = object["checksum"]?.string {
            guard entry.digests.add(try Checksum(text: text)) else {
                throw EntryFault("'checksum' and 'digests' differ")
            }
        }
        entry.pieces = try EntryFields.pieces(object["pieces"], size: entry.size)
        return entry
    }
}
