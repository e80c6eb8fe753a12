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
    /// if the first one fails. The default.
    case prove
    /// Also where 4 KiB of both are equal. That proves nothing about the rest of the file: two versions that differ in
    /// other places are mixed. The task's history names each such source.
    case combine
    /// As `prove`, and never at the same time: a mirror is used when the source before it has failed.
    case failover
}

/// How many connections one file may use. More than one requires a server that serves ranges under a strong
/// validator, and at least 2 MiB left to fetch.
public enum ConnectionLimit: Sendable, Hashable, Codable {
    /// Starts with one connection and uses four times as many while that raises the throughput by at least 10 %, up
    /// to 16. The default.
    case automatic
    /// Up to this many connections, 1 to 256; each needs at least 1 MiB left. `TaskOptions.validate` refuses other
    /// numbers.
    case fixed(Int)
}

/// The options of a task, stored in its info file.
///
/// Asking for an existing task again replaces all its options; options left out are reset (`Builder.prepare(in:)`).
/// Values outside their ranges are refused with `.invalidArgument` (`validate()`).
public struct TaskOptions: Codable, Sendable, Hashable {
    /// Header fields sent with every request of the task, in order. The default is none. A name must be a token (RFC
    /// 9110 section 5.6.2), and a value must not contain CR, LF or NUL.
    public var headers: [HeaderField]?
    /// Names of those header fields that must not follow a redirect to another origin. The default is none.
    public var secretHeaders: [String]?
    /// The digest that the finished file must have; nil, the default, accepts any. A file with another digest fails
    /// with `.checksumMismatch`.
    public var checksum: Checksum?
    /// The signature that the finished file must have; nil, the default, needs none. The file gets its name only when it is
    /// proven. Another file fails with `.checksumMismatch`; without the program that verifies this kind of signature, the
    /// task fails with `.invalidArgument` and its bytes stay.
    public var signature: FileSignature?
    /// The maximum length of the file in bytes, at least 0; nil, the default, sets no limit. A longer file fails with
    /// `.tooLarge`.
    public var maxSize: Int64?
    /// The length that the file must have in bytes, at least 0; nil, the default, accepts any. A longer file fails with
    /// `.tooLarge` and a shorter one with `.changedOnServer`, before its body is fetched if the server tells its length.
    public var size: Int64?
    /// The media type that the server must send, such as `application/zip` or `image/*`, or `file` for anything but a web
    /// page; nil, the default, refuses a web page only under the name of an archive, image, medium, package or document.
    /// Another type fails with `.protocolViolation` before the body is fetched.
    public var expectedType: String?
    /// Bytes to keep free on the disk of the file, at least 0; nil, the default, uses `Configure.minFree`.
    public var minFree: Int64?
    /// The number of connections; nil, the default, uses `Configure.connections`.
    public var connections: ConnectionLimit?
    /// When bytes of several sources may be combined; nil, the default, uses `Configure.mirrorPolicy`.
    public var mirrorPolicy: MirrorPolicy?
    /// The rate limit of this task in bytes per second, at least 0. nil, the default, and 0 set no limit. The lowest
    /// of all limits applies.
    public var rateLimit: Int64?
    /// The number of attempts including the first, 1 to 1001; nil, the default, uses
    /// `RetryPolicy.maxAttempts`.
    public var maxAttempts: Int?
    /// The time for connecting and for receiving nothing, 1 ms to 1e9 seconds; nil, the default, uses the downloader's
    /// timeouts.
    public var timeout: Duration? {
        get { timeoutSeconds.map { Duration(inSeconds: $0) } }
        set { timeoutSeconds = newValue?.inSeconds }
    }
    /// The time without a byte after which an attempt fails with `.timeout`, 1 ms to 1e9 seconds; below one second
    /// counts as one. nil, the default, uses `timeout`, else `TransportOptions.stallTimeout`.
    public var stallTimeout: Duration? {
        get { stallSeconds.map { Duration(inSeconds: $0) } }
        set { stallSeconds = newValue?.inSeconds }
    }
    /// When the file must be complete; nil, the default, sets no limit. A task that is queued or running at that time,
    /// or that starts after it, fails with `.deadlineExceeded` and is not tried again. Its bytes are kept. The range is
    /// 1970 to `Date.distantFuture`; a time in the past is allowed.
    public var deadline: Date?
    /// Same as `TransportOptions.caFile`; nil, the default, uses the downloader's.
    public var caFile: URL? {
        get { caPath.map(URL.file) }
        set { caPath = newValue?.absoluteURL.filePath }
    }
    /// Same as `TransportOptions.cookieFile`; nil, the default, uses the downloader's. The info file has the path alone.
    public var cookieFile: URL? {
        get { cookiePath.map(URL.file) }
        set { cookiePath = newValue?.absoluteURL.filePath }
    }
    /// Same as `TransportOptions.pinnedPublicKey`; nil, the default, uses the downloader's.
    public var pinnedPublicKey: String?
    /// Same as `TransportOptions.insecure`; nil, the default, uses the downloader's.
    public var insecure: Bool?
    /// Same as `TransportOptions.proxy`; nil, the default, uses the downloader's, and an empty text no proxy.
    public var proxy: String?
    /// Same as `TransportOptions.netrc`; nil, the default, uses the downloader's.
    public var netrc: Bool?
    /// What to do if the final name is taken; nil, the default, means `.refuse` for a name set by the application and
    /// `.rename` for any other.
    public var existing: ExistingFilePolicy?

    /// True takes the bytes from a finished file of the same work path that has the task's SHA-256 `checksum` and is
    /// unchanged: they are cloned or copied, and verified. Otherwise the file is fetched. nil, the default, means false.
    public var reuse: Bool?

