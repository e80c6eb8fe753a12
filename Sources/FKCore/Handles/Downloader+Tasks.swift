import FKEngine
import FKMiddleware
import Foundation

extension Downloader {
    // MARK: Adding

    /// Adds a task and queues it: writes its info file, or loads the task that is there (same URL and folder). What is named here
    /// or in the builder is added to a known task, or replaces what it has (`Builder.replacing`); it keeps all else, such as its
    /// checksum, header fields and priority. The same values again change nothing.
    ///
    /// - A known task that was suspended, cancelled or failed is queued again, unless `queued` is false; so is a complete one whose file is
    ///   missing, or was kept because of `options.existing = .skip` and is to be fetched now.
    /// - A running task takes over a new checksum, rate limit, number of attempts, number of connections and
    ///   `options.existing` at once. Any other change starts a new attempt; the bytes are kept if the server serves
    ///   ranges.
    /// - The file of a complete task is read and compared if there is a checksum.
    /// - Another checksum than that of a task whose file is not complete is refused: it would be another file. `Control.change`
    ///   takes the first one away.
    ///
    /// - Parameters:
    ///   - file: an address, or a builder.
    ///   - folder: the folder for the file, created if missing; nil, the default, for that of the builder, else inside the work path.
    ///   - name: the name of the file; nil, the default, for that of the builder, else from the server or the URL.
    ///   - checksum: the digest that the file must have; nil, the default, for that of the builder or of the known task, else any.
    ///   - queued: false leaves a known task in its state, such as suspended, so that the call is safe for each row of a list. The default
    ///     is true. It has no effect on a new task, which is queued unless its builder says `startsSuspended`.
    /// - Returns: the task.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.cancelled` for a closed downloader; `.destination` for a new task with a folder
    ///   inside a work path; `.noSpace`, `.disk` and similar codes if the info file cannot be written; `.invalidArgument` for a folder that is
    ///   not a file URL, an invalid name, an option outside its range, or another name for a known task without a folder;
    ///   `.checksumMismatch` for another checksum; `.checksumMismatch` or `.tooLarge` if the finished file does not match the new options.
    ///   That file stays unchanged.
    @discardableResult
    public func add(
        _ file: some Downloadable, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        queued: Bool = true
    ) async throws(DownloadError) -> DownloadTask {
        let builder = try Builder(adding: file, to: folder, named: name, checksum: checksum)
        return DownloadTask(try await prepare([builder], queued: queued)[0].get(), builder.url, in: self)
    }

    /// Adds many tasks with one request, each as `add(_:to:named:checksum:queued:)`. An invalid address is a failure in its place and
    /// does not affect the others.
    ///
    /// - Parameters:
    ///   - files: addresses, or builders.
    ///   - folder: the folder for the files; nil, the default, for those of the builders, else inside the work path.
    ///   - queued: false leaves known tasks in their states. The default is true.
    /// - Returns: one result for each file, in order: the task, or the error why there is none.
    /// - Throws: `.cancelled` for a closed downloader.
    public func add(
        _ files: [some Downloadable], to folder: URL? = nil, queued: Bool = true
    ) async throws(DownloadError) -> [Result<DownloadTask, DownloadError>] {
        try await add(files, to: folder, barrel: nil, queued: queued)
    }

    /// Adds many tasks, to a barrel if there is one.
    func add(
        _ files: [some Downloadable], to folder: URL?, barrel: String?, queued: Bool
    ) async throws(DownloadError) -> [Result<DownloadTask, DownloadError>] {
        let builders = files.map { file in
            Result { () throws(DownloadError) in try Builder(adding: file, to: folder) }
        }
        let valid = builders.compactMap { try? $0.get() }
        var added = zip(valid, try await prepare(valid, barrel: barrel, queued: queued)).map { builder, result in
            result.map { DownloadTask($0, builder.url, in: self) }
        }[...]
        return builders.map { builder in builder.flatMap { _ in added.removeFirst() } }
    }

    /// Loads or creates tasks.
    ///
    /// - Parameters:
    ///   - barrel: the barrel that the tasks join, created if missing; nil, the default, for none.
    ///   - queued: true also queues known tasks that are not running.
    /// - Returns: one result for each builder, in order.
    /// - Throws: `.invalidArgument` for an invalid barrel name, `.cancelled` for a closed downloader.
    package func prepare(
        _ builders: [Builder], barrel: String? = nil, queued: Bool
    ) async throws(DownloadError) -> [Result<TaskID, DownloadError>] {
        let tasks = builders.map { builder in
            var task = builder.description
            if !queued { task.words.insert(.keepsState) }
            return task
        }
        let added = try await engine.perform(.add(tasks: tasks, barrel: barrel, run: true))
        return added.map { added in
            if let error = added.error { return .failure(error) }
            return .success(added.id)
        }
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
    /// - A suspended, cancelled or failed task is queued again, and a new one is queued also with `Builder.startsSuspended`. A
    ///   complete one whose file is there returns at once. A known task keeps what is not named here: its checksum, header fields,
    ///   priority, limits and mirrors.
    /// - The call waits until the task is complete, failed, cancelled or gone, also during retries and while the task is
    ///   suspended.
    /// - Cancelling the Swift task throws `.cancelled`. The download stops only if this call was the last that waited
    ///   for it: other calls for the same URL and folder, and readers of `DownloadTask.file`, keep it running. Who
    ///   merely added the task or follows its progress does not count. With several calls, the action of the last one
    ///   counts. When the call throws, the task has stopped.
    ///
    /// - Parameters:
    ///   - file: an address, or a builder.
    ///   - folder: the folder for the file, created if missing; nil, the default, for that of the builder, else inside the work path.
    ///   - name: the name of the file; nil, the default, for that of the builder, else from the server or the URL.
    ///   - checksum: the digest that the file must have; nil, the default, for that of the builder or of the known task, else any.
    ///   - replacing: what of a known task's settings this call replaces; nil, the default, is what the builder says, and for an address
    ///     `.named`.
    ///   - revalidates: true asks the server with a conditional request whether a file that is there has changed, and downloads the new version
    ///     if so. Another checksum than the task's is then a new version, and needs no question. The finished file stays until the new one
    ///     is whole, and if the server cannot be asked. The default is false: a file that is there is returned at once.
    ///   - onCancel: what becomes of the download when the Swift task is cancelled; the default suspends it, and a later call continues.
    /// - Returns: the file URL of the finished file.
    /// - Throws: the errors of `add(_:to:named:checksum:queued:)` and `DownloadTask.file`. With `revalidates` also why the server could not be asked;
    ///   `.httpStatus` with 404 if it has no such file any more; `.changedOnServer` if it has another version than the task's checksum or size
    ///   allows. A call without `revalidates` then returns the file.
    @discardableResult
    public func download(
        _ file: some Downloadable, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil,
        replacing: Builder.Replacing? = nil, revalidates: Bool = false, onCancel: CancelledDownload = .suspend
    ) async throws(DownloadError) -> URL {
        var builder = try Builder(adding: file, to: folder, named: name, checksum: checksum)
        if let replacing { builder.replacing = replacing }
        // A suspended task would never end, and the caller waits for it.
        builder.startsSuspended = false
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
                throw FileOutcome.waitCancelled(leaving: await messager.info(.id(id))?.state)
            }
            waiters.leave(id)
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
