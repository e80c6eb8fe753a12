import FKMiddleware

/// A list of files from one of several formats: their URLs, names, sizes and digests.
///
/// ```swift
/// let manifest = try Manifest(parsing: bytes, fileName: "release.meta4")
/// for entry in manifest.entries { print(entry.name ?? "", entry.size ?? -1, entry.sources.first?.url ?? "") }
/// for fault in manifest.faults { print("left out:", fault) }
/// ```
///
/// Parsing uses no network, file system or clock. No name in `entries` leaves the folder of the list, and
/// every digest has the length of its algorithm. A list is a value and safe to use from any thread.
public struct Manifest: Sendable, Hashable {
    /// The format of the list.
    public var form: Form
    /// The files, in the order of the list.
    public var entries: [Entry]
    /// Information about the list itself.
    public var facts: Facts
    /// The faults of entries that were left out, at most 1,000.
    public var faults: [ManifestError]
    /// The number of entries that were left out.
    public var faultCount: Int
    /// The number of unsupported sources and digests by kind: `ftp`, `rsync`, `torrent`, `hash tiger`.
    public var passedOver: [String: Int]
    /// The line of the first of each kind of `passedOver`, where there is one.
    package var passedOverLines: [String: Int] = [:]
    /// The number of entries that say the same as an earlier one of their name. They are that entry.
    package var repeatedCount = 0
    /// Names of unsupported options in aria2's form, each once, in the order of first use.
    public var ignoredOptions: [String]

    /// Creates a list. The default is empty.
    public init(form: Form, entries: [Entry] = [], facts: Facts = Facts()) {
        self.form = form
        self.entries = entries
        self.facts = facts
        faults = []
        faultCount = 0
        passedOver = [:]
        ignoredOptions = []
    }

    /// One file of a list.
    ///
    /// `name`, `sources`, `size`, `digests`, `pieces`, `signature` and `attributes` are facts about the file, which anybody may
    /// state. `directory`, `headers` and `options` are orders to the program. Obey them only in a list that the user has chosen, and
    /// not in one that a server sent (`Builder.init(_:in:takesOrders:)`).
    public struct Entry: Sendable, Hashable {
        package var facts: FileFacts
        package var orders: FileOrders

        /// The path of the file relative to its folder, with `/` between folders; nil if the list has only a URL.
        public var name: String? {
            get { facts.name }
            set { facts.name = newValue }
        }
        /// The folder from the list, as written; relative paths stay relative. Nil for none.
        public var directory: String? {
            get { orders.directory }
            set { orders.directory = newValue }
        }
        /// The URLs of the file, best first. Empty if the list has none.
        public var sources: [Source] {
            get { facts.sources }
            _modify { yield &facts.sources }
        }
        /// The size in bytes; nil if unknown.
        public var size: Int64? {
            get { facts.size }
            set { facts.size = newValue }
        }
        /// Digests of the whole file, at most one for each algorithm, strongest first.
        public var digests: [Checksum] {
            get { facts.digests }
            _modify { yield &facts.digests }
        }
        /// Digests of pieces, at most one set for each algorithm, strongest first.
        public var pieces: [Pieces] {
            get { facts.pieces }
            _modify { yield &facts.pieces }
        }
        /// The detached signature, which is stored and not verified; nil for none.
        public var signature: Signature? {
            get { facts.signature }
            set { facts.signature = newValue }
        }
        /// Header fields to send with every request, in order.
        public var headers: [HeaderField] {
            get { orders.headers }
            _modify { yield &orders.headers }
        }
        /// Options of aria2's form except `out`, `dir`, `checksum` and `header`, in order.
        public var options: [Option] {
            get { orders.options }
            _modify { yield &orders.options }
        }
        /// Other information, such as `version`, `language` and `description` of a Metalink.
        public var attributes: [String: String] {
            get { facts.attributes }
            _modify { yield &facts.attributes }
        }
        /// The line at which the entry begins, from 1; 0 if it comes from no list.
        public var line: Int {
            get { facts.line }
            set { facts.line = newValue }
        }

