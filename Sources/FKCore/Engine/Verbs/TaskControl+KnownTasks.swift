import FKMiddleware
import Foundation

/// Existing tasks that are requested again. `KnownTaskRules` decides, and this performs.
extension TaskControl {
    /// Stores the options of the new request and applies them.
    ///
    func readmit(_ entry: TaskEntry, as asked: TaskDescription, mayRun: Bool) throws -> Readmission {
        let keepsState = asked.words.contains(.keepsState)
        // A file that awaits its proof counts as finished.
        let (decided, effect) = try KnownTaskRules.decide(
            entry.record.task, in: entry.verbState, file: finishedFile(of: entry), length: entry.record.expected,
            asked: asked)
        var result = Readmission()
        if effect == .compare {
            result.isCompared = true
            return result
        }
        if !keepsState { demandProofAgain(of: entry) }
        let task = try keepingPieces(of: asked, in: decided, entry.id)
        let staysFinished = entry.verbState == .complete && effect != .fetchAgain && effect != .renew
        var added = asked.attributes
        if staysFinished {
            (added, result.isOutdated) = ListedVersion.keeping(entry.record.task.attributes, added)
            result.isEdited = isEdited(entry)
        }
        try book.add(added, to: entry)
        let old = entry.record.task.options
        result.isChanged = old.checksum.map { $0 != task.options.checksum } ?? false || effect == .renew
        store(task, in: entry)
        switch effect {
        case .nothing, .compare: break
        case .adjust: adjust(entry, from: old)
        case .restart:
            if task.options.runSeconds != old.runSeconds { schedule.rewatchDeadline(of: entry) }
            entry.taskRun?.restart()
        case .requeue: requeue(entry)
        case .queue: queue(entry, mayRun: mayRun || entry.isAdmitted)
        case .fetchAgain:
            if entry.awaitsProof {
                forgetMissing(entry)
            } else {
                fetchAgain(entry, mayRun: mayRun || entry.isAdmitted)
            }
        case .renew: renewVersion(of: entry, mayRun: mayRun || entry.isAdmitted)
        }
        return result
    }

    /// What was found about a known task that is requested again.
    struct Readmission {
        /// True if the finished file has to be compared first (`compare`), so that nothing is stored.
        var isCompared = false
        /// True if the file has another version now.
        var isChanged = false
        /// True if a listing has another version, which is not fetched.
        var isOutdated = false
        /// True if somebody has changed the finished file, which stays.
        var isEdited = false
    }

    /// True for a finished file of the task that somebody has changed since.
    private func isEdited(_ entry: TaskEntry) -> Bool {
        guard let path = entry.record.path, entry.record.isForeign != true, !entry.awaitsProof,
            !entry.isHandled(by: book.chains.response)
        else { return false }
        return entry.record.claim(path, book.owner) == .oursEdited
    }

    /// Queues a complete task whose file is gone.
    func fetchAgain(_ entry: TaskEntry, mayRun: Bool = true) {
        dropBytes(of: entry)
        entry.record.forgetResult()
        queue(entry, mayRun: mayRun)
    }

    /// Queues a complete task whose list has another version of its file. The finished file stays until the new one is whole.
    private func renewVersion(of entry: TaskEntry, mayRun: Bool) {
        entry.awaitsProof = false
        entry.record.removePart(of: book.workPath, book.owner)
        entry.record.renew(damaged: nil)
        entry.dropBytes()
        book.appendHistory(entry, by: "list", "the list has another version of the file, which is fetched")
        reporter.account(entry)
        queue(entry, mayRun: mayRun)
        book.write(entry)
    }

