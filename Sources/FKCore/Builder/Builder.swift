import FKMiddleware
import Foundation

/// Describes a task and creates it.
///
/// ```swift
/// var builder = try Builder("https://example.com/图片.png")
/// builder.folder = URL(fileURLWithPath: "/home/me/Downloads")
/// let id = try await builder.prepare(in: downloader)
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
        description = TaskDescription(url: try URLNormalizer.normalize(url))
    }

    /// Creates a builder for a description. Its URL is normalized already.
    package init(description: TaskDescription) { self.description = description }

    /// Creates a builder for a `URL`.
    ///
    /// - Throws: same as `init(_:)` with a text.
    public init(_ url: URL) throws(DownloadError) { try self.init(url.absoluteString) }

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
        description.mirrors = try urls.map { url throws(DownloadError) in try URLNormalizer.normalize(url) }
    }

    /// The folder for the finished file, created if missing. nil, the default, keeps the file inside the work path. A relative file
    /// URL is relative to the current folder, when it is set.
    ///
    /// `prepare` refuses a URL that is not a file URL or whose path is not UTF-8, an empty path, and a path with a zero byte.
    public var folder: URL? {
        get { directory.map { URL(fileURLWithPath: $0, isDirectory: true) } }
        set { description.directory = newValue.map(TaskDescription.directory) }
    }

    /// The path of `folder`. A leading `~` is the home folder, `~name` another user's. `prepare` refuses an unknown user.
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
            let fault = name.utf8.count > 200 ? "it is longer than 200 bytes" : AskedForName.fault(in: name)
            if let fault {
                throw DownloadError(
                    .invalidArgument,
                    "\"\(Escaping.visible(name.prefix(60)))\" cannot be the file's name: \(fault).")
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
        set { description.type = newValue }
    }

    /// Tasks with a higher priority start earlier. The default is 0.
    public var priority: Int {
        get { description.priority }
        set { description.priority = newValue }
    }

    /// True creates the task suspended: it waits for a `resume`. It has no effect on an existing task. The default is
    /// false.
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

    /// Writes the info file and queues the task. If the task (same URL and destination) exists already, the options,
    /// mirrors, type and priority of this builder replace the stored ones; options left out are reset. The same
    /// values again change nothing.
    ///
    /// - A running task takes over a new checksum, rate limit, number of attempts, number of connections and
    ///   `options.existing` at once. Any other change starts a new attempt; the bytes are kept if the server serves
    ///   ranges.
    /// - The file of a complete task is read and compared if there is a checksum. A file that was kept because of
    ///   `options.existing = .skip` is fetched if this builder has another policy.
    /// - A task in any other state is queued. `attributes` are added to the stored ones.
    ///
    /// - Returns: the task's id.
    /// - Throws: `.cancelled` for a closed downloader; `.destination` for a new task with a folder inside a work path;
    ///   `.noSpace`, `.disk` and similar codes if the info file cannot be written; `.invalidArgument` for an option outside its range (`TaskOptions.validate()`), or for another
    ///   name for an existing task without a directory; `.checksumMismatch` or `.tooLarge` if the finished file does
    ///   not match the new options. That file stays unchanged.
    @discardableResult
    public func prepare(in downloader: Downloader) async throws(DownloadError) -> TaskID {
        try await Self.prepare([self], in: downloader)[0].get()
    }

    /// Creates many tasks at once.
    ///
    /// - Parameter barrel: the barrel that the tasks join, created if missing; nil, the default, for none.
    /// - Returns: one result for each builder, in order: the id, or the error `prepare(in:)` would throw.
    /// - Throws: `.invalidArgument` for an invalid barrel name, `.cancelled` for a closed downloader.
    public static func prepare(
        _ builders: [Builder], barrel: String? = nil, in downloader: Downloader
    ) async throws(DownloadError) -> [Result<TaskID, DownloadError>] {
        let added = try await downloader.engine.perform(
            .add(tasks: builders.map(\.description), barrel: barrel, run: true))
        return added.map { added in
            if let error = added.error { return .failure(error) }
            return .success(added.id)
        }
    }

    /// Loads the tasks of a URL from disk into memory.
    ///
    /// - Returns: the tasks as they are now; empty if there are none.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.cancelled` for a closed downloader.
    public static func loadCache(
        _ url: String, in downloader: Downloader
    ) async throws(DownloadError) -> [DownloadInfo] {
        try await typed { try await downloader.engine.snapshot { try $0.infos(.url(url)) } }
    }
}