    /// The names of `headers`, in lower case, that a list gives for all addresses of its entry, as aria2 does: mirrors of other
    /// origins get them too, secret ones included. nil, the default, without any.
    package var listHeaders: [String]?
    /// The digests of the file's pieces, from a list; nil, the default, without any.
    package var pieces: PieceDigests?
    /// Same as `TransportOptions.httpVersion`; nil, the default, uses the downloader's.
    package var httpVersion: TransportOptions.HTTPVersion?
    /// Same as `TransportOptions.dnsServers`; nil, the default, uses the downloader's.
    package var dnsServers: String?
    /// Same as `TransportOptions.dohURL`; nil, the default, uses the downloader's.
    package var dohURL: String?
    /// The provider of `AWSSignature` that signs requests to the origin of the task's URL; nil, the default, signs none. The
    /// credentials are those of `AWSCredentials.usual()` at each attempt, and are not stored.
    package var awsSignature: String?
    /// The list that gave `checksum` or `pieces`, or that was signed; nil, the default, without any.
    package var list: ListOrigin?
    /// The path of `caFile`.
    package var caPath: String?
    /// The path of `cookieFile`.
    package var cookiePath: String?
    /// `timeout` in seconds.
    package var timeoutSeconds: Double?
    /// `stallTimeout` in seconds.
    package var stallSeconds: Double?

    /// The stored form has seconds and paths.
    private enum CodingKeys: String, CodingKey {
        case headers, secretHeaders, checksum, maxSize, size, minFree, connections, rateLimit, maxAttempts, deadline,
            signature
        case pinnedPublicKey, insecure, proxy, netrc, existing, reuse, pieces, mirrorPolicy, listHeaders, expectedType,
            list, httpVersion, dnsServers, dohURL, awsSignature
        case caPath = "caFile"
        case cookiePath = "cookieFile"
        case timeoutSeconds = "timeout"
        case stallSeconds = "stallTimeout"
    }

    /// Creates options that leave everything to the downloader.
    public init() {}

    /// The header fields for a URL of the task. Another origin than that of the task's own URL, such as a mirror's, gets none of
    /// the secret ones, as curl and browsers do with redirects: they belong to the server that they were given for. Those of
    /// `listHeaders` were given for all.
    package func headers(for url: String, of task: String) -> [HeaderField] {
        guard let headers, !headers.isEmpty, url != task, URLOrigin(url) != URLOrigin(task) else {
            return headers ?? []
        }
        let secret = Set((secretHeaders ?? []).map { $0.lowercased() }).union(HeaderField.alwaysSecret)
            .subtracting(listHeaders ?? [])
        return headers.filter { !secret.contains($0.name.lowercased()) }
    }

    /// The downloader's transport options, overridden by this task's.
    package func transportOptions(over base: TransportOptions) -> TransportOptions {
        var options = base
        if let timeoutSeconds {
            options.connectSeconds = timeoutSeconds
            options.stallSeconds = timeoutSeconds
        }
        if let stallSeconds { options.stallSeconds = stallSeconds }
        if let caPath { options.caPath = caPath }
        if let cookiePath { options.cookiePath = cookiePath }
        if let pinnedPublicKey { options.pinnedPublicKey = pinnedPublicKey }
        if let insecure { options.insecure = insecure }
        if let proxy { options.proxy = proxy }
        if let netrc { options.netrc = netrc }
        if let httpVersion { options.httpVersion = httpVersion }
        if let dnsServers { options.dnsServers = dnsServers }
        if let dohURL { options.dohURL = dohURL }
        return options
    }
}

/// A task without an info file, as `Builder` creates it and as other processes post it.
///
/// Copies share their values until one of them changes, so a copy costs one reference.
package struct TaskDescription: Codable, Sendable, Hashable {
    /// The values of a description.
    fileprivate struct Fields: Sendable, Hashable {
        var url: String
        var mirrors: [String] = []
        var directory: String?
        var fileName: String?
        var type: DownloadType = .background
        var priority: Int = 0
        var startsSuspended: Bool?
        var attributes: [String: String] = [:]
        /// nil if no option is set, which is usual.
        @Boxed var ownOptions: TaskOptions?
        var hasOptions: Bool { _ownOptions.isThere }

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
    /// The application's own key-value pairs. Middlewares and the info file get them. The default is none.
    package var attributes: [String: String] {
        get { own.attributes }
        set { own.attributes = newValue }
    }
    /// Header fields, checksum, limits and other options. The default leaves every option to the downloader.
    package var options: TaskOptions {
        get { own.ownOptions ?? TaskOptions() }
        set { own.ownOptions = newValue == TaskOptions() ? nil : newValue }
    }
    /// True if any option is set. It does not allocate default options, unlike `options`.
    package var hasOptions: Bool { own.hasOptions }

    /// One option; nil if it is not set. Nothing is made for a task without options, unlike by `options`.
    @inlinable
    package func option<Value>(_ read: (TaskOptions) -> Value?) -> Value? { hasOptions ? read(options) : nil }

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

    /// Compares the values.
    package static func == (one: Self, other: Self) -> Bool { one.shared == other.shared }

    /// Hashes the values.
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
        try visitor.field("mirrors", &mirrors)
        try visitor.place("directory", &directory)
        try visitor.field("fileName", &fileName)
        try visitor.field("type", &type)
        try visitor.field("priority", &priority)
        try visitor.field("startsSuspended", &startsSuspended)
        try visitor.field("attributes", &attributes)
        try visitor.rare("options", &ownOptions, isRequired: true)
        if Visitor.isReading, hasOptions, ownOptions == TaskOptions() { ownOptions = nil }
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
