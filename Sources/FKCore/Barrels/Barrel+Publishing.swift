import FKEngine
import FKMiddleware
import Foundation

/// A member that has no file, with the reason.
public struct BarrelFailure: Error, Sendable {
    /// The member.
    public let task: DownloadTask
    /// Why there is no file; `.cancelled` for a cancelled member.
    public let error: DownloadError
}

/// What `Barrel.complete()` ends with.
public enum BarrelCompletion: Sendable {
    /// The files of all members, in the order in which the members joined.
    case files([URL])
    /// The members without a file. The others are complete.
    case failures([BarrelFailure])

    /// The files.
    ///
    /// - Throws: the error of the first failure.
    public func get() throws(DownloadError) -> [URL] {
        switch self {
        case .files(let files): return files
        case .failures(let failures):
            throw failures.first?.error ?? DownloadError(.notFound, "The barrel has no members: add some.")
        }
    }
}

extension Barrel {
    // MARK: Completing

    /// Downloads all members and waits for them. Suspended, cancelled and failed members are queued again, and complete ones whose files are
    /// gone are downloaded again. It starts the queue if `activateQueue()` was not called yet.
    ///
    /// Cancelling the Swift task throws `.cancelled` and suspends the members that no other call waits for, as
    /// `Downloader.download(_:to:named:checksum:replacing:revalidates:onCancel:)` does. A later call continues.
    ///
    /// - Returns: the files, or the members that have failed or were cancelled, with their errors.
    /// - Throws: `.notFound` if the barrel is gone or has no members; `.cancelled` if the Swift task is cancelled or the downloader closes.
    @discardableResult
    public func complete() async throws(DownloadError) -> BarrelCompletion {
        if Task.isCancelled { throw FileOutcome.waitCancelled }
        guard try await info.total > 0 else {
            throw DownloadError(.notFound, "The barrel \(name) has no members: add some.")
        }
        let ids = await memberInfos.map(\.id)
        for id in ids { try downloader.checkCanWait(for: id) }
        downloader.activateQueue()
        // Counted before the members are queued, so that the cancellation of another caller does not stop them.
        for id in ids { await downloader.waiters.join(id) }
        do throws(DownloadError) {
            let result = try await waitForMembers()
            for id in ids { downloader.waiters.leave(id) }
            return result
        } catch {
            for id in ids {
                if error.code == .cancelled, Task.isCancelled {
                    await downloader.waiters.leave(id) { [control = downloader.control] in
                        _ = try? await control.suspend(.id(id))
                    }
                } else {
                    downloader.waiters.leave(id)
                }
            }
            throw error
        }
    }

    private func waitForMembers() async throws(DownloadError) -> BarrelCompletion {
        try await resume()
        try await retry()
        let lost = await memberInfos.filter(\.hasLostFile)
        if !lost.isEmpty {
            let tasks = StoreReader(downloader.engine.workPath).records(lost.map(\.id)).map { record in
                var task = TaskDescription(url: record.task.url)
                (task.directory, task.fileName) = (record.task.directory, record.task.fileName)
                task.words = .keepsOrders
                return task
            }
            _ = try await downloader.engine.perform(.add(tasks: tasks, barrel: nil, run: true))
        }
        for await _ in downloader.messager.barrelInfos(name) {}
        var files: [URL] = []
        var failures: [BarrelFailure] = []
        for info in await memberInfos {
            switch FileOutcome.judge(last: nil, present: info, isCancelled: Task.isCancelled) {
            case .success(let file): files.append(file)
            case .failure(let error):
                // Not the member has ended, but the wait.
                if !info.state.isOver { throw error }
                failures.append(BarrelFailure(task: DownloadTask(info.id, info.url, in: downloader), error: error))
            }
        }
        return failures.isEmpty ? .files(files) : .failures(failures)
    }

    // MARK: Publishing

