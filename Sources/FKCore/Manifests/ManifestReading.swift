import FKMiddleware

extension Manifest {
    /// Settings for reading a list.
    public struct Reading: Sendable, Hashable {
        /// The URL of the folder that relative names and URLs refer to, such as `https://host/pub/`; nil for none.
        /// The default is nil.
        public var baseURL: String?
        /// The repository of a hub's tree, from which its files are fetched; nil for none. The default is nil.
        public var hub: Hub?
        /// The columns of a table, or members of objects, that have the fields of a file. They replace those that are known by name. The
        /// default is none.
        public var columns: [Column] = []
        /// The URL of each row, with the names of columns in braces: `https://host/{id}`. Nil, the default, reads the row's address.
        public var urlTemplate: String?
        /// True skips bad entries and reports them in `faults`. False throws the first one. Nil, the default, skips
        /// them in Metalink, bags, tables, JSON, lock files and hub trees, and throws for lists of
        /// URLs and checksums.
        public var skipsBadEntries: Bool?
        /// The maximum size of a list in bytes. Nil, the default, means 1 GiB. A line has at most 64 MiB, and an entry of
        /// a document 256 MiB.
        public var maxBytes: Int?
        /// The maximum number of entries, including bad ones. The default is 10,000,000.
        public var maxEntries = 10_000_000

        /// True if entries may share a name, because the files are renamed. The default is false: such entries are faults.
        package var allowsTwins = false
        /// True for a list that was pasted at the page, which has no `--base` and other commands for sources. The default is false.
        package var isAtPage = false

        /// Creates the default settings.
        public init() {}

        var limit: Int { maxBytes ?? 1 << 30 }
        func skipsBadEntries(_ form: Form) -> Bool { skipsBadEntries ?? form.leavesOutBadEntries }
    }

    /// A column of a table, or a member of an object, with a field of the file.
    public struct Column: Sendable, Hashable {
        let field: ListField
        /// The name in the header. An exact match has precedence over one in the other case.
        public let name: String

        /// Creates a column.
        ///
        /// - Parameter field: `url`, `mirror`, `path`, `name`, `folder`, `size`, `checksum`, or an algorithm such as `sha256`.
        /// - Returns: nil for another field, and for an empty name.
        public init?(_ field: String, name: String) {
            guard let field = ListField(option: field), !name.isEmpty else { return nil }
            self.field = field
            self.name = name
        }
    }

    /// A repository of a hub.
    public struct Hub: Sendable, Hashable {
        /// The URL of the hub, such as `https://huggingface.co`.
        public var endpoint: String
        /// The repository as `OWNER/REPO`, with the prefix `datasets/` for a data set.
        public var repository: String
        /// The commit of the tree.
        public var commit: String

        /// Creates a repository at a commit.
        public init(endpoint: String, repository: String, commit: String) {
            self.endpoint = endpoint
            self.repository = repository
            self.commit = commit
        }
    }

    /// Parses a list in memory.
    ///
    /// - Parameters:
    ///   - form: the format; nil recognizes it by its content.
    ///   - fileName: the name of the list's file, which some formats need.
    /// - Throws: `ManifestError` if the list is unrecognized, malformed, too large, or has a bad entry that is not
    ///   skipped.
    public init(
        parsing bytes: [UInt8], as form: Form? = nil, fileName: String? = nil, _ reading: Reading = Reading()
    ) throws(ManifestError) {
        var reader = ManifestReader(form, fileName: fileName, reading)
        try reader.take(bytes)
        self = try reader.finish()
    }
}

extension Manifest {
    /// Parses a list that a key has signed. Nothing is parsed before the signature is proven.
    ///
    /// - Parameters:
    ///   - key: the signer's key.
    ///   - signature: the contents of the signature's file.
    ///   - bytes: the list as it was received.
    ///   - form: the format; nil recognizes it by its content.
    ///   - fileName: the name of the list's file, which some formats need.
    /// - Returns: the list, with the signer in `facts.signedBy`.
    /// - Throws: the `DownloadError` of `SignatureKey.verify`; `ManifestError` as `init(parsing:)`.
    public static func verified(
        by key: SignatureKey, signature: [UInt8], parsing bytes: [UInt8], as form: Form? = nil, fileName: String? = nil,
        _ reading: Reading = Reading()
    ) throws -> Manifest {
        let signer = try key.verify(signature, of: bytes)
        var manifest = try Manifest(parsing: bytes, as: form, fileName: fileName, reading)
        manifest.facts.signedBy = signer
        return manifest
    }
}

