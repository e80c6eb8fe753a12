import FKMiddleware
import Foundation

/// Describes a task and makes it.
///
/// ```swift
/// var builder = try Builder("https://example.com/图片.png")
/// builder.directory = "/home/me/Downloads"
/// let id = try await builder.prepare(in: downloader)
/// ```
public struct Builder: Sendable {
    /// The description as it stands; its URL is percent-encoded.
    public private(set) var description: TaskDescription

    /// - Parameter url: Chinese, emoji and spaces are percent-encoded; what is encoded already is not encoded twice.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`, saying what is wrong with it.
    public init(_ url: String) throws {
        description = TaskDescription(url: try URLNormalizer.normalize(url))
    }

    /// The same for a `URL`.
    public init(_ url: URL) throws { try self.init(url.absoluteString) }

    /// The percent-encoded URL: with the destination it is the task's identity.
    public var url: String { description.url }

    /// Tried in order after the URL, for example B after A, A. Set with `setMirrors`.
    public var mirrors: [String] { description.mirrors }

    /// - Throws: `.invalidURL` or `.unsupportedScheme` for the first one that is no good; then nothing changes.
    public mutating func setMirrors(_ urls: [String]) throws {
        description.mirrors = try urls.map { try URLNormalizer.normalize($0) }
    }

    /// Folder for the finished file, made if needed; nil keeps the file inside the work path. A relative path counts
    /// from the current folder. A path with a zero byte, and a relative one where the current folder is gone or its name is
    /// not UTF-8, is refused by `prepare`.
    public var directory: String? {
        get { description.directory }
        set { description.directory = newValue.map { ProcessPaths.absolute($0) ?? $0 } }
    }

    /// The name of the finished file; nil lets the server (Content-Disposition) and the URL decide. Set with
    /// `setFileName`.
    public var fileName: String? { description.fileName }

    /// - Throws: `.invalidArgument` when it is not one plain file name of at most 200 bytes, holds control or invisible
    ///   characters, or ends like the names of unfinished files (`.fkpart`, `.fkrejected`).
    public mutating func setFileName(_ name: String?) throws {
        if let name {
            let objection = name.utf8.count > 200 ? "it is longer than 200 bytes" : AskedForName.objection(to: name)
            if let objection {
                throw DownloadError(
                    .invalidArgument,
                    "\"\(Escaping.visible(name.prefix(60)))\" cannot be the file's name: \(objection).")
            }
        }
        description.fileName = name
    }

    /// Names the finished file by the digest of the percent-encoded URL, with the extension of the URL's last path part:
    /// `9a0364b9e99bb480dd25e1f0284c8555.zip`. For caches that find a file by its URL alone. It takes the place of a name
    /// set with `setFileName`, and the server has no say in it.
    ///
    /// - Parameter algorithm: MD5 by default, as in MCDownloadManager, whose names stay valid; a crafted collision makes
    ///   the second task fail with `.fileExists` and replaces nothing, unless `options.existing` says so.
    public mutating func useURLDigestAsFileName(_ algorithm: Checksum.Algorithm = .md5) {
        description.fileName = FileNameRules.digestName(url: url, algorithm)
    }

    /// Default `.background`.
    public var downloadType: DownloadType {
        get { description.type }
        set { description.type = newValue }
    }

    /// Higher starts earlier. Default 0.
    public var priority: Int {
        get { description.priority }
        set { description.priority = newValue }
    }

    /// The application's own pairs, found again by middlewares and queries.
    public var attributes: [String: String] {
        get { description.attributes }
        set { description.attributes = newValue }
    }

    /// Headers, checksum, limits and the rest.
    public var options: TaskOptions {
        get { description.options }
        set { description.options = newValue }
    }

    /// Writes the info file and queues the task. For a task that is known, by URL and destination, the options, mirrors,
    /// type and priority of this builder replace the former ones, and those it leaves out are reset. The same ones again
    /// change nothing.
    ///
    /// - A task that runs takes over a new checksum, rate limit, number of attempts or connections and
    ///   `options.existing` at once. Anything else begins a new attempt; the bytes stay if the server serves ranges.
    /// - Of a complete task the file is read and compared when there is a checksum. A file that
    ///   `options.existing = .skip` kept is fetched when this builder says something else.
    /// - Any other task queues. `attributes` are added to those it has.
    ///
    /// - Returns: the task's id.
    /// - Throws: `.cancelled` for a closed downloader; `.noSpace`, `.disk` and the like when the info file cannot be
    ///   written; `.invalidArgument` for an option outside its range (`TaskOptions.validate()`) or another name for a
    ///   known task without a directory; `.checksumMismatch` or `.tooLarge` for a finished file that is not the one asked
    ///   for, which stays as it is.
    @discardableResult
    public func prepare(in downloader: Downloader) async throws -> TaskID {
        try await Self.prepare([self], in: downloader)[0].get()
    }

    /// Makes many tasks at once.
    ///
    /// - Parameter barrel: the group they join, made when it is not there.
    /// - Returns: one result per builder, in order: the id, or why there is no task.
    /// - Throws: `.invalidArgument` for a barrel name that cannot be one, `.cancelled` for a closed downloader.
    public static func prepare(
        _ builders: [Builder], barrel: String? = nil, in downloader: Downloader
    ) async throws -> [Result<TaskID, DownloadError>] {
        try await downloader.engine.add(builders.map(\.description), barrel: barrel, run: true).map { added in
            if let error = added.error { return .failure(error) }
            return .success(added.id)
        }
    }

    /// Brings tasks of this URL that are known only on disk back into memory.
    ///
    /// - Returns: them as they are now; empty when there are none.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`, `.cancelled` for a closed downloader.
    public static func loadCache(_ url: String, in downloader: Downloader) async throws -> [DownloadInfo] {
        try await downloader.engine.infos(.url(url))
    }

    /// Brings every task of the work path back into memory, in the order of submission. An info file that cannot be read
    /// is left out: see `Downloader.takeProblems()`.
    public static func loadAll(in downloader: Downloader) async throws -> [DownloadInfo] {
        try await downloader.engine.infos(.all)
    }
}
