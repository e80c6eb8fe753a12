import FKMiddleware

/// Writes lists of URLs, and lists in aria2's form, as `TextListParser` reads them.
enum TextListWriter {
    static func urlLine(_ entry: Manifest.Entry) throws(EntryFault) -> [UInt8] {
        guard let url = entry.sources.first?.url else { throw EntryFault("it has no address") }
        return Array("\(url)\n".utf8)
    }

    static func aria2Lines(_ entry: Manifest.Entry) throws(EntryFault) -> [UInt8] {
        guard !entry.sources.isEmpty else { throw EntryFault("it has no address") }
        // aria2 trims a value and ends it at a line end.
        guard [entry.name, entry.directory].compactMap(\.self).allSatisfy(isHeld),
            entry.name.flatMap(ListedName.fault) == nil
        else {
            throw EntryFault("an aria2 list cannot hold its name or folder")
        }
        var text = entry.sources.map(\.url).joined(separator: "\t") + "\n"
        if let folder = entry.directory { text += "  dir=\(folder)\n" }
        if let name = entry.name { text += "  out=\(name)\n" }
        // aria2 has no digest of git's objects.
        if let sum = entry.digests.first(where: { $0.algorithm != .gitBlob }) {
            text += "  checksum=\(sum.algorithm.rawValue)=\(sum.hex)\n"
        }
        return Array(text.utf8)
    }

    /// True if aria2 reads the text as it is.
    static func isHeld(_ text: String) -> Bool {
        guard let first = text.utf8.first, let last = text.utf8.last else { return false }
        return ![first, last].contains { $0 == 0x20 || $0 == 0x09 }
            && !text.utf8.contains { $0 == 0x0a || $0 == 0x0d }
    }
}
