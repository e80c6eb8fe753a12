import FKCore
import FKEngine
import FKMiddleware

extension Builder {
    /// Loads the task, or creates it and queues it, as `Downloader.add(_:to:named:checksum:queued:)`, whose default for `queued` is
    /// another one.
    ///
    /// A task (same URL and destination) that exists already keeps its state. A suspended, cancelled or failed task stays as it is
    /// until `queued` is true, `Downloader.download` is called, or a verb such as `Control.action` is given.
    ///
    /// - Parameter queued: true also queues a task that is suspended, cancelled or failed, or complete with its file missing or with
    ///   one that was kept because of `options.existing = .skip` and is to be fetched now. The default is false.
    /// - Returns: the task's id.
    /// - Throws: same as `Downloader.add(_:to:named:checksum:queued:)`.
    @discardableResult
    public func prepare(in downloader: Downloader, queued: Bool = false) async throws(DownloadError) -> TaskID {
        try await Self.prepare([self], queued: queued, in: downloader)[0].get()
    }

    /// Loads or creates many tasks at once.
    ///
    /// - Parameters:
    ///   - barrel: the barrel that the tasks join, created if missing; nil, the default, for none.
    ///   - queued: true also queues known tasks that are not running (`prepare(in:queued:)`). The default is false.
    /// - Returns: one result for each builder, in order: the id, or the error `prepare(in:queued:)` would throw.
    /// - Throws: `.invalidArgument` for an invalid barrel name, `.cancelled` for a closed downloader.
    public static func prepare(
        _ builders: [Builder], barrel: String? = nil, queued: Bool = false, in downloader: Downloader
    ) async throws(DownloadError) -> [Result<TaskID, DownloadError>] {
        try await downloader.prepare(builders, barrel: barrel, queued: queued)
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
