import FKMiddleware
import Foundation

/// Whether a task continues automatically when a new engine opens the work path, and who performs its requests where there is a
/// `Configure.background`. Both types keep their bytes.
public enum DownloadType: String, Codable, Sendable, Hashable {
    /// The new engine queues the task. The system performs the requests. The default.
    case background
    /// The new engine suspends the task. The system performs the requests only after `Downloader.enterBackground()`.
    case foreground
}

/// What happens if the final name is taken by a file of another origin.
public enum ExistingFilePolicy: String, Codable, Sendable, Hashable {
    /// The task fails before it fetches anything. The default for a name set by the application.
    case refuse
    /// The finished file replaces the other one atomically.
    case overwrite
    /// The finished file gets the next free name: `name.1.ext`, `name.2.ext` and so on. The default for a name from
    /// the URL or the server.
    case rename
    /// The task completes at once with the existing file. If the task has a checksum, the file must have it; otherwise
    /// the task fails with `.checksumMismatch` and the file stays.
    case skip
}

/// When bytes of several sources of a file may be combined: of its URL, its mirrors, those that a server offers, and an
/// address in place of the URL.
public enum MirrorPolicy: String, Codable, Sendable, Hashable, CaseIterable {
    /// Only where something proves that they are of the same version: a digest of the file or of its pieces, the same
    /// strong entity tag, or the same strong `Last-Modified` and length. Any other source sends the whole file from byte 0
    /// if the first one fails; a mirror whose file has another length is refused. The default.
    case prove
    /// Also where 4 KiB of both are equal. That proves nothing about the rest of the file: two versions that differ in
    /// other places are mixed. The task's history names each such source.
    case combine
    /// As `prove`, and never at the same time: a mirror is used when the source before it has failed.
    case failover
    /// Each is another file, and one of them is wanted: the next is fetched from byte 0 when the one before it has failed,
    /// and has the name that its own address and server give it. A checksum or size of the task holds for all of them.
    case alternatives

    /// True if mirrors may serve beside the URL.
    package var usesSeveralAtOnce: Bool { self == .prove || self == .combine }
}

