import FKMiddleware

/// Reads JSON exports of barrels: an array of tasks, or an object with the array `members`.
///
/// It uses these members of a task: `url`, `mirrors`, `fileName`, `directory`, `expected` (the size), `checksum`
/// (`ALG=HEX`), `digests` (an object) and `pieces`. Others are ignored.
enum JSONListParser {
    static func parse(_ bytes: [UInt8], _ reading: Manifest.Reading) throws(ManifestError) -> Manifest {
        var list = JSONList(.json, bytes)
        var collector = ManifestCollector(.json, reading)
        if list.isAtObject { try document(&list, &collector) } else { try members(&list, &collector) }
        try list.expectEnd()
        return collector.manifest
    }

    /// Reads a document of the form `{"name":…,"members":[…]}`.
    private static func document(_ list: inout JSONList, _ collector: inout ManifestCollector) throws(ManifestError) {
        var hasMembers = false
        if try list.beginObject() {
            repeat {
                switch try list.memberName() {
                case "members":
                    hasMembers = true
                    try members(&list, &collector)
                case "name": collector.manifest.facts.barrel = try list.value().string
                case "origin": collector.manifest.facts.origin = try list.value().string
                case "commit": collector.manifest.facts.commit = try list.value().string
                default: _ = try list.value()
                }
            } while try list.continues(until: "}")
        }
        guard hasMembers else {
            throw ManifestError(form: .json, "the object has no array 'members': it is no list of downloads")
        }
    }

    private static func members(_ list: inout JSONList, _ collector: inout ManifestCollector) throws(ManifestError) {
        guard try list.beginArray() else { return }
        repeat {
            let element = try list.element()
            let entry: Manifest.Entry
            do throws(EntryFault) {
                entry = try Self.entry(element.object, element.line)
            } catch {
                try collector.leaveOut(
                    ManifestError(form: .json, line: element.line, column: element.column, error.reason))
                continue
            }
            try collector.add(entry)
        } while try list.continues(until: "]")
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
            guard let sum = try? Checksum(parsing: text),
                let algorithm = ManifestDigest.Algorithm(rawValue: sum.algorithm.rawValue),
                let digest = ManifestDigest(algorithm, hex: sum.hex)
            else { throw EntryFault("its 'checksum' is not ALG=HEX") }
            guard entry.digests.add(digest) else { throw EntryFault("'checksum' and 'digests' differ") }
        }
        entry.pieces = try EntryFields.pieces(object["pieces"], size: entry.size)
        return entry
    }
}
