import FKEngine
import FKMiddleware
import Foundation

extension Control {
    /// Fetches damaged and missing files again, and queues their tasks. Of a damaged file only the damaged ranges are fetched,
    /// into a copy, from a mirror first if there is one. The copy becomes the task's file once it has the right digest or checksums;
    /// otherwise the task fails with `.changedOnServer`, and the file stays as it was. A damaged file whose length or time has changed
    /// since it was finished may have been edited on purpose: it is kept beside the new one under a free name, such as `name.1.bin`.
    ///
    /// Files that are right or unverifiable are ignored, but a right one whose repair has failed is complete again. A suspended repair
    /// of the same damage continues with the bytes that it has.
    ///
    /// - Returns: the number of files that are fetched. Running tasks are left out.
    @discardableResult
    public func repair(_ files: [VerifiedFile]) async throws(DownloadError) -> Int {
        try await renew(files.compactMap(\.renewal))
    }

    /// Asks servers, with conditional requests, whether finished files have changed. Changed files are fetched again; the old
    /// file stays until the new one is whole. Changed files with `RefreshedFile.isBound` are not fetched. A file that
    /// is missing at its place is fetched again. One that has not changed is complete again if its refresh had failed.
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
            _ = try await renew(files.compactMap(\.renewal))
            return files
        }
    }

    private func renew(_ renewals: [Renewal]) async throws(DownloadError) -> Int {
        guard !renewals.isEmpty else { return 0 }
        return try await engine.perform(.renew(renewals))
    }
}

extension VerifiedFile {
    /// What to fetch, or that the finished file counts again; nil for a file that needs nothing.
    package var renewal: Renewal? {
        var renewal: Renewal
        switch result {
        case .right: return hasFailedRepair ? .restoring(id) : nil
        case .unverifiable: return nil
        case .missing: renewal = Renewal(id)
        case .damaged: renewal = Renewal(id, damaged: damaged)
        }
        renewal.seen = written
        return renewal
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