/// A task without an info file, as `Builder` creates it and as other processes post it.
///
/// Copies share their values until one of them changes, so a copy costs one reference.
package struct TaskDescription: Codable, Sendable, Hashable {
    /// The values of a description.
    fileprivate struct Fields: Sendable, Hashable {
        var url: String
        var given: String?
        var mirrors: [String] = []
        var directory: String?
        var fileName: String?
        var type: DownloadType = .background
        var priority: Int = 0
        var startsSuspended: Bool?
        var words: Int?
        var attributes: [String: String] = [:]
        /// nil if no option is set, which is usual.
        var optionsBox: OptionsBox?

        init(url: String) { self.url = url }
    }

    private var shared: SharedFields<Fields>

    private var own: Fields {
        @inline(__always)
        _read { yield shared.fields }
        @inline(__always)
        _modify { yield &SharedFields.only(&shared).fields }
    }

    /// The URL, percent-encoded.
    package var url: String {
        get { own.url }
        set { own.url = newValue }
    }
    /// The URL as the application gave it; nil if that is `url`.
    package var given: String? {
        get { own.given }
        set { own.given = newValue }
    }
    /// The URLs to try after `url`, in order: url = A with mirrors = [A, B] is tried as A, A, B. The default is none.
    package var mirrors: [String] {
        get { own.mirrors }
        set { own.mirrors = newValue }
    }
    /// The folder for the finished file, an absolute path; nil, the default, keeps the file inside the work path.
    package var directory: String? {
        get { own.directory }
        set { own.directory = newValue }
    }
    /// The name of the finished file; nil, the default, takes it from the server or the URL.
    package var fileName: String? {
        get { own.fileName }
        set { own.fileName = newValue }
    }
    /// Whether the task continues automatically in a new engine. The default is `.background`.
    package var type: DownloadType {
        get { own.type }
        set { own.type = newValue }
    }
    /// Tasks with a higher priority start earlier. The default is 0.
    package var priority: Int {
        get { own.priority }
        set { own.priority = newValue }
    }
    /// True creates the task suspended: it waits for a `resume`. It has no effect on an existing task and is not stored. nil,
    /// the default, means false.
    package var startsSuspended: Bool? {
        get { own.startsSuspended }
        set { own.startsSuspended = newValue }
    }
    /// How the description meets a known task. It has no effect on a new task and is not stored. The default is none: the last word
    /// of a command.
    package var words: TaskWords {
        get { TaskWords(rawValue: own.words ?? 0) }
        set { own.words = newValue.isEmpty ? nil : newValue.rawValue }
    }
    /// The application's own key-value pairs. Middlewares and the info file get them. The default is none.
    package var attributes: [String: String] {
        get { own.attributes }
        set { own.attributes = newValue }
    }
    /// Header fields, checksum, limits and other options. The default leaves every option to the downloader.
    package var options: TaskOptions {
        get { own.optionsBox?.value ?? TaskOptions() }
        set { own.optionsBox = OptionsBox(newValue) }
    }
    /// True if any option is set. It does not allocate default options, unlike `options`.
    package var hasOptions: Bool { own.optionsBox != nil }

    /// The options without a copy of all, to read one; nil if none is set.
    package var optionsBox: OptionsBox? { own.optionsBox }

    /// The origin that may receive the secrets of the options; nil for none.
    package var secretOrigin: URLOrigin? { hasOptions ? options.secretOrigin(of: url) : URLOrigin(url) }

    /// Decodes a description.
    ///
    /// - Throws: `DecodingError` if a field is missing or has another type.
    package init(from decoder: any Decoder) throws {
        self = .blank
        var reader = try FieldDecoder(decoder)
        try visitFields(&reader)
    }

    /// Encodes a description; keys without a value are left out.
    ///
    /// - Throws: the encoder's error.
    package func encode(to encoder: any Encoder) throws {
        var copy = self
        var writer = FieldEncoder(encoder)
        try copy.visitFields(&writer)
    }

    /// Creates a description of a URL with default values.
    ///
    /// - Parameter url: percent-encoded, as `Builder` returns it.
    package init(url: String) { shared = SharedFields(Fields(url: url)) }

    /// The task's id. Two descriptions with the same URL and destination are one task.
    package var id: TaskID {
        TaskID(url: url, destination: directory.map { "\($0)/\(fileName ?? "")" })
    }

    package static func == (one: Self, other: Self) -> Bool { one.shared == other.shared }

    package func hash(into hasher: inout Hasher) { shared.hash(into: &hasher) }
}

extension TaskDescription: RecordObject {
    static let blank = TaskDescription(url: "")

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        if Visitor.isReading { return try own.visit(&visitor) }
        var copy = own
        try copy.visit(&visitor)
    }
}

extension TaskDescription.Fields {
    fileprivate mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("url", &url)
        try visitor.field("given", &given)
        try visitor.field("mirrors", &mirrors)
        try visitor.place("directory", &directory)
        try visitor.field("fileName", &fileName)
        try visitor.field("type", &type)
        try visitor.field("priority", &priority)
        try visitor.field("startsSuspended", &startsSuspended)
        try visitor.field("attributes", &attributes)
        try visitor.usual("options", &optionsBox)
        try visitor.field("words", &words)
        if Visitor.isReading, let box = optionsBox, box.value == TaskOptions() { optionsBox = nil }
    }
}

extension TaskDescription {
    /// Writes the description as `StoreJSON` does. It is compiled for this type; a call of the generic `write` from another
    /// target is not.
    package func writeJSON(to text: inout JSONText) throws { try write(to: &text) }

    /// Reads what `writeJSON` wrote.
    ///
    /// - Throws: an error for any other form.
    package static func readJSON(_ scanner: inout JSONScanner) throws -> TaskDescription { try read(&scanner) }
}
