extension Manifest {
    /// Settings for reading a list.
    public struct Reading: Sendable, Hashable {
        /// The URL of the folder that relative names and URLs refer to, such as `https://host/pub/`; nil for none.
        /// The default is nil.
        public var baseURL: String?
        /// The repository of a hub's tree, from which its files are fetched; nil for none. The default is nil.
        public var hub: Hub?
        /// True skips bad entries and reports them in `faults`. False throws the first one. Nil, the default, skips
        /// them in Metalink, bags, JSON, lock files and hub trees, and throws for lists of URLs
        /// and checksums.
        public var skipsBadEntries: Bool?
        /// The maximum size of a list in bytes. Nil, the default, means 1 GiB for lists of lines and 256 MiB for
        /// documents, which are read into memory as a whole.
        public var maxBytes: Int?
        /// The maximum number of entries, including bad ones. The default is 10,000,000.
        public var maxEntries = 10_000_000

        /// Creates the default settings.
        public init() {}

        func limit(_ form: Form) -> Int { maxBytes ?? (form.isDocument ? 256 << 20 : 1 << 30) }
        func skipsBadEntries(_ form: Form) -> Bool { skipsBadEntries ?? form.leavesOutBadEntries }
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

/// Reads a list in portions.
///
/// Lists of lines are parsed as they arrive, and `takeEntries()` removes parsed entries, so memory stays bounded.
/// Documents (Metalink, JSON) are kept in memory until `finish()`.
public struct ManifestReader: Sendable {
    private let fileName: String?
    private let reading: Manifest.Reading
    /// The form of the list; nil until it is recognised.
    package private(set) var form: Manifest.Form?
    /// The bytes received before the form was known, or the whole document.
    private var kept: [UInt8] = []
    private var count = 0
    private var lines: LineParser?

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - form: the format; nil recognizes it by the first 64 KiB.
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
        if form == nil {
            keep(bytes)
            guard kept.count >= Manifest.Form.recognizedBytes else { return }
            try recognize()
            return try checkSize()
        }
        try checkSize()
        if lines != nil { try lines?.take(bytes) } else { keep(bytes) }
    }

    /// Removes and returns the complete entries. The last entry stays, because later lines may belong to it.
    public mutating func takeEntries() -> [Manifest.Entry] { lines?.takeEntries() ?? [] }

    /// Ends the list.
    ///
    /// - Returns: the list without the entries that `takeEntries()` has returned.
    /// - Throws: `ManifestError`, as `init(parsing:)`.
    public mutating func finish() throws(ManifestError) -> Manifest {
        if form == nil { try recognize() }
        try checkSize()
        if lines != nil { return try lines!.finish() }
        let bytes = kept
        kept = []
        switch form {
        case .metalink4, .metalink3: return try MetalinkParser.parse(bytes, reading)
        case .hubTree: return try HubTreeParser.parse(bytes, reading)
        default: return try JSONListParser.parse(bytes, reading)
        }
    }

    private mutating func recognize() throws(ManifestError) {
        guard let found = Manifest.Form.recognize(kept, fileName: fileName) else {
            throw ManifestError(form: nil, Manifest.Form.fault(in: kept))
        }
        form = found
        begin(found)
        guard lines != nil else { return }
        let bytes = kept
        kept = []
        try lines?.take(bytes)
    }

    private mutating func begin(_ form: Manifest.Form) {
        switch form {
        case .urls, .aria2: lines = LineParser(form, TextListParser(form, reading))
        case .checksums: lines = LineParser(form, ChecksumListParser(fileName, reading))
        case .bagit: lines = LineParser(form, BagParser(fileName, reading))
        case .lock: lines = LineParser(form, LockParser(reading))
        case .metalink4, .metalink3, .json, .hubTree: lines = nil
        }
    }

    /// Stores a portion. A list that arrives in one portion is not copied.
    private mutating func keep(_ bytes: [UInt8]) {
        if kept.isEmpty { kept = bytes } else { kept += bytes }
    }

    private func checkSize() throws(ManifestError) {
        guard let form, count > reading.limit(form) else { return }
        let limit = reading.limit(form)
        let shown = limit % (1 << 20) == 0 ? "\(limit >> 20) MiB" : "\(limit) bytes"
        throw ManifestError(
            form: form,
            "the list is longer than \(shown): divide it" + (form.isDocument ? ", or use a list of lines" : ""))
    }
}
