import FKEngine
import FKMiddleware
import Foundation

/// One task of a downloader: its progress, its file and its verbs.
///
/// ```swift
/// let task = try await downloader.add("https://example.com/a.zip", to: folder)
/// for await progress in task.progress { print(progress.fraction ?? 0) }
/// let file = try await task.file
/// ```
///
/// It is a handle: the task itself is on disk and exists without it. Two handles of one task are equal. A handle keeps
/// its downloader in memory. Safe to use from any thread.
public struct DownloadTask: TaskSelecting, Hashable, Identifiable {
    /// The task's id.
    public let id: TaskID
    /// The URL that the task was created with, percent-encoded.
    public let url: String
    package let downloader: Downloader

    package init(_ id: TaskID, _ url: String, in downloader: Downloader) {
        self.id = id
        self.url = url
        self.downloader = downloader
    }

    /// This task.
    public var selector: TaskSelector { .id(id) }

    private var control: Control { downloader.control }
    private var messager: Messager { downloader.messager }

    // MARK: Questions

    /// The task as it is now; nil if it is gone.
    public var info: DownloadInfo? { get async { await messager.info(.id(id)) } }

    /// The progress as an asynchronous sequence. Every reader receives the first and the last value; a slow one misses
    /// some in between.
    ///
    /// It ends when the task is complete, failed, cancelled or gone, and when the downloader closes. For a task that is
    /// gone it ends without a value. While the task is suspended it waits.
    public var progress: some AsyncSequence<DownloadInfo, Never> & Sendable { messager.infos(.id(id)) }

    /// The finished file. Waits until the task is complete, failed, cancelled or gone; while it is suspended, the wait
    /// continues. Before `Downloader.activateQueue()` it throws, because the task cannot end.
    ///
    /// Cancelling the waiting Swift task ends the wait with `.cancelled`, and the download continues.
    ///
    /// - Throws: the error of a failed task; `.cancelled` if the task is cancelled, trashed or forgotten, if the wait is
    ///   cancelled, and if the downloader closes; `.notFound` if there is no such task, or if its finished file is gone;
    ///   `.invalidArgument` inside a
    ///   request or response middleware that the task waits for, and if the queue is not active.
    public var file: URL {
        get async throws(DownloadError) {
            await downloader.waiters.join(id)
            defer { downloader.waiters.leave(id) }
            return try await waitForFile()
        }
    }

    /// Waits as `file` does, without being counted as a caller that waits.
    func waitForFile() async throws(DownloadError) -> URL {
        try downloader.checkCanWait(for: id)
        if let state = await info?.state, ![.complete, .error, .cancel, .unknown].contains(state),
            await !downloader.engine.startsTasks
        {
            throw DownloadError(
                .invalidArgument, "The queue is not active, so the task cannot end: call activateQueue() first.")
        }
        var last: DownloadInfo?
        for await info in messager.infos(.id(id)) { last = info }
        return try FileOutcome.judge(last: last, present: await info, isCancelled: Task.isCancelled).get()
    }

    // MARK: Verbs

    /// Stops the task and keeps its bytes.
    ///
    /// - Throws: same as every verb here: `.notFound` if the task is gone, `.cancelled` for a closed downloader.
    @discardableResult
    public func suspend() async throws(DownloadError) -> VerbResult { try await give(control.suspend) }

    /// Resumes the suspended task, as soon as a slot is free.
    @discardableResult
    public func resume() async throws(DownloadError) -> VerbResult { try await give(control.resume) }

    /// Suspends the task if it is running or waiting, and resumes or queues it otherwise. A complete one stays.
    @discardableResult
    public func toggle() async throws(DownloadError) -> VerbResult { try await give(control.toggle) }

    /// Stops the task and deletes its unfinished bytes.
    @discardableResult
    public func cancel() async throws(DownloadError) -> VerbResult { try await give(control.cancel) }

    /// Queues the failed or cancelled task again, with a fresh count of attempts.
    @discardableResult
    public func retry() async throws(DownloadError) -> VerbResult { try await give(control.retry) }

    /// Forgets the task and deletes every file it wrote, also a finished one.
    @discardableResult
    public func trash() async throws(DownloadError) -> VerbResult { try await give(control.trash) }

    /// Forgets the task and keeps its finished file. Unfinished bytes are deleted.
    @discardableResult
    public func forget() async throws(DownloadError) -> VerbResult { try await give(control.forget) }

    /// Gives the task another address, for example after its signed link has expired. It keeps its identity, that is, its URL,
    /// its folder and its id.
    ///
    /// Its bytes are kept and joined with those of the new address under the rules for mirrors: the same length, and the
    /// same digest, the same strong ETag or the same bytes before the seam. Otherwise the file is fetched from its
    /// beginning, and the task's history says why (`fk why`). A running task starts a new attempt at once; a waiting or
    /// failed one is queued anew; in any other state the address counts for the next attempt.
    ///
    /// - Parameter url: the new address; the task's own URL removes the one that was set.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; the errors of every verb.
    public func relink(to url: String) async throws(DownloadError) {
        try await control.relink(id, to: url)
    }

    /// Changes the priority. Waiting tasks with a higher one start earlier.
    ///
    /// - Throws: the errors of every verb.
    public func setPriority(_ priority: Int) async throws(DownloadError) {
        try await control.change(id, priority: priority)
    }

    private func give(
        _ verb: (TaskSelector) async throws -> [VerbResult]
    ) async throws(DownloadError) -> VerbResult {
        let results = try await typed { try await verb(.id(id)) }
        guard let result = results.first else { throw DownloadError(.notFound, "There is no task \(id.short).") }
        return result
    }

    // MARK: Identity

    /// Compares id and downloader.
    public static func == (one: DownloadTask, other: DownloadTask) -> Bool {
        one.id == other.id && one.downloader === other.downloader
    }

    /// Hashes the id.
    public func hash(into hasher: inout Hasher) { id.hash(into: &hasher) }
}

extension DownloadTask: CustomStringConvertible {
    /// The id and the URL, with the secrets of the URL masked.
    public var description: String { "DownloadTask(\(id.short), \(url.masked))" }
}
