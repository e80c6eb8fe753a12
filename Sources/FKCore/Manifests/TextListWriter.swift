import FKMiddleware

/// Writes lists of URLs, and lists in aria2's form, as `TextListParser` reads them.
enum TextListWriter {
    static func urlLine(_ entry: Manifest.Entry) throws(EntryFault) -> [UInt8] {
        guard let url = entry.sources.first?.url else { throw EntryFault("it has no address") }
        return Array("\(url)\n".utf8)
    }

    static func aria2Lines(_ entry: Manifest.Entry) throws(EntryFault) -> [UInt8] {
        var options: [Manifest.Option] = []
        if let folder = entry.directory { options.append(Manifest.Option("dir", folder)) }
        if let name = entry.name { options.append(Manifest.Option("out", name)) }
        // aria2 has no digest of git's objects.
        if let sum = entry.digests.first(where: { $0.algorithm != .gitBlob }) {
            options.append(Manifest.Option("checksum", "\(sum.algorithm.rawValue)=\(sum.hex)"))
        }
        return try Aria2Options.lines(entry.sources.map(\.url), options)
    }

    /// True if aria2 reads the text as it is.
    static func isHeld(_ text: String) -> Bool {
        guard let first = text.utf8.first, let last = text.utf8.last else { return false }
        return ![first, last].contains { $0 == 0x20 || $0 == 0x09 } && !text.utf8.contains { $0 == 0x0a || $0 == 0x0d }
    }
}

extension Aria2Options {
    /// The lines of a task in aria2's form. Nothing in them is read as another line, option or address than it is.
    ///
    /// - Throws: `EntryFault` if a value cannot be written so.
    package static func lines(
        _ urls: [String], _ options: [Manifest.Option]
    ) throws(EntryFault) -> [UInt8] {
        guard !urls.isEmpty else { throw EntryFault("it has no address") }
        guard urls.allSatisfy({ TextListWriter.isHeld($0) && !$0.utf8.contains(0x09) }) else {
            throw EntryFault("an aria2 list cannot hold its address")
        }
        for option in options {
            // aria2 trims a value and ends it at a line end.
            guard TextListWriter.isHeld(option.value),
                option.name != "out" || FileNameRules.fault(inListed: option.value) == nil
            else {
                let what = ["dir", "out"].contains(option.name) ? "name or folder" : option.name
                throw EntryFault("an aria2 list cannot hold its \(what)")
            }
        }
        let lines = options.map { "  \($0.name)=\($0.value)\n" }.joined()
        return Array((urls.joined(separator: "\t") + "\n" + lines).utf8)
    }
}
