extension Manifest {
    /// How a list is read.
    public struct Reading: Sendable, Hashable {
        /// The folder that relative names and addresses of the list are in, such as `https://host/pub/`.
        public var baseURL: String?
        /// The repository that the files of a hub's tree are fetched from.
        public var hub: Hub?
        /// True leaves bad entries out and reports them in `faults`; false throws the first of them. nil does what
        /// fits the form: Metalink, bags, JSON, lock files and hub trees leave them out, lists of lines are refused.
        public var skipsBadEntries: Bool?
        /// The largest list that is read, in bytes. Default: 1 GiB for lists of lines, 256 MiB for documents, which
        /// are in memory as a whole.
        public var maxBytes: Int?
        /// The most entries, bad ones included. Default: 10,000,000.
        public var maxEntries = 10_000_000

        /// The defaults.
        public init() {}

        func limit(_ form: Form) -> Int { maxBytes ?? (form.isDocument ? 256 << 20 : 1 << 30) }
        func skipsBadEntries(_ form: Form) -> Bool { skipsBadEntries ?? form.leavesOutBadEntries }
    }

    /// A repository of a hub.
    public struct Hub: Sendable, Hashable {
        /// Such as `https://huggingface.co`.
        public var endpoint: String
        /// `OWNER/REPO`, with `datasets/` in front of it for a data set.
        public var repository: String
        /// The commit that the tree is of.
        public var commit: String

        /// A repository at a commit.
        public init(endpoint: String, repository: String, commit: String) {
            self.endpoint = endpoint
            self.repository = repository
            self.commit = commit
        }
    }

    /// Parses a list that is in memory.
    ///
    /// - Parameters:
    ///   - form: nil recognises it by its content.
    ///   - fileName: the name of the list's file, which some forms need.
    /// - Throws: `ManifestError` for a list that is not read at all: unrecognised, malformed, too large, or with a bad
    ///   entry where those are not left out.
    public init(
        parsing bytes: [UInt8], as form: Form? = nil, fileName: String? = nil, _ reading: Reading = Reading()
    ) throws(ManifestError) {
        var reader = ManifestReader(form, fileName: fileName, reading)
        try reader.take(bytes)
        self = try reader.finish()
    }
}

/// Reads a list that comes in portions.
///
/// Lists of lines are parsed as they come, and `takeEntries()` empties what has been parsed, so that memory stays
/// bounded. Documents (Metalink, JSON) are kept until `finish()`.
public struct ManifestReader: Sendable {
    private let fileName: String?
    private let reading: Manifest.Reading
    private var form: Manifest.Form?
    /// What came before the form was known, or the whole document.
    private var kept: [UInt8] = []
    private var count = 0
    private var lines: LineParser?

    /// - Parameters:
    ///   - form: nil recognises it by the first 64 KiB.
    ///   - fileName: the name of the list's file, which some forms need.
    public init(_ form: Manifest.Form? = nil, fileName: String? = nil, _ reading: Manifest.Reading = Manifest.Reading())
    {
        self.form = form
        self.fileName = fileName
        self.reading = reading
        if let form { begin(form) }
    }

    /// Takes the next portion.
    ///
    /// - Throws: `ManifestError`; the reader is of no use afterwards.
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

    /// The entries that are whole, without those taken before. The last one so far stays: lines behind it may belong
    /// to it.
    public mutating func takeEntries() -> [Manifest.Entry] { lines?.takeEntries() ?? [] }

    /// Ends the list.
    ///
    /// - Returns: the list without the entries that `takeEntries()` has returned.
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
            throw ManifestError(form: nil, Manifest.Form.objection(to: kept))
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

    /// A list that comes at once is not copied.
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
