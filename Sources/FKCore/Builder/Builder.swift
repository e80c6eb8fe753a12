import FKEngine
import FKMiddleware
import Foundation

/// Describes a task. `Downloader` and `Barrel` add it.
///
/// ```swift
/// var builder = try Builder("https://example.com/图片.png")
/// builder.folder = URL(fileURLWithPath: "/home/me/Downloads")
/// let task = try await downloader.add(builder)
/// ```
public struct Builder: Sendable {
    /// The current description. Its URL is percent-encoded.
    package internal(set) var description: TaskDescription

    /// Creates a builder for a URL.
    ///
    /// - Parameter url: other characters than URLs may contain, such as Chinese, emoji and spaces, are
    ///   percent-encoded. Existing percent-encoding stays as it is.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`, with the reason.
    public init(_ url: String) throws(DownloadError) {
        description = TaskDescription(url: try url.normalizedURL())
        if !description.url.isExactly(url) { description.given = url }
        description.words = .keepsOrders
    }

    /// Creates a builder for a description. Its URL is normalized already, and its words decide about a known task.
    package init(description: TaskDescription) { self.description = description }

    /// Creates a builder for a `URL`.
    ///
    /// - Throws: same as `init(_:)` with a text.
    public init(_ url: URL) throws(DownloadError) { try self.init(url.absoluteString) }

    /// Creates a builder for a plan of attempts: each URL is asked once, in order, until one of them has sent the file
    /// (ZFRetryDownloader). For example, `[A, A, B]` are at most three attempts: two at A, then one at B. After an attempt that
    /// brought bytes (`RetryPolicy.maxAttempts`) the plan may be gone through again.
    ///
    /// ```swift
    /// let builder = try Builder(plan: ["https://a.example/f.zip", "https://a.example/f.zip", "https://b.example/f.zip"])
    /// ```
    ///
    /// It sets the URL, `mirrors`, `options.maxAttempts` and, for other files, `options.mirrorPolicy`.
    ///
    /// - Parameters:
    ///   - plan: one URL or more, as in `init(_:)`. The first one is the task's URL.
    ///   - sameFile: false if the entries are different files, of which the first that can be had is wanted
    ///     (`MirrorPolicy.alternatives`). The default is true: the bytes of one entry continue those of another.
    /// - Throws: `.invalidArgument` for an empty plan; `.invalidURL` or `.unsupportedScheme` for the first invalid URL.
    public init(plan: [String], sameFile: Bool = true) throws(DownloadError) {
        guard let first = plan.first else {
            throw DownloadError(.invalidArgument, "A plan has at least one URL.")
        }
        try self.init(first)
        try setMirrors(Array(plan.dropFirst()))
        options.maxAttempts = plan.count
        if !sameFile { options.mirrorPolicy = .alternatives }
    }

    /// The id of the task: the same for the same URL and destination. In a base that has moved (`Configure.bases`), the task has
    /// the id of its former destination, which its handle tells.
    public var id: TaskID { description.id }

    /// The percent-encoded URL. Together with the destination it is the task's identity.
    public var url: String { description.url }

    /// The mirrors, tried in order after the URL. For example, URL A with mirrors A and B is tried as A, A, B. The
    /// default is none. Set them with `setMirrors`.
    public var mirrors: [String] { description.mirrors }

    /// Replaces the mirrors.
    ///
    /// - Throws: `.invalidURL` or `.unsupportedScheme` for the first invalid one. The builder is then unchanged.
    public mutating func setMirrors(_ urls: [String]) throws(DownloadError) {
        description.mirrors = try urls.map { url throws(DownloadError) in try url.normalizedURL() }
        description.words.insert(.namesMirrors)
    }

    /// The folder for the finished file, created if missing. nil, the default, keeps the file inside the work path. A relative file
    /// URL is relative to the current folder, when it is set.
    ///
    /// Adding refuses a URL that is not a file URL or whose path is not UTF-8, an empty path, and a path with a zero byte.
    public var folder: URL? {
        get { directory.map { URL(fileURLWithPath: $0, isDirectory: true) } }
        set { description.directory = newValue.map(TaskDescription.directory) }
    }

