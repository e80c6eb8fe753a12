import FKMiddleware
import Foundation

extension Downloader {
    // MARK: Adding

    /// Adds a task and queues it. A known task (same URL and folder) is queued again if it was suspended, cancelled or
    /// failed, and has the new options (`Builder.prepare(in:)`).
    ///
    /// - Parameters:
    ///   - folder: the folder for the file, created if missing; nil, the default, keeps the file inside the work path.
    ///   - name: the name of the file; nil, the default, takes it from the server or the URL.
    ///   - checksum: the digest that the file must have; nil, the default, accepts any.
    /// - Returns: the task.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.invalidArgument` for a folder that is not a file URL or an
    ///   invalid name; the errors of `Builder.prepare(in:)`.
    @discardableResult
    public func add(
        _ url: String, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil
    ) async throws(DownloadError) -> DownloadTask {
        try await add(Builder(adding: url, to: folder, named: name, checksum: checksum))
    }

    /// Adds a task for a `URL`; otherwise like `add(_:to:named:checksum:)` with a text.
    @discardableResult
    public func add(
        _ url: URL, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil
    ) async throws(DownloadError) -> DownloadTask {
        try await add(url.absoluteString, to: folder, named: name, checksum: checksum)
    }

    /// Adds the task that a builder describes, and queues it.
    ///
    /// - Throws: the errors of `Builder.prepare(in:)`.
    @discardableResult
    public func add(_ builder: Builder) async throws(DownloadError) -> DownloadTask {
        DownloadTask(try await builder.prepare(in: self), builder.url, in: self)
    }

    /// The task that a selector names; nil if there is none. Of several, the oldest; of a barrel's, the first member.
    public func task(_ selector: some TaskSelecting) async -> DownloadTask? {
        await messager.info(selector).map { DownloadTask($0.id, $0.url, in: self) }
    }

    // MARK: Downloading

    /// Fetches a file: adds a task or joins the known one, waits for it, and returns the place of the file. It starts the
    /// queue if `activateQueue()` was not called yet.
    ///
    /// ```swift
    /// let file = try await downloader.download("https://example.com/a.zip", to: folder)
    /// ```
    ///
    /// - A suspended, cancelled or failed task is queued again. A complete one whose file is there returns at once.
    /// - The call waits until the task is complete, failed, cancelled or gone, also during retries and while the task is
    ///   suspended.
    /// - Cancelling the Swift task throws `.cancelled`. The download stops only if this call was the last that waited
    ///   for it: other calls for the same URL and folder, and readers of `DownloadTask.file`, keep it running. Who
    ///   merely added the task or follows its progress does not count. With several calls, the action of the last one
    ///   counts. When the call throws, the task has stopped.
    ///
    /// - Parameters:
    ///   - folder: the folder for the file, created if missing; nil, the default, keeps the file inside the work path.
    ///   - name: the name of the file; nil, the default, takes it from the server or the URL.
    ///   - checksum: the digest that the file must have; nil, the default, accepts any.
    ///   - deletesOnCancel: true deletes the unfinished bytes when the Swift task is cancelled; false, the default, suspends the
    ///     download, and a later call continues.
    /// - Returns: the file URL of the finished file.
    /// - Throws: the errors of `add(_:to:named:checksum:)` and `DownloadTask.file`.
    @discardableResult
    public func download(
        _ url: String, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        deletesOnCancel: Bool = false
    ) async throws(DownloadError) -> URL {
        try await download(
            Builder(adding: url, to: folder, named: name, checksum: checksum), deletesOnCancel: deletesOnCancel)
    }

    /// Fetches a file of a `URL`; otherwise like `download(_:to:named:checksum:deletesOnCancel:)` with a text.
    @discardableResult
    public func download(
        _ url: URL, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        deletesOnCancel: Bool = false
    ) async throws(DownloadError) -> URL {
        try await download(
            url.absoluteString, to: folder, named: name, checksum: checksum, deletesOnCancel: deletesOnCancel)
    }

    /// Fetches the file that a builder describes; otherwise like `download(_:to:named:checksum:deletesOnCancel:)`.
    @discardableResult
    public func download(_ builder: Builder, deletesOnCancel: Bool = false) async throws(DownloadError) -> URL {
        if Task.isCancelled { throw FileOutcome.waitCancelled }
        let id = engine.workPath.places.id(of: builder.description)
        try checkCanWait(for: id)
        activateQueue()
        // Counted before the task is queued, so that the cancellation of another caller does not stop it.
        await waiters.join(id)
        do throws(DownloadError) {
            let file = try await add(builder).waitForFile()
            waiters.leave(id)
            return file
        } catch {
            if error.code == .cancelled, Task.isCancelled {
                await waiters.leave(id) { [control] in
                    _ = try? await deletesOnCancel ? control.cancel(.id(id)) : control.suspend(.id(id))
                }
            } else {
                waiters.leave(id)
            }
            throw error
        }
    }
}

extension Downloader {
    /// - Throws: `.invalidArgument` inside a request or response middleware of this task: it would wait for itself.
    func checkCanWait(for id: TaskID) throws(DownloadError) {
        guard MiddlewareCall.ownTask(engine.identity) == id else { return }
        throw DownloadError(
            .invalidArgument,
            "A middleware of a task cannot wait for the task's file: the task waits for the middleware.")
    }
}

extension Builder {
    /// A builder with the usual options of a one-line call.
    init(adding url: String, to folder: URL?, named name: String?, checksum: Checksum?) throws(DownloadError) {
        self = try Builder(url)
        if let folder {
            guard folder.isFileURL else {
                throw DownloadError(
                    .invalidArgument, "The folder is not a file URL: use URL(fileURLWithPath:).",
                    url: URLMasking.mask(folder.absoluteString))
            }
            self.folder = folder
        }
        try setFileName(name)
        options.checksum = checksum
    }
}
