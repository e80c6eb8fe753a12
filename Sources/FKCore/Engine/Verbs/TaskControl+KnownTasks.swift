import FKMiddleware
import Foundation

/// Existing tasks that are requested again. `KnownTaskRules` decides, and this performs.
extension TaskControl {
    /// Stores the options of the new request and applies them.
    ///
    /// - Returns: true if the finished file has to be compared first (`compare`); nothing is stored then.
    func readmit(_ entry: TaskEntry, as asked: TaskDescription, mayRun: Bool) throws -> Bool {
        // A file that awaits its proof counts as finished.
        let (task, effect) = try KnownTaskRules.decide(
            entry.record.task, in: entry.verbState, file: finishedFile(of: entry), length: entry.record.expected,
            asked: asked)
        if effect == .compare { return true }
        demandProofAgain(of: entry)
        try book.addAttributes(of: asked, to: entry)
        let old = entry.record.task.options
        store(task, in: entry)
        switch effect {
        case .nothing, .compare: break
        case .adjust: adjust(entry, from: old)
        case .restart: entry.run?.restart()
        case .requeue: requeue(entry)
        case .queue: queue(entry, mayRun: mayRun || entry.isAdmitted)
        case .fetchAgain:
            if entry.awaitsProof {
                forgetMissing(entry)
            } else {
                dropBytes(of: entry)
                entry.record.forgetResult()
                queue(entry, mayRun: mayRun || entry.isAdmitted)
            }
        }
        return false
    }

    /// Compares the finished file of an existing task with the checksum and the signature of the request.
    ///
    /// - Returns: the error if the file differs or cannot be compared. Task and file do not change then.
    package func compare(
        _ comparison: DigestCheck, _ results: [EngineReply.Added], isolation: isolated (any Actor)? = #isolation
    ) async -> DownloadError? {
        let id = results[comparison.position].id
        do {
            guard let path = try book.find(id)?.record.path else { throw Self.changedMeanwhile }
            let options = comparison.task.options
            let fault = try await offThread { () throws(DownloadError) in try options.fault(ofFinished: path) }
            try ownership.checkOpen()
            // The task may have changed while the file was read.
            guard let entry = try book.find(id), entry.record.path == path,
                entry.awaitsProof || entry.record.state == .complete
            else { throw Self.changedMeanwhile }
            if let fault {
                throw DownloadError(
                    .checksumMismatch,
                    "\(path) is not the file expected: \(fault). It stays as it is: trash the task to fetch it again.",
                    url: URLMasking.mask(comparison.task.url))
            }
            for note in options.matchNotes { book.appendHistory(entry, by: "checksum", note) }
            let (task, _) = try KnownTaskRules.decide(
                entry.record.task, in: .complete, file: finishedFile(of: entry), length: entry.record.expected,
                asked: comparison.task)
            try book.addAttributes(of: comparison.task, to: entry)
            store(task, in: entry)
            book.write(entry)
            return nil
        } catch {
            return DownloadError(wrapping: error, code: .disk, message: "The finished file could not be compared.")
        }
    }

    private static let changedMeanwhile = DownloadError(
        .cancelled, "The task changed while its finished file was read: ask again.", isRetryable: true)

    private func offThread<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ work: @escaping @Sendable () throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        try await withCheckedContinuation { continuation in
            diskWork.async { continuation.resume(returning: Result { () throws(DownloadError) in try work() }) }
        }.get()
    }

    /// The finished file compared with the record: place and length. A response middleware may have changed the length.
    private func finishedFile(of entry: TaskEntry) -> KnownTaskRules.File {
        let record = entry.record
        guard let path = record.path, let expected = record.expected else { return .gone }
        var status = stat()
        guard stat(path, &status) == 0 else { return .gone }
        if record.isForeign == true { return .foreign }
        // The proof decides about a file that awaits it.
        let isOwn =
            Int64(status.st_size) == expected || entry.awaitsProof || entry.isHandled(by: book.chains.response)
        return isOwn ? .own : .gone
    }

    /// Stores a description. `addAttributes` adds its attributes; they do not replace the stored ones.
    private func store(_ task: TaskDescription, in entry: TaskEntry) {
        var task = task
        task.attributes = entry.record.task.attributes
        guard task != entry.record.task else { return }
        entry.record.task = task
        entry.noteChange()
        // A complete task may leave the memory at any time.
        if entry.record.state != .action { book.write(entry) }
    }

    /// Applies the stored options to the running attempt.
    func adjust(_ entry: TaskEntry, from old: TaskOptions) {
        guard let run = entry.run else { return }
        let new = entry.record.task.options
        // The digest is computed already or is in progress. Another one needs another attempt.
        let isOtherProof = new.checksum != old.checksum || new.signature != old.signature
        if isOtherProof, run.transfer?.lanes.isEmpty ?? true { return run.restart() }
        if entry.record.version.isUnproven { return run.restart() }
        if new.deadline != old.deadline { schedule.watchDeadline(of: entry) }
        if new.rateLimit != old.rateLimit { limits.apply(to: entry) }
        if new.connections != old.connections { run.setConnections(limits.connections(of: entry)) }
    }
}

extension TaskOptions {
    /// Why the finished file is not the one that the checksum and the signature describe; nil if it is. It reads the file.
    ///
    /// - Throws: `.destination` if the file cannot be read; `.invalidArgument` if the signature cannot be verified here.
    fileprivate func fault(ofFinished path: String) throws(DownloadError) -> String? {
        if let checksum {
            let digest: String
            do {
                digest = try Digester.hex(ofFile: URL(fileURLWithPath: path), checksum.algorithm)
            } catch {
                throw DownloadError(
                    wrapping: error, code: .destination, message: "The finished file \(path) cannot be read.")
            }
            if digest != checksum.hex { return "its \(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex)" }
        }
        return try signature?.fault(ofFile: path)
    }

    /// The lines of the history for a finished or existing file that has the checksum and the signature.
    var matchNotes: [String] {
        [checksum.map { "the finished file has the \($0.algorithm.rawValue) asked for" }, signature?.matchNote]
            .compactMap(\.self)
    }
}

extension FileSignature {
    /// The line of the history for a file that has the signature.
    var matchNote: String { "the file is signed by \(SignatureKey.shown(key))" }
}
