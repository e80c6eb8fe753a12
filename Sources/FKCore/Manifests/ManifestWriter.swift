import FKMiddleware

extension Manifest {
    /// The formats for writing a list.
    public enum Output: String, Sendable, Hashable, CaseIterable {
        /// The lock file of `fk`: a header and one member on each line, sorted by name.
        case lock
        /// The format that `sha256sum` writes and checks.
        case sha256sums
        /// Metalink 4.
        case metalink
        /// An array of objects, as in JSON exports of barrels.
        case json
        /// One URL on each line.
        case urls
        /// The format of `aria2c -i`: URLs on a line, and options on the lines after it.
        case aria2
    }

    /// A written list.
    public struct Written: Sendable, Hashable {
        /// The text in UTF-8, with a final line feed.
        public var bytes: [UInt8]
        /// The entries that the format cannot represent, and the reasons.
        public var leftOut: [ManifestError]
    }

    /// Writes the list. The same entries produce the same bytes, whatever their order.
    ///
    /// If the format requires a name, a URL or a SHA-256, entries without it are left out and reported.
    public func written(as output: Output) -> Written {
        var writer = ManifestWriter(output, facts)
        for entry in sortedEntries { writer.add(entry) }
        writer.finish()
        return Written(bytes: writer.drain(), leftOut: writer.leftOut)
    }

    /// The entries sorted by the bytes of their names. Entries without a name are last, sorted by URL.
    var sortedEntries: [Entry] {
        entries.sorted { one, other in
            switch (one.name, other.name) {
            case (let one?, let other?) where !one.isExactly(other): one.utf8.lexicographicallyPrecedes(other.utf8)
            case (_?, nil): true
            case (nil, _?): false
            default:
                (one.sources.first?.url ?? "").utf8.lexicographicallyPrecedes((other.sources.first?.url ?? "").utf8)
            }
        }
    }
}

/// Writes a list entry by entry.
package struct ManifestWriter {
    private let output: Manifest.Output
    private var bytes: [UInt8] = []
    /// The name of the last entry.
    private var last: String?
    /// The number of entries so far that were not left out.
    private var count = 0
    /// The entries that the format cannot represent, and the reasons.
    package private(set) var leftOut: [ManifestError] = []

    package init(_ output: Manifest.Output, _ facts: Manifest.Facts) {
        self.output = output
        switch output {
        case .lock: bytes = LockWriter.header(facts)
        case .sha256sums: break
        case .metalink: bytes = MetalinkWriter.header
        case .json: bytes = Array("[".utf8)
        case .urls, .aria2: break
        }
    }

    /// Adds an entry. Entries come in the order of the bytes of their names, those without a name last.
    package mutating func add(_ entry: Manifest.Entry) {
        let text: Result<[UInt8], EntryFault>
        switch output {
        case .lock: text = named(entry, LockWriter.line)
        case .sha256sums: text = named(entry, SumsWriter.line)
        case .metalink: text = named(entry, MetalinkWriter.file)
        case .json:
            let isFirst = count == 0
            text = Result { () throws(EntryFault) in try JSONListWriter.line(entry, isFirst: isFirst) }
        case .urls: text = Result { () throws(EntryFault) in try TextListWriter.urlLine(entry) }
        case .aria2: text = Result { () throws(EntryFault) in try TextListWriter.aria2Lines(entry) }
        }
        switch text {
        case .success(let text):
            bytes += text
            count += 1
        case .failure(let fault):
            let name = entry.name ?? entry.sources.first.map { $0.url.masked } ?? ""
            leftOut.append(ManifestError(form: form, "'\(name)' is left out: \(fault.reason)"))
        }
    }

    package mutating func finish() {
        switch output {
        case .lock, .sha256sums, .urls, .aria2: break
        case .metalink: bytes += MetalinkWriter.end
        case .json: bytes += "\n]\n".utf8
        }
    }

    /// Removes and returns the text since the last call, in UTF-8.
    package mutating func drain() -> [UInt8] {
        defer { bytes = [] }
        return bytes
    }

    private var form: Manifest.Form {
        switch output {
        case .lock: .lock
        case .sha256sums: .checksums
        case .metalink: .metalink4
        case .json: .json
        case .urls: .urls
        case .aria2: .aria2
        }
    }

    private mutating func named(
        _ entry: Manifest.Entry, _ write: (Manifest.Entry, String) throws(EntryFault) -> [UInt8]
    ) -> Result<[UInt8], EntryFault> {
        guard let name = entry.name else { return .failure(EntryFault("it has no name")) }
        if last?.isExactly(name) == true { return .failure(EntryFault("another entry has the same name")) }
        last = name
        return Result { () throws(EntryFault) in try write(entry, name) }
    }
}

/// Writes the format of `sha256sum --check`. Backslashes and line ends in a name are escaped, and the line then
/// begins with a backslash.
enum SumsWriter {
    static func line(_ entry: Manifest.Entry, _ name: String) throws(EntryFault) -> [UInt8] {
        guard let digest = entry.digests.first(where: { $0.algorithm == .sha256 }) else {
            throw EntryFault("its SHA-256 is not known")
        }
        var bytes: [UInt8] = []
        let isEscaped = name.utf8.contains { $0 == UInt8(ascii: "\\") || $0 == 0x0a || $0 == 0x0d }
        if isEscaped { bytes.append(UInt8(ascii: "\\")) }
        bytes += digest.hex.utf8
        // sha256sum reads a single `-` as standard input, and more than two blanks stand before a size in other lists.
        bytes += name.isExactly("-") || name.utf8.first == 0x20 || name.utf8.first == 0x09 ? "  ./".utf8 : "  ".utf8
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): bytes += "\\\\".utf8
            case 0x0a: bytes += "\\n".utf8
            case 0x0d: bytes += "\\r".utf8
            default: bytes.append(byte)
            }
        }
        bytes.append(0x0a)
        return bytes
    }
}

/// Writes lock files in the format that `LockParser` describes.
enum LockWriter {
    static func header(_ facts: Manifest.Facts) -> [UInt8] {
        var header = JSONLine()
        header.add("fk-lock", LockParser.version)
        header.add("barrel", facts.barrel)
        header.add("origin", facts.origin)
        header.add("commit", facts.commit)
        header.add("signedBy", facts.signedBy)
        return header.ended
    }

    static func line(_ entry: Manifest.Entry, _ name: String) throws(EntryFault) -> [UInt8] {
        guard let url = entry.sources.first?.url else { throw EntryFault("it has no address") }
        var line = JSONLine()
        line.add("name", name)
        line.add("size", entry.size)
        line.add(entry.digests)
        line.add("url", url)
        line.add(mirrors: entry.sources.dropFirst())
        line.add(entry.pieces)
        return line.ended
    }
}

/// Writes an array of objects, one on each line, with the members of JSON exports of barrels.
enum JSONListWriter {
    static func line(_ entry: Manifest.Entry, isFirst: Bool) throws(EntryFault) -> [UInt8] {
        guard let url = entry.sources.first?.url else { throw EntryFault("it has no address") }
        var line = JSONLine()
        line.add("url", url)
        line.add(mirrors: entry.sources.dropFirst())
        line.add("directory", entry.directory)
        line.add("fileName", entry.name)
        line.add("expected", entry.size)
        line.add("checksum", entry.checksum?.description)
        var digests = JSONLine()
        digests.add(entry.digests)
        if !entry.digests.isEmpty { line.add("digests", object: digests) }
        line.add(entry.pieces)
        return Array((isFirst ? "\n" : ",\n").utf8) + line.ended.dropLast()
    }
}
