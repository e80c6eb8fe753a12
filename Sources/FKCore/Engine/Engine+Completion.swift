import FKMiddleware
import Foundation

/// From the last byte to `complete`: verify, final name, response chain.
extension Engine {
    /// All ranges are there: compare the digest, where one was asked for or told by the server.
    func verify(_ entry: TaskEntry, _ attempt: Attempt) {
        do throws(DownloadError) {
            try settleLength(entry, attempt)
        } catch {
            return fail(entry, error, resumed: attempt.isResumed)
        }
        guard let checksum = expectedDigest(of: entry) else { return publish(entry, attempt) }
        if let digest = attempt.digest, digest.algorithm == checksum.algorithm {
            return verified(entry, attempt, checksum, .success(digest.hex))
        }
        let part = attempt.part
        offEngine(entry.id) { () throws(DownloadError) in
            try part.digest(checksum.algorithm)
        } then: { engine, entry, attempt, result in
            engine.verified(entry, attempt, checksum, result)
        }
    }

    /// The part has exactly the file's length: what somebody appended to it, or what a power cut left behind the bytes
    /// that count, is not the file's.
    private func settleLength(_ entry: TaskEntry, _ attempt: Attempt) throws(DownloadError) {
        guard let expected = entry.record.expected else { return }
        let length = attempt.part.length
        if length > expected { try attempt.part.truncate(to: expected) }
        guard length >= expected else {
            throw DownloadError(
                .incompleteBody, "Somebody shortened the part file: it has \(length) of \(expected) bytes.",
                isRetryable: true)
        }
    }

    private func verified(
        _ entry: TaskEntry, _ attempt: Attempt, _ checksum: Checksum, _ result: Result<String, DownloadError>
    ) {
        switch result {
        case .failure(let error):
            fail(entry, error, resumed: attempt.isResumed)
        case .success(let digest) where digest == checksum.hex:
            publish(entry, attempt)
        case .success(let digest):
            let name = partlessName(entry, attempt)
            let aside = try? setAside(
                attempt.part.name, in: attempt.folder, attempt.part.identity, of: entry
            ) { FileNameRules.rejectedName(for: name, id: entry.id, number: $0) }
            dropBytes(of: entry)
            let whose = entry.record.task.options.checksum == nil ? " as the server tells" : ""
            let place = aside.map { " The bytes were set aside as \($0)." } ?? ""
            // Bytes of an earlier attempt or another mirror may be the wrong ones: once more, from the beginning.
            fail(
                entry,
                DownloadError(
                    .checksumMismatch,
                    "The file is not the one expected: its \(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex)\(whose).\(place)",
                    isRetryable: attempt.isResumed
                ), resumed: false)
        }
    }

    /// The final name as far as it is known: asked for, from the server, or from the URL.
    private func partlessName(_ entry: TaskEntry, _ attempt: Attempt) -> String {
        entry.record.task.fileName
            ?? FileNameRules.name(url: entry.record.task.url, head: attempt.head ?? entry.record.response)
    }

    // MARK: Publishing

    /// Gives the verified file its final name.
    ///
    /// The name is written to the record first: whoever finds the part gone and the file there knows whose it is.
    /// With `Durability.power` the order is: bytes, record, name, folder (each synced before the next).
    private func publish(_ entry: TaskEntry, _ attempt: Attempt) {
        guard configure.durability == .power else {
            if rename(entry, attempt) { respond(entry, attempt) }
            return
        }
        let part = attempt.part
        offEngine(entry.id) { () throws(DownloadError) in
            try part.synchronize()
        } then: { engine, entry, attempt, result in
            if case .failure(let error) = result { return engine.fail(entry, error, resumed: attempt.isResumed) }
            entry.record.synced = true
            if engine.rename(entry, attempt) { engine.syncName(entry, attempt) }
        }
    }

    private func syncName(_ entry: TaskEntry, _ attempt: Attempt) {
        let folder = attempt.folder
        offEngine(entry.id) { () throws(DownloadError) in
            try folder.synchronize()
        } then: { engine, entry, attempt, result in
            if case .failure(let error) = result {
                // A failed task has no finished file: the next attempt would find a stranger's under its name.
                try? engine.unpublish(entry, in: attempt.folder)
                entry.record.synced = nil
                return engine.fail(entry, error, resumed: attempt.isResumed)
            }
            engine.respond(entry, attempt)
        }
    }

