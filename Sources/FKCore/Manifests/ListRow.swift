import FKMiddleware

/// A column of a table, or a member of a line of JSON, with a meaning for the file.
enum ListColumn: Hashable {
    case url
    case name
    case size
    case checksum
    case digest(Checksum.Algorithm)

    /// Reads the name of a column; nil for one without a meaning. Case, `_`, `-` and blanks do not count.
    init?(_ name: String) {
        let plain = name.lowercased().filter { $0 != "_" && $0 != "-" && $0 != " " }
        switch plain {
        case "url", "urls", "uri", "link", "downloadurl", "contenturl", "mirror", "mirrors": self = .url
        case "name", "filename", "file", "path", "out": self = .name
        case "size", "filesize", "bytes", "contentsize", "contentlength": self = .size
        case "checksum": self = .checksum
        case "sha": return nil
        default:
            guard let algorithm = Checksum.Algorithm(listed: plain) else { return nil }
            self = .digest(algorithm)
        }
    }
}

/// One file of a table or of lines of JSON. It takes the values one by one; empty ones have no meaning.
struct ListRow {
    private var entry: Manifest.Entry
    private let base: BaseURL?

    init(_ line: Int, base: BaseURL?) {
        entry = Manifest.Entry(line: line)
        self.base = base
    }

    mutating func take(_ column: ListColumn, _ text: String) throws(EntryFault) {
        let value = text.trimmingBlanks
        if value.isEmpty { return }
        switch column {
        case .url: entry.sources.append(Manifest.Source(try url(value)))
        // A name may begin or end with blanks.
        case .name: entry.name = try EntryFields.name(text)
        case .size:
            guard let size = Int64(value), size >= 0 else { throw EntryFault("its size is no whole number of bytes") }
            entry.size = size
        case .checksum: try add(try Checksum(text: value))
        case .digest(let algorithm):
            guard let digest = Checksum(listed: algorithm, hex: value) else {
                throw EntryFault(Checksum.fault(in: value, algorithm))
            }
            try add(digest)
        }
    }

    /// The file with all of its values.
    func finished() throws(EntryFault) -> Manifest.Entry {
        guard !entry.sources.isEmpty else { throw EntryFault("it has no URL") }
        return entry
    }

    private mutating func add(_ digest: Checksum) throws(EntryFault) {
        guard entry.digests.add(digest) else { throw EntryFault("it has two \(digest.algorithm.rawValue) digests") }
    }

    /// A relative URL, and the key of an S3 address, are below the base.
    private mutating func url(_ text: String) throws(EntryFault) -> String {
        var url = text
        if let key = Self.key(text) {
            guard let base else {
                throw EntryFault("'\(text)': give the bucket's https address, to which keys are added, with --base URL")
            }
            let name = try EntryFields.name(key)
            entry.name = entry.name ?? name
            url = base.url(of: name)
        } else if let base, !text.contains("://") {
            url = base.resolve(text)
        }
        try EntryFields.checkURL(url)
        return url
    }

    /// The key of `s3://BUCKET/KEY`.
    private static func key(_ text: String) -> String? {
        guard text.hasPrefix("s3://") else { return nil }
        let rest = text.dropFirst(5)
        return rest.firstIndex(of: "/").map { String(rest[rest.index(after: $0)...]) } ?? ""
    }
}
