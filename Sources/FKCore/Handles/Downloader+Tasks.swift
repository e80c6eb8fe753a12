import FKMiddleware
import Foundation

extension Downloader {
    // MARK: Adding

    /// Adds a task and queues it. A known task (same URL and folder) is queued again if it was suspended, cancelled or
    /// failed. It keeps its settings, such as its checksum, header fields and priority, unless they are named here.
    ///
    /// - Parameters:
    ///   - folder: the folder for the file, created if missing; nil, the default, keeps the file inside the work path.
    ///   - name: the name of the file; nil, the default, takes it from the server or the URL.
    ///   - checksum: the digest that the file must have; nil, the default, accepts any, or for a known task its own.
    /// - Returns: the task.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.invalidArgument` for a folder that is not a file URL or an
    ///   invalid name; the errors of `Builder.prepare(in:queued:)`.
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
    /// - Throws: the errors of `Builder.prepare(in:queued:)`.
    @discardableResult
    public func add(_ builder: Builder) async throws(DownloadError) -> DownloadTask {
        DownloadTask(try await builder.prepare(in: self, queued: true), builder.url, in: self)
    }

    /// The task that a selector names; nil if there is none. Of several, the oldest; of a barrel's, the first member.
    public func task(_ selector: some TaskSelecting) async -> DownloadTask? {
        await messager.all(selector).first.map { DownloadTask($0.id, $0.url, in: self) }
    }

    // MARK: Downloading

    /// Fetches a file: adds a task or joins the known one, waits for it, and returns the place of the file. It starts the
    /// queue if `activateQueue()` was not called yet.
    ///
    /// ```swift
    /// let file = try await downloader.download("https://example.com/a.zip", to: folder)
    /// ```
    ///
    /// - A suspended, cancelled or failed task is queued again. A complete one whose file is there returns at once. A known task
    ///   keeps what is not named here: its checksum, header fields, priority, limits and mirrors.
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
    ///   - checksum: the digest that the file must have; nil, the default, accepts any, or for a known task its own.
    ///   - replacing: what of a known task's settings this call replaces; the default is what it names.
    ///   - revalidates: true asks the server with a conditional request whether a file that is there has changed, and downloads the new version
    ///     if so. Another checksum than the task's is then a new version, and needs no question. The finished file stays until the new one
    ///     is whole, and if the server cannot be asked. The default is false: a file that is there is returned at once.
    ///   - onCancel: what becomes of the download when the Swift task is cancelled; the default suspends it, and a later call continues.
    /// - Returns: the file URL of the finished file.
    /// - Throws: the errors of `add(_:to:named:checksum:)` and `DownloadTask.file`. With `revalidates` also why the server could not be asked;
    ///   `.httpStatus` with 404 if it has no such file any more; `.changedOnServer` if it has another version than the task's checksum or size
    ///   allows. A call without `revalidates` then returns the file.
    @discardableResult
    public func download(
        _ url: String, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        replacing: Builder.Replacing = .named, revalidates: Bool = false, onCancel: CancelledDownload = .suspend
    ) async throws(DownloadError) -> URL {
        var builder = try Builder(adding: url, to: folder, named: name, checksum: checksum)
        builder.replacing = replacing
        return try await download(builder, revalidates: revalidates, onCancel: onCancel)
    }

    /// Fetches a file of a `URL`; otherwise like `download(_:to:named:checksum:replacing:revalidates:onCancel:)` with a text.
    @discardableResult
    public func download(
        _ url: URL, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        replacing: Builder.Replacing = .named, revalidates: Bool = false, onCancel: CancelledDownload = .suspend
    ) async throws(DownloadError) -> URL {
        try await download(
            url.absoluteString, to: folder, named: name, checksum: checksum, replacing: replacing,
            revalidates: revalidates, onCancel: onCancel)
    }

    /// Fetches the file that a builder describes; otherwise like `download(_:to:named:checksum:replacing:revalidates:onCancel:)`.
    @discardableResult
    public func download(
        _ builder: Builder, revalidates: Bool = false, onCancel: CancelledDownload = .suspend
    ) async throws(DownloadError) -> URL {
        if Task.isCancelled { throw FileOutcome.waitCancelled }
        let id = engine.workPath.places.id(of: builder.description)
        try checkCanWait(for: id)
        activateQueue()
        // Counted before the task is queued, so that the cancellation of another caller does not stop it.
        await waiters.join(id)
        var isRenewal = false
        do throws(DownloadError) {
            if revalidates { isRenewal = await messager.info(.id(id))?.state == .complete }
            if revalidates, let file = try await revalidate(id, builder) {
                waiters.leave(id)
                return file
            }
            let file = try await add(builder).waitForFile()
            waiters.leave(id)
            return file
        } catch {
            if error.code == .cancelled, Task.isCancelled {
                await waiters.leave(id) { [control, messager, isRenewal] in
                    // A finished file, also one that is being replaced, is no unfinished download.
                    let state = await messager.info(.id(id))?.state
                    let isFinished = isRenewal || state == .complete
                    switch onCancel {
                    case .cancel where !isFinished: _ = try? await control.cancel(.id(id))
                    case .forget where !isFinished: _ = try? await control.forget(.id(id))
                    default: _ = try? await control.suspend(.id(id))
                    }
                }
            } else {
                waiters.leave(id)
            }
            throw error
        }
    }
}

/// What becomes of a download when the Swift task that waits for it is cancelled, and no other call waits for it.
public enum CancelledDownload: Sendable, Hashable {
    /// The task is suspended and keeps its bytes. A later call continues.
    case suspend
    /// The unfinished bytes are deleted. The task stays, in the state `.cancel`.
    case cancel
    /// The unfinished bytes are deleted, and so is the task: it leaves no record.
    case forget
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