    /// Compares the finished file of an existing task with the checksum, the signature and the digests of pieces of the request.
    ///
    /// - Returns: the error if the file differs or cannot be compared. Task and file do not change then. The new state if the list has
    ///   another version of the file, which is fetched; otherwise nil.
    package func compare(
        _ comparison: DigestCheck, _ results: [AddResult], isolation: isolated (any Actor)? = #isolation
    ) async -> Result<DownloadState?, DownloadError> {
        let id = results[comparison.position].id
        do {
            guard let path = try book.find(id)?.record.path else { throw Self.changedMeanwhile }
            let options = comparison.task.options
            let pieces = options.pieces.flatMap { pieces in
                pieces.bytes == nil ? PieceDigestFile.read(book.workPath.digestsPath(id), of: pieces) : pieces
            }
            let fault = try await offThread { () throws(DownloadError) in try options.fault(ofFinished: path, pieces) }
            try ownership.checkOpen()
            // The task may have changed while the file was read.
            guard let entry = try book.find(id), entry.record.path == path,
                entry.awaitsProof || entry.record.state == .complete
            else { throw Self.changedMeanwhile }
            if fault != nil, entry.record.task.isNewVersion(comparison.task),
                !comparison.task.words.contains(.keepsState)
            {
                let task = try entry.record.task.joined(with: comparison.task)
                store(try keepingPieces(of: comparison.task, in: task, id), in: entry)
                renewVersion(of: entry, mayRun: entry.isAdmitted)
                return .success(entry.record.state)
            }
            if let fault {
                throw DownloadError(
                    .checksumMismatch,
                    "\(path) is not the file expected: \(fault). It stays as it is: trash the task to fetch it again.",
                    url: comparison.task.url.masked)
            }
            for note in options.matchNotes { book.appendHistory(entry, by: "checksum", note) }
            let (decided, _) = try KnownTaskRules.decide(
                entry.record.task, in: .complete, file: finishedFile(of: entry), length: entry.record.expected,
                asked: comparison.task)
            let task = try keepingPieces(of: comparison.task, in: decided, id)
            try book.add(comparison.task.attributes, to: entry)
            store(task, in: entry)
            book.write(entry)
            return .success(nil)
        } catch {
            return .failure(
                DownloadError(wrapping: error, code: .disk, message: "The finished file could not be compared."))
        }
    }

    private static let changedMeanwhile = DownloadError(
        .cancelled, "The task changed while its finished file was read: ask again.", isRetryable: true)

    /// Writes the digests of pieces of a request beside the info file if the task has them now, and leaves their summary in the
    /// description.
    private func keepingPieces(
        of asked: TaskDescription, in task: TaskDescription, _ id: TaskID
    ) throws -> TaskDescription {
        guard let pieces = asked.optionsBox?.value.pieces, let kept = task.optionsBox?.value.pieces,
            pieces.summary == kept.summary
        else { return task }
        if pieces.bytes != nil { try PieceDigestFile.write(pieces, book.workPath.digestsPath(id)) }
        var task = task
        if kept.bytes != nil { task.options.pieces = kept.summary }
        return task
    }

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

    /// Stores a description. `TaskBook.add` adds its attributes; they do not replace the stored ones.
    private func store(_ task: TaskDescription, in entry: TaskEntry) {
        var task = task
        task.attributes = entry.record.task.attributes
        guard task != entry.record.task else { return }
        entry.record.task = task
        entry.recordChange()
        // A complete task may leave the memory at any time.
        if entry.record.state != .action { book.write(entry) }
    }

    /// Applies the stored options to the running attempt.
    func adjust(_ entry: TaskEntry, from old: TaskOptions) {
        guard let run = entry.taskRun else { return }
        let new = entry.record.task.options
        // The digest is computed already or is in progress. Another one needs another attempt.
        let isOtherProof = new.checksum != old.checksum || new.signature != old.signature
        if isOtherProof, run.transfer?.lanes.isEmpty ?? true { return run.restart() }
        if entry.record.version.isUnproven { return run.restart() }
        if new.deadline != old.deadline || new.runSeconds != old.runSeconds { schedule.rewatchDeadline(of: entry) }
        if new.rateLimit != old.rateLimit { limits.apply(to: entry) }
        if new.connections != old.connections { run.setConnections(limits.connections(of: entry)) }
    }
}

extension TaskOptions {
    /// Why the finished file is not the one that the checksum, the digests of its pieces and the signature describe; nil if it is.
    /// It reads the file.
    ///
    /// - Throws: `.destination` if the file cannot be read; `.invalidArgument` if the signature cannot be verified here.
    fileprivate func fault(
        ofFinished path: String, _ pieces: PieceDigests?
    ) throws(DownloadError) -> String? {
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
        if let pieces, let fault = try FileVerifier.fault(of: path, pieces) { return fault }
        return try signature?.fault(ofFile: path)
    }

    /// The lines of the history for a finished or existing file that has the checksum, the digests of pieces and the signature.
    var matchNotes: [String] {
        [
            checksum.map { "the finished file has the \($0.algorithm.rawValue) asked for" },
            pieces.map { "the pieces of the finished file have the list's \($0.algorithm.rawValue)" },
            signature?.matchNote,
        ].compactMap(\.self)
    }
}

extension FileSignature {
    /// The line of the history for a file that has the signature.
    var matchNote: String { "the file is signed by \(SignatureKey.shown(key))" }
}