    /// Returns false when the attempt has ended instead: in error, or with a file that was there already.
    private func rename(_ entry: TaskEntry, _ attempt: Attempt) -> Bool {
        let name = partlessName(entry, attempt)
        let policy = entry.record.task.options.existing ?? (entry.record.task.fileName == nil ? .rename : .refuse)
        do throws(DownloadError) {
            try attempt.folder.checkStillThere()
            try attempt.part.checkHasItsName()
            recordIdentity(entry, attempt)
            var number = 0
            // A process that was killed in a rename of two steps has left the part under one of the names: each is tried.
            let triesAll = policy != .rename || attempt.folder.status(of: attempt.part.name)?.st_nlink ?? 1 > 1
            while true {
                if !triesAll {
                    number = names.next(
                        attempt.folder.path(of: name), owner: entry.id.short, least: number,
                        look: { attempt.folder.place(of: FileNameRules.numbered(name, $0), owner) })
                }
                let candidate = FileNameRules.numbered(name, number)
                let path = attempt.folder.path(of: candidate)
                entry.record.path = path
                try saveBeforeRename(entry, attempt)
                if configure.durability == .power { try synchronizeInfo(entry) }
                let isNamed = try attempt.folder.rename(
                    attempt.part.name, to: candidate, replacing: policy == .overwrite)
                if isNamed { return true }
                if try takeBack(candidate, entry, attempt) { return true }
                switch policy {
                // Taken since it was looked at.
                case .rename, .overwrite: number += 1
                case .refuse: throw fileExists(path)
                case .skip:
                    _ = try attempt.folder.fileLength(candidate)
                    entry.record.path = path
                    entry.record.isForeign = true
                    entry.record.written = nil
                    // What was written before the rename says nothing of this.
                    attempt.isRecordedComplete = false
                    attempt.part.remove()
                    remember(entry, by: "existing", "\(path) was there already: it was kept")
                    complete(entry)
                    return false
                }
            }
        } catch {
            // The next attempt looks for the folder itself.
            if error.code == .destination { folders.forget(attempt.folder.path) }
            fail(entry, error, resumed: attempt.isResumed)
            return false
        }
    }

    /// What shows from here on that the file is the task's: in the record, and on the file itself where that is not synced
    /// before its record is. With `Durability.power` the record is on the disk before the name, so the file needs no mark.
    private func recordIdentity(_ entry: TaskEntry, _ attempt: Attempt) {
        entry.record.written = attempt.part.identity
        guard configure.durability == .process, let identity = entry.record.written else { return }
        attempt.part.mark(identity, as: entry.id, owner)
    }

    /// A file under the wanted name that this task made before the system went down, and whose record was lost: it is set
    /// aside until the task is complete, and its name taken.
    private func takeBack(
        _ name: String, _ entry: TaskEntry, _ attempt: Attempt
    ) throws(DownloadError) -> Bool {
        guard attempt.folder.isLeftover(name, of: entry.id, owner, before: BootID.began) else { return false }
        _ = try setAside(name, in: attempt.folder, attempt.folder.status(of: name).map(FileIdentity.init), of: entry) {
            FileNameRules.oldName(for: name, id: entry.id, number: $0)
        }
        try saveBeforeRename(entry, attempt)
        if configure.durability == .power { try synchronizeInfo(entry) }
        return try attempt.folder.rename(attempt.part.name, to: name, replacing: false)
    }

    /// With no chain to come after the rename, the record of the finished task is written at once and stands for both
    /// (`TaskRecord.isRenameMissing`); else it first says which name the file is about to get. With `Durability.power` this
    /// is the record that gets synced: one written after the rename would be lost with the power, and a task that was told
    /// to be complete would not be.
    private func saveBeforeRename(_ entry: TaskEntry, _ attempt: Attempt) throws(DownloadError) {
        guard chains.response.isEmpty else {
            entry.work.openInfo = entry.work.openInfo ?? OpenInfoFile()
            return try save(entry)
        }
        foldCounters(entry, attempt)
        let ranges = entry.record.ranges
        entry.record.finish(received: entry.received, at: clock.date)
        do {
            try save(entry, as: .complete)
            try entry.workIfAny?.openInfo?.closeWritten()
        } catch {
            entry.record.ranges = ranges
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be written.")
        }
        // From here on they are one range: should the rename fail, its counter tells what is there.
        attempt.counters.store(0, entry.record.expected ?? 0)
        attempt.isRecordedComplete = true
    }