/// Reads a list in portions.
///
/// Lists are parsed as they arrive, and `takeEntries()` removes parsed entries, so memory stays bounded. What is left for
/// each file is about 40 bytes for its name, in forms that refuse two files of one name.
public struct ManifestReader: Sendable {
    private let fileName: String?
    private let reading: Manifest.Reading
    /// The form of the list; nil until it is recognised.
    package private(set) var form: Manifest.Form?
    /// The bytes received before the form was known.
    private var kept: [UInt8] = []
    private var count = 0
    private var encoding = UTF16Text()
    private var lines: LineParser?
    private var document: (any DocumentFormat)?

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - form: the format; nil recognizes it by its beginning.
    ///   - fileName: the name of the list's file, which some formats need.
    public init(_ form: Manifest.Form? = nil, fileName: String? = nil, _ reading: Manifest.Reading = Manifest.Reading())
    {
        self.form = form
        self.fileName = fileName
        self.reading = reading
        if let form { begin(form) }
    }

    /// Reads the next portion.
    ///
    /// - Throws: `ManifestError`; the reader is unusable afterwards.
    public mutating func take(_ bytes: [UInt8]) throws(ManifestError) {
        count += bytes.count
        try parseText(encoding.decode(bytes))
    }

    private mutating func parseText(_ bytes: [UInt8]) throws(ManifestError) {
        if form == nil {
            keep(bytes)
            guard kept.count >= Recognition.usedBytes else { return }
            if kept.count < Recognition.usedBytesOfLine, Recognition.needsMore(kept[...]) { return }
            try recognize()
            return try checkSize()
        }
        try checkSize()
        if !bytes.isEmpty { try parse(bytes) }
    }

    /// Removes and returns the complete entries. The last entry of a list of lines stays, because later lines may belong
    /// to it.
    public mutating func takeEntries() -> [Manifest.Entry] { lines?.drainEntries() ?? document?.drainEntries() ?? [] }

    /// The number of bytes in memory that were not parsed.
    var heldBytes: Int { kept.count + (document?.heldBytes ?? 0) }

    /// Ends the list.
    ///
    /// - Returns: the list without the entries that `takeEntries()` has returned.
    /// - Throws: `ManifestError`, as `init(parsing:)`.
    public mutating func finish() throws(ManifestError) -> Manifest {
        var manifest = try end()
        while true {
            let entries = takeEntries()
            if entries.isEmpty { return manifest }
            manifest.entries += entries
        }
    }

    /// Ends the list. `takeEntries()` returns the entries that are not in the result, in portions: a list whose entries are known at its
    /// end alone then needs little memory.
    ///
    /// - Throws: as `finish()`.
    package mutating func end() throws(ManifestError) -> Manifest {
        let last = encoding.finish()
        if !last.isEmpty { try parseText(last) }
        if form == nil { try recognize() }
        try checkSize()
        let manifest = if lines != nil { try lines!.finish() } else { try document!.finish() }
        // The result has them.
        if !manifest.entries.isEmpty { _ = takeEntries() }
        return manifest
    }

    private mutating func parse(_ bytes: [UInt8]) throws(ManifestError) {
        if lines != nil { try lines!.parse(bytes) } else { try document!.parse(bytes) }
    }

    private mutating func recognize() throws(ManifestError) {
        let found = try Recognition.form(of: kept, fileName: fileName, reading).get()
        form = found
        begin(found)
        if document != nil { try checkSize() }
        let bytes = kept
        kept = []
        try parse(bytes)
    }

    private mutating func begin(_ form: Manifest.Form) {
        switch form {
        case .urls, .aria2: lines = LineParser(form, TextListParser(form, reading))
        case .checksums: lines = LineParser(form, ChecksumListParser(fileName, reading))
        case .bagit: lines = LineParser(form, BagParser(fileName, reading))
        case .csv: lines = LineParser(form, TableParser(reading))
        case .curl: lines = LineParser(form, CurlConfigParser(reading))
        case .esgf: lines = LineParser(form, ESGFParser(reading))
        case .jsonLines: lines = LineParser(form, JSONLinesParser(reading))
        case .lock: lines = LineParser(form, LockParser(reading))
        case .metalink4, .metalink3: document = MetalinkParser(reading)
        case .record, .json: document = JSONDocument(form, reading)
        case .hubTree: document = HubTreeParser(reading)
        }
    }

    /// Stores a portion. A list that arrives in one portion is not copied.
    private mutating func keep(_ bytes: [UInt8]) {
        if kept.isEmpty { kept = bytes } else { kept += bytes }
    }

    private func checkSize() throws(ManifestError) {
        let limit = reading.limit
        guard let form, count > limit else { return }
        let shown = limit % (1 << 20) == 0 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        throw ManifestError(
            form: form,
            "the list is longer than \(shown): divide it" + (form.isDocument ? ", or use a list of lines" : ""))
    }
}
