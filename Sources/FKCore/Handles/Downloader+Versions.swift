import FKEngine
import FKMiddleware
import Foundation

/// New versions of files that are there.
extension Downloader {
    /// Asks the server whether a finished file has changed, and queues the download of the new version.
    ///
    /// - Returns: the file if it is the server's; nil if the task has to be waited for.
    /// - Throws: the errors of `download(_:to:named:checksum:replacing:revalidates:onCancel:)`.
    func revalidate(_ id: TaskID, _ builder: Builder) async throws(DownloadError) -> URL? {
        guard let info = await messager.info(.id(id)), info.state == .complete, !info.hasLostFile else { return nil }
        if try await renew([builder]).isEmpty == false { return nil }
        guard let answer = try await control.refresh(.id(id)).first else { return nil }
        if Task.isCancelled { throw FileOutcome.waitCancelled }
        switch answer.result {
        case .unchanged:
            // It takes what this call names.
            return try await add(builder).waitForFile()
        case .missing: return nil
        case .changed:
            guard answer.isBound else { return nil }
            throw DownloadError(
                .changedOnServer,
                "The server has another version of the file than its checksum or size allows. The finished file stays: name the new "
                    + "checksum, or take the old one away with Control.change.", url: info.url.masked)
        case .gone:
            throw DownloadError(
                .httpStatus, "The server has no such file any more. The finished file stays.",
                url: info.url.masked, status: 404)
        case .failed(let error): throw error
        }
    }

    /// Queues the download of files whose builders name another digest, other digests of pieces or another length than their tasks have. A
    /// finished file stays until the new one is whole; unfinished bytes of the old version are dropped.
    ///
    /// - Returns: the ids of these tasks.
    /// - Throws: the errors of `Control.change`.
    func renew(_ builders: [Builder]) async throws(DownloadError) -> Set<TaskID> {
        let places = engine.workPath.places
        var asked: [TaskID: TaskFacts] = [:]
        for builder in builders where builder.description.hasOptions {
            asked[places.id(of: builder.description)] = builder.description.facts
        }
        guard !asked.isEmpty else { return [] }
        var changes: [TaskChange] = []
        var renewals: [Renewal] = []
        var dropped: [TaskID] = []
        for record in StoreReader(engine.workPath).records(Array(asked.keys)) {
            guard let facts = asked[record.id], record.task.hasOptions, facts.isOtherVersion(of: record.task.facts)
            else { continue }
            var change = TaskChange(record.id)
            var options = record.task.options
            (options.checksum, options.pieces, options.size) = (facts.checksum, facts.pieces, facts.size)
            (options.list, options.entityTag) = (facts.list, facts.entityTag)
            change.options = options
            changes.append(change)
            if record.state == .complete { renewals.append(Renewal(record.id)) } else { dropped.append(record.id) }
        }
        guard !changes.isEmpty else { return [] }
        // Bytes of the old version would only make the new one fail.
        if !dropped.isEmpty { _ = try await control.apply(.cancel, to: dropped) }
        try await control.change(changes)
        if !renewals.isEmpty { _ = try await typed { try await engine.perform(.renew(renewals)) } }
        return Set(changes.map(\.id))
    }
}

extension TaskFacts {
    /// True if these facts name other bytes than the known ones.
    fileprivate func isOtherVersion(of known: TaskFacts) -> Bool {
        if let checksum, let other = known.checksum, checksum.algorithm == other.algorithm { return checksum != other }
        if let size, let other = known.size, size != other { return true }
        if let checksum, known.checksum != checksum, known.checksum != nil { return true }
        if let pieces, let other = known.pieces, pieces.summary != other.summary { return checksum == nil }
        return false
    }
}
