import FKCore
import FKMiddleware
import Foundation

/// One-line calls on `Downloader.shared` for simple programs. Each throws the errors of `Downloader.shared`, such as
/// `.workPathBusy`, and those of the verb or question itself.
///
/// ```swift
/// let id = try await DownloadTool.add("https://example.com/file.zip", to: URL(fileURLWithPath: "/tmp"))
/// ```
public enum DownloadTool {
    /// `Downloader.shared`, with its queue running.
    private static var active: Downloader {
        get throws(DownloadError) {
            let downloader = try Downloader.shared
            downloader.activateQueue()
            return downloader
        }
    }

    /// Creates a task and queues it. It starts the queue if that was not done yet, as `resume` and `resumeAll` do.
    ///
    /// - Parameter folder: the folder for the file, created if missing; nil, the default, keeps the file inside
    ///   the work path.
    /// - Returns: the task's id.
    @discardableResult
    public static func add(_ url: String, to folder: URL? = nil) async throws(DownloadError) -> TaskID {
        var builder = try Builder(url)
        builder.folder = folder
        return try await builder.prepare(in: active, queued: true)
    }

    /// The same as `add(_:to:)`. It does not wait for the file, unlike `Downloader.download(_:to:)`.
    @discardableResult
    public static func download(_ url: String, to folder: URL? = nil) async throws(DownloadError) -> TaskID {
        try await add(url, to: folder)
    }

    /// Calls `callback` now and at every interval, until `Downloader.shared.messager.removeInfo(url)` (`Messager.addInfo`).
    public static func addInfo(
        _ url: String, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws(DownloadError) {
        try await Downloader.shared.messager.addInfo(url, callback).keep()
    }

    /// The same as `addInfo(_:_:)`. It calls again and again, unlike `Messager.info(_:)`.
    public static func info(
        _ url: String, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) async throws(DownloadError) {
        try await addInfo(url, callback)
    }

    /// Stops the task and keeps its bytes.
    @discardableResult
    public static func suspend(_ url: String) async throws(DownloadError) -> [VerbResult] {
        try await Downloader.shared.control.suspend(.url(url))
    }

    /// Stops every task and keeps their bytes.
    @discardableResult
    public static func suspendAll() async throws(DownloadError) -> [VerbResult] {
        try await Downloader.shared.control.suspendAll()
    }

    /// Resumes a suspended task.
    @discardableResult
    public static func resume(_ url: String) async throws(DownloadError) -> [VerbResult] {
        try await active.control.resume(.url(url))
    }

    /// Resumes suspended tasks, and queues cancelled and failed ones again.
    @discardableResult
    public static func resumeAll() async throws(DownloadError) -> [VerbResult] {
        try await active.control.resumeAll()
    }

    /// Cancels the task, forgets it and deletes every file it wrote.
    @discardableResult
    public static func cancelAndDelete(_ url: String) async throws(DownloadError) -> [VerbResult] {
        try await Downloader.shared.control.trash(.url(url))
    }
}