    /// Makes the files of the barrel appear together: at `folder` is no set, the old one or the whole new one, at every moment, also if the
    /// process is killed.
    ///
    /// ```swift
    /// try await barrel.publish(to: models)
    /// ```
    ///
    /// - It downloads what is missing first, as `complete()` does.
    /// - The set is made in a hidden folder beside `folder`: its files share the blocks of the members' files, or are hard links to them; only
    ///   on another file system without an equal file in the old set they are copied. Do not write into them: a hard link is the file of the
    ///   member. The members' files stay where they are.
    /// - Names are relative to the barrel's folder, else to the deepest folder of all files: a member in another folder can change all names.
    /// - With `Configure.syncsFiles` the files and the folder are synced first, so a power cut also leaves the old set or the new one. Without,
    ///   `state` is `.stale` after a restart of the system, until the barrel is published again, which copies nothing.
    /// - The old set is removed, as soon as nobody reads it in `withFiles`. What a killed process leaves is removed when the work path is next
    ///   opened.
    /// - Files in the folder that are not of the set stay there. If the new set has a file of that name, or the file system has no hard links,
    ///   the call throws, and nothing changes.
    ///
    /// File systems that cannot exchange two folders need two renames. There is no folder for a moment between them; a process that is
    /// killed there leaves none, until the work path is next opened.
    ///
    /// - Parameter folder: missing, empty, or a set of this barrel. Folders above it are created.
    /// - Returns: what was done; `isChanged` is false if the folder had this version already.
    /// - Throws: the error of the first member that has failed; `.fileExists` for another folder, and for files that cannot stay;
    ///   `.checksumMismatch` for a member whose file has changed; `.workPathBusy` while another process publishes the barrel; `.noSpace`,
    ///   `.destination` or `.disk`.
    @discardableResult
    public func publish(to folder: URL) async throws(DownloadError) -> PublishedFiles {
        guard folder.isFileURL else {
            throw DownloadError(.invalidArgument, "The folder is not a file URL: use URL(fileURLWithPath:).")
        }
        _ = try await complete().get()
        let (name, workPath, durability) = await (name, downloader.engine.workPath, downloader.configure.durability)
        let path = ProcessInfo.absolute(folder.path) ?? folder.path
        let known = await knownMembers
        return try await blocking {
            try workPath.publish(name, to: path, durability: durability, known: known)
        }
    }

    /// The members, and what the engine has of them in memory.
    private var knownMembers: SetMembers.Known {
        get async {
            let ids = await memberInfos.map(\.id)
            return SetMembers.Known(ids, await downloader.engine.snapshot { $0.recordsInMemory(ids) })
        }
    }

    /// Whether the files are there: of the folder of the last `publish(to:)`, else of the members at their places.
    ///
    /// It compares lengths and times with the mark in the folder and reads no file, so it is quick enough for the start of an application.
    /// Files with other times, as after some restores from a backup, are `.stale` and never `.ready`.
    public var state: BarrelState {
        get async {
            let (name, workPath) = (name, downloader.engine.workPath)
            let known = await knownMembers
            return (try? await blocking { PublishedSets.state(of: name, in: workPath, known: known) }) ?? .absent
        }
    }

    /// True if `state` is `.ready`: all files are there, as they were published.
    public var isReady: Bool {
        get async {
            if case .ready = await state { return true }
            return false
        }
    }

    /// Passes the files of the published set to `body`. Meanwhile the set stays on disk: when a new one is published, open files of the old one
    /// remain readable, and its folder is removed after the last reader. This holds across processes, where the file system has locks.
    ///
    /// The URLs name files in the published folder. Open them before a new set is published, or compare their contents with what you expect.
    ///
    /// - Returns: the result of `body`.
    /// - Throws: `.notFound` if the barrel has no published set; otherwise the error of `body`.
    public func withFiles<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: ([URL]) async throws -> Value
    ) async throws -> Value {
        let lease = try SetLease(name, in: downloader.engine.workPath)
        PublishedSets.markUsed(name, in: downloader.engine.workPath)
        defer { withExtendedLifetime(lease) {} }
        return try await body(lease.files)
    }
}

extension Barrel {
    /// Records that the files of the barrel were used just now, for `Downloader.trim(to:by:)`. `withFiles` does it, too.
    ///
    /// - Throws: `.notFound` if the barrel is gone or has no members, or the error of an info file that cannot be written.
    public func markUsed() async throws(DownloadError) {
        PublishedSets.markUsed(name, in: downloader.engine.workPath)
        try await downloader.control.markUsed(self)
    }
}

extension Downloader {
    /// Deletes finished files of the work path until the rest uses at most `bytes` on disk.
    ///
    /// A barrel goes as a whole, with its published folder; files of tasks without a barrel go one by one. A member of several barrels goes
    /// with the last of them. Only files that are as they were downloaded or published are deleted. A barrel that is being read in
    /// `Barrel.withFiles`, here or in another process, stays, and so does a published folder with a file that no member of the barrel would
    /// fetch again. What killed processes have left beside published folders is deleted first. The tasks stay, so `Barrel.complete()`, `Barrel.publish(to:)` and `download`
    /// fetch the files again.
    ///
    /// - Parameters:
    ///   - bytes: at least 0. Files with several names, such as a published one, count once.
    ///   - order: what goes first; the default is the least recently used.
    /// - Returns: what was deleted, what could not be deleted, and the bytes that the file system got back.
    /// - Throws: `.invalidArgument` for a negative number; `.disk` if the records cannot be read.
    @discardableResult
    public func trim(to bytes: Int64, by order: TrimOrder = .lastUsed) async throws(DownloadError) -> TrimmedFiles {
        guard bytes >= 0 else {
            throw DownloadError(.invalidArgument, "The bytes to keep are at least 0: \(bytes) was given.")
        }
        let workPath = engine.workPath
        return try await blocking { try workPath.trim(to: bytes, by: order) }
    }
}

/// Calls `body` on a thread that may wait for the disk.
private func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
) async throws(DownloadError) -> Value {
    try await typed {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }
}
