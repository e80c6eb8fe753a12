import FKMiddleware
import Foundation

extension Messager {
    /// Reads finished files again and compares them with their digests, or with the checksums of the bytes that were received.
    /// It changes nothing. Tasks without a finished file are left out. A task whose refresh or repair has not ended still has the
    /// file from before.
    ///
    /// ```swift
    /// var damaged: [VerifiedFile] = []
    /// for try await file in downloader.messager.verify(.barrel("models")) where file.result != .right {
    ///     damaged.append(file)
    /// }
    /// try await downloader.control.repair(damaged)
    /// ```
    ///
    /// It reads on all processors. The sequence throws `.notFound` for a task or barrel that is unknown.
    public func verify(_ selector: some TaskSelecting) -> AsyncThrowingStream<VerifiedFile, any Error> {
        let workPath = engine.workPath
        return AsyncThrowingStream { continuation in
            let isOver = Locked(false)
            continuation.onTermination = { _ in isOver.withLock { $0 = true } }
            DispatchQueue.global().async {
                do {
                    let ids = try StoreReader(workPath).taskIDs(matching: selector.selector)
                    var unread: DownloadError?
                    FileVerifier(workPath).verify(ids, problem: { unread = unread ?? $0 }) { file in
                        continuation.yield(file)
                        return !isOver.withLock { $0 }
                    }
                    continuation.finish(throwing: unread)
                } catch {
                    continuation.finish(throwing: error)
                }
            }
        }
    }
}

extension Control {
    /// Fetches damaged and missing files again, and queues their tasks. Of a damaged file only the damaged ranges are fetched,
    /// into a copy, from a mirror first if there is one. The copy replaces the file once it has the right digest or checksums.
    /// Otherwise the task fails with `.changedOnServer`, and the file stays as it was. Files that are right or unverifiable
    /// are ignored. A suspended repair of the same damage continues with the bytes that it has.
    ///
    /// - Returns: the number of files that are fetched. Running tasks are left out.
    @discardableResult
    public func repair(_ files: [VerifiedFile]) async throws(DownloadError) -> Int {
        try await renew(files.compactMap(\.renewal))
    }

    /// Asks servers, with conditional requests, whether finished files have changed. Changed files are fetched again; the old
    /// file stays until the new one is whole. Changed files with `RefreshedFile.isBound` are not fetched. A file that
    /// is missing at its place is fetched again.
    ///
    /// - Returns: an answer for each finished file.
    /// - Throws: `.notFound` if nothing matches.
    @discardableResult
    public func refresh(_ selector: some TaskSelecting) async throws(DownloadError) -> [RefreshedFile] {
        try await typed {
            let configure = await engine.currentConfigure
            let own: any Transport = try transport.map { SharedTransport($0) } ?? configure.makeTransport()
            let refresher = FileRefresher(configure, engine.chains, own)
            defer { refresher.close() }
            var files: [RefreshedFile] = []
            await refresher.refresh(try StoreReader(engine.workPath).taskIDs(matching: selector.selector)) {
                files.append($0)
            }
            _ = try await renew(files.filter(\.isFetched).map { Renewal($0.id) })
            return files
        }
    }

    private func renew(_ renewals: [Renewal]) async throws(DownloadError) -> Int {
        guard !renewals.isEmpty else { return 0 }
        return try await engine.perform(.renew(renewals))
    }
}

extension VerifiedFile {
    /// What to fetch; nil for a file that needs nothing.
    package var renewal: Renewal? {
        switch result {
        case .right, .unverifiable: nil
        case .missing: Renewal(id)
        case .damaged: Renewal(id, damaged: damaged)
        }
    }
}

extension StoreReader {
    /// The ids of the selected tasks: a barrel's in the order in which they joined, others in no particular order.
    ///
    /// - Throws: `.notFound` for a barrel, a URL or a task that is unknown.
    package func taskIDs(matching selector: TaskSelector) throws -> [TaskID] {
        switch selector.kind {
        case .all: return try allTaskIDs()
        case .barrel(let name): return try barrelIDs(name).ids
        case .state: return try records(matching: selector).map(\.id)
        case .id, .url:
            let ids = try records(matching: selector).map(\.id)
            guard !ids.isEmpty else { throw DownloadError(.notFound, "There is no such task.") }
            return ids
        }
    }
}
