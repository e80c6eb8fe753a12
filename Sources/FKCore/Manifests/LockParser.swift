import FKMiddleware

/// Reads lock files: JSON Lines with a header first, then one member on each line, sorted by name (`LockWriter`).
///
/// ```text
/// {"fk-lock":1,"barrel":"models","origin":"hf:OWNER/REPO","commit":"…","signedBy":"RW…"}
/// {"name":"a.bin","size":12,"sha-256":"…","url":"https://h/a.bin","mirrors":["https://m/a.bin"]}
/// ```
///
/// Unknown members are ignored, so later versions can add members. A version in which ignoring them would be wrong
/// increases `fk-lock`.
struct LockParser: LineFormat {
    /// The version of written files, and the latest version that can be read.
    static let version: Int64 = 1

    private var collector: ManifestCollector
    private var hasHeader = false

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.lock, reading)
    }

    static func isLock(_ text: ArraySlice<UInt8>) -> Bool {
        text.dropFirst().drop { $0 == 0x20 }.starts(with: "\"fk-lock\"".utf8)
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        guard !bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return }
        for mark in ["<<<<<<< ", "=======", ">>>>>>> "] where bytes.starts(with: mark.utf8) {
            throw ManifestError(
                form: .lock, line: line, "a merge conflict is not resolved here: keep one line for each name")
        }
        let object = try JSONReader.object(bytes, .lock, line)
        guard hasHeader else { return try parseHeader(object, line) }
        let entry: Manifest.Entry
        do throws(EntryFault) {
            entry = try member(object, line)
        } catch {
            return try collector.leaveOut(ManifestError(form: .lock, line: line, error.reason))
        }
        try collector.add(entry)
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        guard hasHeader else {
            throw ManifestError(form: .lock, "the lock file has no header line {\"fk-lock\":1,…}")
        }
        return collector.manifest
    }

    private mutating func parseHeader(_ object: JSONReader.Object, _ line: Int) throws(ManifestError) {
        guard let version = object["fk-lock"]?.integer else {
            throw ManifestError(form: .lock, line: line, "the lock file has no header line {\"fk-lock\":1,…}")
        }
        guard version == Self.version else {
            throw ManifestError(
                form: .lock, line: line,
                "the lock file is of version \(version), and version \(Self.version) is read here: use a later program"
            )
        }
        hasHeader = true
        collector.manifest.facts.barrel = object["barrel"]?.string
        collector.manifest.facts.origin = object["origin"]?.string
        collector.manifest.facts.commit = object["commit"]?.string
        collector.manifest.facts.claimedSigner = object["signedBy"]?.string
    }

    private mutating func member(_ object: JSONReader.Object, _ line: Int) throws(EntryFault) -> Manifest.Entry {
        guard let text = object["name"]?.string else { throw EntryFault("the member has no 'name'") }
        let name = try EntryFields.name(text)
        var entry = Manifest.Entry(name: name, line: line)
        entry.sources = try EntryFields.sources(object)
        entry.size = try EntryFields.size(object["size"])
        entry.digests = try EntryFields.digests(object)
        entry.pieces = try EntryFields.pieces(object["pieces"], size: entry.size)
        guard !entry.sources.isEmpty else { throw EntryFault("'\(name)' has no 'url'") }
        return entry
    }
}
