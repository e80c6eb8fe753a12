import FKMiddleware

/// One-liners over `Downloader.shared`, for the simple case.
///
/// ```swift
/// let id = try await DownloadTool.download("https://example.com/file.zip", to: "/tmp")
/// ```
public enum DownloadTool {
    /// Adds a task and starts it.
    @discardableResult
    public static func download(_ url: String, to directory: String? = nil) async throws -> TaskID {
        var builder = try Builder(url)
        builder.directory = directory
        return try await builder.prepare(in: Downloader.shared)
    }

    public static func info(_ url: String) async throws -> DownloadInfo? {
        try await Downloader.shared.messager.info(.url(url))
    }

    @discardableResult
    public static func suspend(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.suspend(.url(url))
    }

    @discardableResult
    public static func suspendAll() async throws -> [VerbResult] { try await Downloader.shared.control.suspendAll() }

    @discardableResult
    public static func resume(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.resume(.url(url))
    }

    @discardableResult
    public static func resumeAll() async throws -> [VerbResult] { try await Downloader.shared.control.resumeAll() }

    /// Cancels the task and forgets it with every file it wrote.
    @discardableResult
    public static func cancelAndDelete(_ url: String) async throws -> [VerbResult] {
        try await Downloader.shared.control.trash(.url(url))
    }
}
