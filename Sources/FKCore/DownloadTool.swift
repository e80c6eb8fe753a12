import FKMiddleware

/// One-liners over `Downloader.shared`, for the simple case. Each throws what `Downloader.shared` throws (`.workPathBusy`,
/// for example), besides what the verb or question itself does.
///
/// ```swift
/// let id = try await DownloadTool.download("https://example.com/file.zip", to: "/tmp")
/// ```
public enum DownloadTool {
    /// Adds a task and queues it.
    ///
    /// - Parameter directory: folder for the file, made if needed; nil keeps the file in the work path.
    /// - Returns: the task's id.
    @discardableResult
    public static func download(_ url: String, to directory: String? = nil) async throws -> TaskID {
        var builder = try Builder(url)
        builder.directory = directory
        return try await builder.prepare(in: Downloader.shared)
    }

    /// The task of that URL as it is now; nil when there is none.
    public static func info(_ url: String) async throws -> DownloadInfo? {
        try await Downloader.shared.messager.info(.url(url))
    }

    /// Stops the task; its bytes are kept.
    @discardableResult
    public static func suspend(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.suspend(.url(url))
    }

    /// Stops every task; their bytes are kept.
    @discardableResult
    public static func suspendAll() async throws -> [VerbResult] { try await Downloader.shared.control.suspendAll() }

    /// Lets a suspended task go on.
    @discardableResult
    public static func resume(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.resume(.url(url))
    }

    /// Resumes suspended tasks, and queues cancelled and failed ones again.
    @discardableResult
    public static func resumeAll() async throws -> [VerbResult] { try await Downloader.shared.control.resumeAll() }

    /// Cancels the task and forgets it with every file it wrote.
    @discardableResult
    public static func cancelAndDelete(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.trash(.url(url))
    }
}