    func synchronizeInfo(_ entry: TaskEntry) throws(DownloadError) {
        do {
            try InfoFile.synchronize(workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be synced.")
        }
    }

    /// After a crash between the rename and the last record: true when the file bears its final name already.
    func isPublished(_ entry: TaskEntry) -> Bool {
        guard let path = entry.record.path, let partName = entry.record.partName else { return false }
        var status = stat()
        return lstat("\(path.folderPart)/\(partName)", &status) != 0 && entry.record.owns(path)
    }

    // MARK: The response chain

    func respond(_ entry: TaskEntry, _ attempt: Attempt) {
        let chain = chains.response.ordered
        guard !chain.isEmpty, let context = entry.context, let path = entry.record.path else { return complete(entry) }
        // A chain registered in this moment may move the file: the record is then written once more.
        attempt.isRecordedComplete = false
        let response = DownloadResponse(
            task: context, response: (attempt.head ?? entry.record.response)?.httpURLResponse,
            fileURL: URL(fileURLWithPath: path))
        attempt.chain = Task { [weak self, engine = ObjectIdentifier(self), id = entry.id] in
            let end = await MiddlewareCall.inChain(of: engine) { await ResponseChainEnd.run(chain, response) }
            await self?.responseChainEnded(id, end)
        }
    }

    private func responseChainEnded(_ id: TaskID, _ end: ResponseChainEnd) {
        guard let entry = tasks[id], let attempt = entry.attempt else { return }
        attempt.chain = nil
        takePlace(from: end.response, entry, isStopped: attempt.stop != nil)
        if attempt.stop != nil { return attemptStopped(entry, attempt) }
        guard let (name, error) = end.failure else { return completeMoved(entry, attempt) }
        var failure: DownloadError
        if let retry = error as? RetryRequest {
            failure = DownloadError(
                .middleware, "\(name) asks for the file to be fetched again: \(retry.reason)", isRetryable: true,
                retryAfter: retry.delay)
        } else if let error = error as? DownloadError {
            failure = error
        } else {
            failure = DownloadError(.rejected, "\(name) rejected the file: \(error)")
        }
        reject(entry, attempt, failure)
    }

    /// The file does not count, and the next attempt fetches it from the beginning.
    func reject(_ entry: TaskEntry, _ attempt: Attempt, _ failure: DownloadError) {
        let place = setAsideRejected(entry)
        removeLeftBehind(entry)
        dropBytes(of: entry)
        var failure = failure
        failure.underlying = failure.underlying ?? place
        fail(entry, failure, resumed: false)
    }

    /// A rejected file never stays under its final name.
    private func setAsideRejected(_ entry: TaskEntry) -> String? {
        guard let path = entry.record.path, let written = entry.record.written,
            FileIdentity(path: path)?.matches(written) == true, let folder = try? Folder(path: path.folderPart)
        else { return nil }
        let name = path.lastPathPart
        let aside = try? setAside(name, in: folder, written, of: entry) {
            FileNameRules.rejectedName(for: name, id: entry.id, number: $0)
        }
        return aside.map { "the file was set aside as \($0)" }
    }

    /// After the last attempt has failed, response middlewares hear of it. What they throw changes nothing.
    func tellResponseChain(_ entry: TaskEntry, head: ResponseHead?, _ error: DownloadError) {
        let chain = chains.response.ordered
        guard !chain.isEmpty, let context = entry.context else { return }
        let response = DownloadResponse(task: context, response: head?.httpURLResponse, error: error)
        Task { _ = await ResponseChainEnd.run(chain, response) }
    }

    /// The end of a task that went well.
    func complete(_ entry: TaskEntry) {
        if removeSetAside(of: entry) { entry.attempt?.isRecordedComplete = false }
        let isOnDisk = entry.attempt?.isRecordedComplete ?? false
        if !isOnDisk { entry.record.finish(received: entry.received, at: clock.date) }
        entry.attempt?.counters.store(0, entry.record.expected ?? 0)
        entry.record.partName = nil
        taskLimiters[entry.id] = nil
        noteUnsynced(entry)
        end(entry, as: .complete)
    }

    // MARK: Work off the engine's thread

    /// Runs slow disk work elsewhere and comes back with its result, unless the attempt was stopped meanwhile.
    func offEngine<Value: Sendable>(
        _ id: TaskID, _ work: @escaping @Sendable () throws(DownloadError) -> Value,
        then: @escaping @Sendable (isolated Engine, TaskEntry, Attempt, Result<Value, DownloadError>) -> Void
    ) {
        diskWork.async { [self] in
            let result = Result { () throws(DownloadError) in try work() }
            executor.run {
                self.assumeIsolated { engine in
                    guard let entry = engine.tasks[id], let attempt = entry.attempt else { return }
                    if attempt.stop != nil { return engine.attemptStopped(entry, attempt) }
                    then(engine, entry, attempt, result)
                }
            }
        }
    }
}

/// How a walk along the response chain ended.
struct ResponseChainEnd: Sendable {
    var response: DownloadResponse
    /// The middleware that threw, and what.
    var failure: (name: String, error: any Error)?

    /// Walks the chain; the first error of a completed download ends the walk, after a failure all are told.
    static func run(_ chain: [any ResponseMiddleware], _ response: DownloadResponse) async -> ResponseChainEnd {
        var response = response
        for middleware in chain {
            do {
                response = try await middleware.process(response)
            } catch {
                if response.error == nil { return .init(response: response, failure: (middleware.name, error)) }
            }
        }
        return .init(response: response)
    }
}