    /// The path of `folder`. A leading `~` is the home folder, `~name` another user's. Adding refuses an unknown user.
    package var directory: String? {
        get { description.directory }
        set { description.directory = newValue.map(TaskDescription.directory) }
    }

    /// The name of the finished file. nil, the default, takes it from the server (Content-Disposition) or the URL.
    /// Set it with `setFileName`.
    public var fileName: String? { description.fileName }

    /// Sets the name of the finished file.
    ///
    /// - Throws: `.invalidArgument` unless the name is a single plain file name of at most 200 bytes, without control
    ///   or invisible characters, and without the ending of an unfinished file (`.fkpart`, `.fkrejected`).
    public mutating func setFileName(_ name: String?) throws(DownloadError) {
        if let name {
            let fault = name.utf8.count > 200 ? "it is longer than 200 bytes" : FileNameRules.fault(inAsked: name)
            if let fault {
                throw DownloadError(
                    .invalidArgument, "\"\(name.prefix(60).visible)\" cannot be the file's name: \(fault).")
            }
        }
        description.fileName = name
    }

    /// Uses the digest of the percent-encoded URL as the name of the finished file, with the extension of the URL's
    /// last path part: `9a0364b9e99bb480dd25e1f0284c8555.zip`. Caches can then find a file by its URL alone. The name
    /// replaces one set with `setFileName`, and the server cannot change it.
    ///
    /// - Parameter algorithm: the default is MD5, as in MCDownloadManager, so existing names stay valid. A crafted
    ///   collision makes the second task fail with `.fileExists` and replaces no file, unless `options.existing`
    ///   allows that.
    public mutating func useURLDigestAsFileName(_ algorithm: Checksum.Algorithm = .md5) {
        description.fileName = FileNameRules.digestName(url: url, algorithm)
    }

    /// Whether the task continues automatically in a new engine. The default is `.background`.
    public var downloadType: DownloadType {
        get { description.type }
        set {
            description.type = newValue
            description.words.insert(.namesType)
        }
    }

    /// Tasks with a higher priority start earlier. The default is 0.
    public var priority: Int {
        get { description.priority }
        set {
            description.priority = newValue
            description.words.insert(.namesPriority)
        }
    }

    /// True creates the task suspended: it waits for a `resume`. It has no effect on an existing task, nor in
    /// `Downloader.download`, which waits for the file. The default is false.
    public var startsSuspended: Bool {
        get { description.startsSuspended ?? false }
        set { description.startsSuspended = newValue ? true : nil }
    }

    /// The application's own key-value pairs. Middlewares and queries can read them. The default is none.
    public var attributes: [String: String] {
        get { description.attributes }
        set { description.attributes = newValue }
    }

    /// Header fields, checksum, limits and other options. The default leaves every option to the downloader.
    public var options: TaskOptions {
        get { description.options }
        set { description.options = newValue }
    }

    /// What a known task keeps of its settings.
    public enum Replacing: Sendable, Hashable {
        /// It keeps all that the builder does not name. The default.
        case named
        /// The builder's header fields, limits, proxy, retries, type, priority and the like replace the stored ones, and those left
        /// out are reset. Facts about the file stay unless they are named: checksum, size, signature, mirrors.
        case orders
    }

    /// What a known task keeps of its settings. The default is `.named`.
    public var replacing: Replacing {
        get { description.words.contains(.keepsOrders) ? .named : .orders }
        set {
            if newValue == .named {
                description.words.insert(.keepsOrders)
            } else {
                description.words.remove(.keepsOrders)
            }
        }
    }
}

extension Builder: CustomDebugStringConvertible {
    /// The id and the URL, with the secrets of the URL masked. Header fields and other options are left out.
    public var debugDescription: String { "Builder(\(id.short), \(url.masked))" }
}
