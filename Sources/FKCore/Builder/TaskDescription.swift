import FKMiddleware

/// Whether a task goes on by itself when a new engine opens the work path. Both kinds keep their bytes.
public enum DownloadType: String, Codable, Sendable, Hashable {
    /// Queued again by itself. The default.
    case background
    /// Comes back suspended.
    case foreground
}

/// What to do when the final name is taken by a file that is not this task's own.
public enum ExistingFilePolicy: String, Codable, Sendable, Hashable {
    /// The task fails before anything is fetched. The default for a name that was asked for.
    case refuse
    /// The finished file replaces it, atomically.
    case overwrite
    /// The next free `name.1.ext`, `name.2.ext`, … is taken. The default for a name that came from the URL or the server.
    case rename
    /// The task completes at once with the file that is there.
    case skip
}

/// How many connections one file may use. More than one need a server that serves ranges under a strong validator, and
/// a rest of at least 2 MiB.
public enum ConnectionLimit: Sendable, Hashable, Codable {
    /// One at first, then four times as many while that raises the throughput by at least 10 %, up to 16. The default.
    case automatic
    /// Up to this many, 1...256; each needs at least 1 MiB left. Another number is refused by `TaskOptions.validate`.
    case fixed(Int)
}

/// Everything about a task that its creator decides. Kept in the info file.
///
/// Whoever asks for a known task again replaces all of its options, the ones left out included
/// (`Builder.prepare(in:)`). Values outside their ranges are refused with `.invalidArgument` (`validate()`).
public struct TaskOptions: Codable, Sendable, Hashable {
    /// Header fields sent with every request of the task, in order. A name is a token, and a value has no CR, LF or NUL:
    /// others are refused.
    public var headers: [ResponseHead.Field]?
    /// Names of those headers that must not follow a redirect to another origin.
    public var secretHeaders: [String]?
    /// The digest the finished file must have; nil compares nothing. Another one ends in `.checksumMismatch`.
    public var checksum: Checksum?
    /// Bytes, at least 0: a file that is longer ends in `.tooLarge`. Default: no limit.
    public var maxSize: Int64?
    /// Bytes that stay free on the disk of the file, 0 or more; nil takes `Configure.minFree`.
    public var minFree: Int64?
    /// nil takes `Configure.connections`.
    public var connections: ConnectionLimit?
    /// Bytes a second for this task, at least 0; the tightest of all limits counts. nil and 0: no limit of its own.
    public var rateLimit: Int64?
    /// Attempts in all, the first included, 1...1001, values outside are clamped; nil takes `RetryPolicy.maxAttempts`.
    public var maxAttempts: Int?
    /// Seconds for connecting and for any silence, 0.001...1e9; nil takes the downloader's.
    public var timeout: Double?
    /// As `TransportOptions.caFile`; nil takes the downloader's, as the three below.
    public var caFile: String?
    /// As `TransportOptions.insecure`.
    public var insecure: Bool?
    /// As `TransportOptions.proxy`; an empty text uses none.
    public var proxy: String?
    /// As `TransportOptions.netrc`.
    public var netrc: Bool?
    /// nil: `.refuse` where a file name was asked for, else `.rename`.
    public var existing: ExistingFilePolicy?

    /// Nothing of its own: everything is the downloader's.
    public init() {}

    /// The downloader's transport options with this task's own on top.
    func transportOptions(over base: TransportOptions) -> TransportOptions {
        var options = base
        if let timeout {
            options.connectTimeout = timeout
            options.stallTimeout = timeout
        }
        if let caFile { options.caFile = caFile }
        if let insecure { options.insecure = insecure }
        if let proxy { options.proxy = proxy }
        if let netrc { options.netrc = netrc }
        return options
    }
}

/// A task before it has an info file: what `Builder` makes and what other processes post.
public struct TaskDescription: Codable, Sendable, Hashable {
    /// Percent-encoded.
    public var url: String
    /// Tried in order after `url`: the plan A, A, B is url = A, mirrors = [A, B].
    public var mirrors: [String] = []
    /// Absolute path; nil keeps the file inside the work path.
    public var directory: String?
    /// The name asked for; nil lets the server and the URL decide.
    public var fileName: String?
    /// Default `.background`.
    public var type: DownloadType = .background
    /// Higher starts earlier. Default 0.
    public var priority: Int = 0
    /// The application's own pairs, handed to middlewares and found again in the info file.
    public var attributes: [String: String] = [:]
    /// Headers, checksum, limits and the rest.
    public var options: TaskOptions {
        get { ownOptions ?? TaskOptions() }
        set { ownOptions = newValue == TaskOptions() ? nil : newValue }
    }
    /// Nil where they say nothing, which is what most tasks have.
    @Seldom private var ownOptions: TaskOptions?
    /// Its options say something; asked for without making the empty ones.
    package var hasOptions: Bool { _ownOptions.isThere }

    private enum CodingKeys: String, CodingKey {
        case url, mirrors, directory, fileName, type, priority, attributes, options
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        url = try values.decode(String.self, forKey: .url)
        mirrors = try values.decode([String].self, forKey: .mirrors)
        directory = try values.decodeIfPresent(String.self, forKey: .directory)
        fileName = try values.decodeIfPresent(String.self, forKey: .fileName)
        type = try values.decode(DownloadType.self, forKey: .type)
        priority = try values.decode(Int.self, forKey: .priority)
        attributes = try values.decode([String: String].self, forKey: .attributes)
        options = try values.decode(TaskOptions.self, forKey: .options)
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(url, forKey: .url)
        try values.encode(mirrors, forKey: .mirrors)
        try values.encodeIfPresent(directory, forKey: .directory)
        try values.encodeIfPresent(fileName, forKey: .fileName)
        try values.encode(type, forKey: .type)
        try values.encode(priority, forKey: .priority)
        try values.encode(attributes, forKey: .attributes)
        try values.encode(options, forKey: .options)
    }

    /// - Parameter url: percent-encoded already; `Builder` does it for what a person typed.
    public init(url: String) { self.url = url }

    /// The task's id. Two descriptions with the same URL and destination are the same task.
    public var id: TaskID {
        TaskID(url: url, destination: directory.map { "\($0)/\(fileName ?? "")" })
    }
}