        /// Creates an entry. All other values are empty.
        public init(name: String? = nil, sources: [Source] = [], line: Int = 0) {
            self.init(FileFacts(name: name, sources: sources, line: line))
        }

        /// Creates an entry without orders.
        public init(_ facts: FileFacts) {
            self.facts = facts
            orders = FileOrders()
        }

        /// The strongest digest with which a finished file can be verified; nil if there is none.
        public var checksum: Checksum? { digests.first }
    }

    /// A URL of a file.
    public struct Source: Sendable, Hashable {
        /// As written.
        public var url: String
        /// The priority, 1...999,999. A smaller number is tried first (RFC 5854 section 4.2.16). The default is
        /// 999,999.
        public var priority: Int
        /// The ISO 3166-1 code of the country, in lower case; nil if unknown.
        public var location: String?

        /// The priority of a source without one.
        public static let lowestPriority = 999_999

        /// Creates a source. The default has the lowest priority.
        public init(_ url: String, priority: Int = lowestPriority, location: String? = nil) {
            self.url = url
            self.priority = priority
            self.location = location
        }
    }

    /// Digests of pieces of equal length. The last piece may be shorter.
    public struct Pieces: Sendable, Hashable {
        /// The length in bytes of every piece except the last, at least 1.
        public var length: Int64
        /// The algorithm of the digests.
        public var algorithm: Checksum.Algorithm
        /// All digests in order, `algorithm.byteCount` bytes each. One array, because a list may contain millions.
        public var bytes: [UInt8]

        /// Creates digests of pieces.
        ///
        /// - Parameter bytes: all digests in order; a multiple of `algorithm.byteCount` bytes.
        public init(length: Int64, algorithm: Checksum.Algorithm, bytes: [UInt8]) {
            self.length = length
            self.algorithm = algorithm
            self.bytes = bytes
        }

        /// The number of pieces.
        public var count: Int { bytes.count / algorithm.byteCount }

        /// The digest of a piece.
        ///
        /// - Parameter index: the number of the piece, from 0.
        public subscript(index: Int) -> ArraySlice<UInt8> {
            bytes[index * algorithm.byteCount..<(index + 1) * algorithm.byteCount]
        }
    }

    /// A detached signature of a file.
    public struct Signature: Sendable, Hashable {
        /// The media type; `application/pgp-signature` for OpenPGP.
        public var mediaType: String
        /// As written.
        public var text: String

        /// Creates a signature.
        public init(mediaType: String, text: String) {
            self.mediaType = mediaType
            self.text = text
        }
    }

    /// An option of aria2's form.
    public struct Option: Sendable, Hashable {
        /// The name of an option that aria2 1.37 has.
        public var name: String
        /// The value as written, without surrounding blanks.
        public var value: String

        /// Creates an option.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Information of a list about itself, for the barrel that is created from it. Each value is nil if the list does
    /// not contain it.
    public struct Facts: Sendable, Hashable {
        /// The name of the barrel from which it was exported.
        public var barrel: String?
        /// The origin of the list or its files: the URL of a Metalink, `hf:OWNER/REPO`, or the name of a record.
        public var origin: String?
        /// The commit that a repository is pinned to, or the version of a record.
        public var commit: String?
        /// The signer of the list (`SignatureKey.verify`), as proven by `Manifest.verified`.
        public var signedBy: String?
        /// The signer that a lock file names. It is a claim: the lock itself has no signature.
        public var claimedSigner: String?
        /// The program that wrote it.
        public var generator: String?
        /// The date of the list, as written.
        public var published: String?
        /// The signature around the whole list, such as that of a clear-signed checksum list. It is not verified.
        public var signature: Signature?

        /// No information.
        public init() {}
    }
}
