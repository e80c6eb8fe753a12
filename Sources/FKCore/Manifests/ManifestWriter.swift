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
        switch output {
        case .lock: LockWriter.write(self)
        case .sha256sums: SumsWriter.write(self)
        case .metalink: MetalinkWriter.write(self)
        case .json: JSONListWriter.write(self)
        }
    }

    /// Calls `body` for every entry with a unique name, in order. The others are left out.
    func eachNamed(_ form: Form, _ written: inout Written, _ body: (Entry, String, inout Written) -> Void) {
        var last: String?
        for entry in sortedEntries {
            guard let name = entry.name else {
                written.leaveOut(entry, form, "it has no name")
                continue
            }
            guard last?.isExactly(name) != true else {
                written.leaveOut(entry, form, "another entry has the same name")
                continue
            }
            last = name
            body(entry, name, &written)
        }
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

/// Writes the format of `sha256sum --check`. Backslashes and line ends in a name are escaped, and the line then
/// begins with a backslash.
enum SumsWriter {
    static func write(_ manifest: Manifest) -> Manifest.Written {
        var written = Manifest.Written(bytes: [], leftOut: [])
        manifest.eachNamed(.checksums, &written) { entry, name, written in
            guard let digest = entry.digests.first(where: { $0.algorithm == .sha256 }) else {
                return written.leaveOut(entry, .checksums, "its SHA-256 is not known")
            }
            let isEscaped = name.utf8.contains { $0 == UInt8(ascii: "\\") || $0 == 0x0a || $0 == 0x0d }
            if isEscaped { written.bytes.append(UInt8(ascii: "\\")) }
            written.bytes += digest.hex.utf8
            // sha256sum reads a single `-` as standard input.
            written.bytes += name.isExactly("-") ? "  ./".utf8 : "  ".utf8
            for byte in name.utf8 {
                switch byte {
                case UInt8(ascii: "\\"): written.bytes += "\\\\".utf8
                case 0x0a: written.bytes += "\\n".utf8
                case 0x0d: written.bytes += "\\r".utf8
                default: written.bytes.append(byte)
                }
            }
            written.bytes.append(0x0a)
        }
        return written
    }
}

/// Writes lock files in the format that `LockParser` describes.
enum LockWriter {
    static func write(_ manifest: Manifest) -> Manifest.Written {
        var written = Manifest.Written(bytes: [], leftOut: [])
        var header = JSONLine()
        header.add("fk-lock", LockParser.version)
        header.add("barrel", manifest.facts.barrel)
        header.add("origin", manifest.facts.origin)
        header.add("commit", manifest.facts.commit)
        written.bytes = header.ended
        manifest.eachNamed(.lock, &written) { entry, name, written in
            guard let url = entry.sources.first?.url else {
                return written.leaveOut(entry, .lock, "it has no address")
            }
            var line = JSONLine()
            line.add("name", name)
            line.add("size", entry.size)
            line.add(entry.digests)
            line.add("url", url)
            line.add(mirrors: entry.sources.dropFirst())
            line.add(entry.pieces)
            written.bytes += line.ended
        }
        return written
    }
}

/// Writes an array of objects, one on each line, with the members of JSON exports of barrels.
enum JSONListWriter {
    static func write(_ manifest: Manifest) -> Manifest.Written {
        var written = Manifest.Written(bytes: Array("[".utf8), leftOut: [])
        var separator = "\n"
        for entry in manifest.sortedEntries {
            guard let url = entry.sources.first?.url else {
                written.leaveOut(entry, .json, "it has no address")
                continue
            }
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
            written.bytes += separator.utf8
            written.bytes += line.ended.dropLast()
            separator = ",\n"
        }
        written.bytes += "\n]\n".utf8
        return written
    }
}

extension Manifest.Written {
    mutating func leaveOut(_ entry: Manifest.Entry, _ form: Manifest.Form, _ reason: String) {
        let name = entry.name ?? entry.sources.first.map { URLMasking.mask($0.url) } ?? ""
        leftOut.append(ManifestError(form: form, "'\(name)' is left out: \(reason)"))
    }
}
