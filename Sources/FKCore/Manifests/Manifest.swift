import FKMiddleware

/// A list of files as some format describes it: where they are, what they are called and how to know them.
///
/// ```swift
/// let manifest = try Manifest(parsing: bytes, fileName: "release.meta4")
/// for entry in manifest.entries { print(entry.name ?? "", entry.size ?? -1, entry.sources.first?.url ?? "") }
/// for fault in manifest.faults { print("left out:", fault) }
/// ```
///
/// Parsing is pure: no network, no file system, no clock. No name in `entries` leaves the folder it is put into
/// (`ManifestName`), and every digest has the length of its algorithm.
public struct Manifest: Sendable, Hashable {
    /// The format it was written in.
    public var form: Form
    /// The files, in the order of the list.
    public var entries: [Entry]
    /// What the list says about itself.
    public var facts: Facts
    /// Entries that were left out, and why: at most 1,000 of them.
    public var faults: [ManifestError]
    /// How many entries were left out.
    public var faultCount: Int
    /// Sources and digests of kinds that are not used here, counted by kind: `ftp`, `rsync`, `torrent`, `hash tiger`.
    public var passedOver: [String: Int]
    /// Option names of aria2's form that have no meaning here, each once, in the order they were met.
    public var ignoredOptions: [String]

    /// A list of the given files.
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
    public struct Entry: Sendable, Hashable {
        /// Path of the file below its folder, with `/` between folders. nil where the list gives only an address.
        public var name: String?
        /// The folder that the list chooses, as written; relative paths are still relative.
        public var directory: String?
        /// Where the file can be fetched, best first. Empty where the list has no addresses.
        public var sources: [Source]
        /// Bytes.
        public var size: Int64?
        /// Digests of the whole file, at most one for each algorithm, strongest first.
        public var digests: [ManifestDigest]
        /// Digests of pieces, at most one set for each algorithm, strongest first.
        public var pieces: [Pieces]
        /// Kept as it is; nothing here checks it.
        public var signature: Signature?
        /// Header fields to send with every request, in order.
        public var headers: [ResponseHead.Field]
        /// Options of aria2's form other than `out`, `dir`, `checksum` and `header`, in order.
        public var options: [Option]
        /// Other facts, such as `version`, `language` and `description` of a Metalink.
        public var attributes: [String: String]
        /// Where the entry begins in the list, from 1; 0 when it comes from no list.
        public var line: Int

        /// An entry with nothing else.
        public init(name: String? = nil, sources: [Source] = [], line: Int = 0) {
            self.name = name
            self.sources = sources
            self.line = line
            size = nil
            digests = []
            pieces = []
            headers = []
            options = []
            attributes = [:]
        }

        /// The strongest digest that a finished file can be compared with; nil when there is none.
        public var checksum: Checksum? { digests.lazy.compactMap(\.checksum).first }
    }

    /// One address of a file.
    public struct Source: Sendable, Hashable {
        /// As written.
        public var url: String
        /// 1...999,999: a smaller number is tried first (RFC 5854 section 4.2.16). 999,999 where none is given.
        public var priority: Int
        /// ISO 3166-1 code of the country, in lower case.
        public var location: String?

        /// The priority of an address that has none.
        public static let lowestPriority = 999_999

        /// An address of a file.
        public init(_ url: String, priority: Int = lowestPriority, location: String? = nil) {
            self.url = url
            self.priority = priority
            self.location = location
        }
    }

    /// Digests of pieces of one length. The last piece may be shorter.
    public struct Pieces: Sendable, Hashable {
        /// Bytes of every piece but the last, at least 1.
        public var length: Int64
        /// Which digest it is.
        public var algorithm: ManifestDigest.Algorithm
        /// All digests one behind the other, `algorithm.byteCount` bytes each: a list may hold millions.
        public var bytes: [UInt8]

        /// - Parameter bytes: a multiple of `algorithm.byteCount`.
        public init(length: Int64, algorithm: ManifestDigest.Algorithm, bytes: [UInt8]) {
            self.length = length
            self.algorithm = algorithm
            self.bytes = bytes
        }

        /// The number of pieces.
        public var count: Int { bytes.count / algorithm.byteCount }

        /// The digest of a piece, from 0.
        public subscript(index: Int) -> ArraySlice<UInt8> {
            bytes[index * algorithm.byteCount..<(index + 1) * algorithm.byteCount]
        }
    }

    /// A detached signature of a file.
    public struct Signature: Sendable, Hashable {
        /// `application/pgp-signature` for OpenPGP.
        public var mediaType: String
        /// As written.
        public var text: String

        /// A signature as written.
        public init(mediaType: String, text: String) {
            self.mediaType = mediaType
            self.text = text
        }
    }

    /// An option of aria2's form.
    public struct Option: Sendable, Hashable {
        /// One of `Aria2Options.known`.
        public var name: String
        /// As written, without blanks around it.
        public var value: String

        /// A pair as written.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What a list says about itself, for the barrel that is made of it.
    public struct Facts: Sendable, Hashable {
        /// The name of the barrel it was written from.
        public var barrel: String?
        /// Where the list or its files come from: the address of a Metalink, or `hf:OWNER/REPO`.
        public var origin: String?
        /// The commit that a repository is pinned to.
        public var commit: String?
        /// The program that wrote it.
        public var generator: String?
        /// When it was written, as the list has it.
        public var published: String?
        /// The signature around the whole list, such as a clear-signed checksum list has; nothing here checks it.
        public var signature: Signature?

        /// Nothing.
        public init() {}
    }
}
