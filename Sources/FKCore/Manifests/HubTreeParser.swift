import FKMiddleware

/// Reads a page of a Hugging Face hub's tree: an array of objects with `type`, `path`, `size`, `oid` and, for files
/// in LFS, `lfs` with the SHA-256.
///
/// Folders are skipped. Files outside of LFS have git's SHA-1 of the blob. `Reading.hub` supplies the base of their
/// URLs.
struct HubTreeParser: JSONListFormat {
    var list = JSONList(.hubTree, takesObjects: false)
    var collector: ManifestCollector
    private let hub: Manifest.Hub?

    /// True for an array whose first object looks like an entry of a tree.
    static func isTree(_ text: ArraySlice<UInt8>) -> Bool {
        let head = String(decoding: text.prefix(4_096), as: UTF8.self)
        return head.contains("\"path\"") && head.contains("\"oid\"") && head.contains("\"type\"")
    }

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.hubTree, reading)
        hub = reading.hub
        guard let hub else { return }
        collector.manifest.facts.origin = "hf:\(hub.repository)"
        collector.manifest.facts.commit = hub.commit
    }

    mutating func record(_ event: JSONList.Event) {}

    mutating func end() {}

    mutating func add(_ element: JSONList.Element) throws(ManifestError) {
        if element.list == "{}" { throw Self.refusal(element.object) }
        let found: Manifest.Entry?
        do throws(EntryFault) {
            found = try Self.entry(element.object)
        } catch {
            return try collector.leaveOut(
                ManifestError(form: .hubTree, line: element.line, column: element.column, error.reason))
        }
        guard var entry = found else { return }
        entry.line = element.line
        if let hub, let name = entry.name { entry.sources = [Manifest.Source(Self.url(hub, name))] }
        try collector.add(entry, column: element.column)
    }

    /// The URL of a file: `ENDPOINT/REPOSITORY/resolve/COMMIT/PATH`.
    static func url(_ hub: Manifest.Hub, _ name: String) -> String {
        let endpoint = hub.endpoint.hasSuffix("/") ? String(hub.endpoint.dropLast()) : hub.endpoint
        let commit = BaseURL.encoded(hub.commit).split(separator: "/", omittingEmptySubsequences: false)
            .joined(separator: "%2F")
        return "\(endpoint)/\(BaseURL.encoded(hub.repository))/resolve/\(commit)/\(BaseURL.encoded(name))"
    }

    /// Returns nil for a folder.
    private static func entry(_ object: JSONReader.Object) throws(EntryFault) -> Manifest.Entry? {
        guard let path = object["path"]?.string else { throw EntryFault("the entry has no 'path'") }
        switch object["type"]?.string {
        case "file": break
        case "directory": return nil
        default: throw EntryFault("'\(path)' is neither a file nor a directory")
        }
        var entry = Manifest.Entry(name: try EntryFields.name(path))
        if let lfs = object["lfs"]?.object {
            entry.size = try EntryFields.size(lfs["size"] ?? object["size"])
            try add(lfs["oid"]?.string ?? lfs["sha256"]?.string, .sha256, to: &entry)
        } else {
            entry.size = try EntryFields.size(object["size"])
            try add(object["oid"]?.string, .gitBlob, to: &entry)
        }
        guard entry.size != nil else { throw EntryFault("'\(path)' has no 'size'") }
        return entry
    }

    private static func add(
        _ text: String?, _ algorithm: Checksum.Algorithm, to entry: inout Manifest.Entry
    ) throws(EntryFault) {
        guard var hex = text else { throw EntryFault("'\(entry.name ?? "")' has no 'oid'") }
        if algorithm == .sha256, hex.hasPrefix("sha256:") { hex.removeFirst(7) }
        guard let digest = Checksum(listed: algorithm, hex: hex) else {
            throw EntryFault("'\(entry.name ?? "")': " + Checksum.fault(in: hex, algorithm))
        }
        entry.digests = [digest]
    }

    /// The error for an object in place of the array, which the hub sends when it refuses a request.
    private static func refusal(_ object: JSONReader.Object) -> ManifestError {
        ManifestError(
            form: .hubTree,
            object["error"]?.string.map { "the hub answers: \($0)" } ?? "the answer is no array of files")
    }
}
