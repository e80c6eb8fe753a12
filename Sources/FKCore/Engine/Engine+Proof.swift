import FKMiddleware
import Foundation

/// After another boot: what was complete and not synced is looked at before it counts as complete again (`FileProof`).
extension Engine {
    /// Finds the finished files whose names never got to the disk, before anything is done in their folders that would
    /// change the folders' times. Once in a boot.
    func findLost() {
        for id in workPath.allTaskIDs() {
            guard let entry = readEntry(id, isNew: false), entry.record.needsProof(), !entry.record.isRenameMissing,
                let path = entry.record.path, Self.file(path) == nil,
                FileProof.judge(
                    nil, of: entry.record, folderChanged: Self.folderChanged(path), isComparable: false) == .torn
            else { continue }
            tellLost(path, entry)
            forgetFile(of: entry)
            entry.record.state = .idle
            write(entry)
        }
    }

    private func tellLost(_ path: String, _ entry: TaskEntry) {
        problems.append("\(path) had not reached the disk when the system went down: it is fetched again.")
        remember(entry, by: "resume", "the file had not reached the disk when the system went down")
    }

    private func forgetFile(of entry: TaskEntry) {
        entry.awaitsProof = false
        dropBytes(of: entry)
        entry.record.finished = nil
    }

    /// The task queues for a slot as if it had something to fetch.
    func demandProof(of entry: TaskEntry) {
        entry.record.state = .idle
        entry.record.partName = nil
        entry.awaitsProof = true
    }

    /// Somebody asks for a file that was taken away: there is nothing to be proven of it.
    func forgetMissing(_ entry: TaskEntry) {
        guard entry.awaitsProof, entry.attempt == nil, let path = entry.record.path, Self.file(path) == nil else {
            return
        }
        forgetFile(of: entry)
        write(entry)
    }

    func prove(_ entry: TaskEntry) throws(DownloadError) {
        guard let path = entry.record.path, let expected = entry.record.expected else { return try fetchAgain(entry) }
        let checksum = expectedDigest(of: entry)
        let pieces = PieceChecksum.covering(entry.record.pieces, length: expected)
        let proof = FileProof.judge(
            Self.file(path), of: entry.record, folderChanged: Self.folderChanged(path),
            isComparable: checksum != nil || pieces != nil)
        if proof == .torn { return try fetchAgain(entry) }
        // It is no attempt to fetch anything.
        entry.record.attempts -= 1
        switch proof {
        case .complete, .torn: proven(entry, "the file was taken away after the task was complete")
        case .anothers:
            problems.append("\(path) is not the file as the task left it: it stays as it is, and was not compared.")
            proven(entry, "\(path) is not the file as the task left it: it stays as it is")
        case .compare:
            let file: PartFile
            do {
                file = try PartFile(reading: path.lastPathPart, in: try Folder(path: path.folderPart))
            } catch {
                return notCompared(entry, path, error)
            }
            entry.attempt = Attempt(
                folder: file.folder, part: file, counters: LiveCounters(entry.record.ranges), isResumed: true,
                url: entry.nextURL, plan: [])
            offEngine(entry.id) { () throws(DownloadError) -> Bool in
                let isSame =
                    if let checksum {
                        try file.digest(checksum.algorithm) == checksum.hex
                    } else {
                        try file.matches(pieces ?? [])
                    }
                if isSame { try file.synchronize() }
                return isSame
            } then: { engine, entry, attempt, result in
                switch result {
                case .success(true):
                    engine.proven(entry, "the file is whole, although the system went down before it was synced")
                case .success(false): engine.unproven(entry, attempt)
                case .failure(let error): engine.notCompared(entry, path, error)
                }
            }
        }
    }

    private static func file(_ path: String) -> FileProof.File? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        return FileProof.File(isRegular: isRegular, identity: FileIdentity(status), mark: FileOwner.mark(of: path))
    }

    private static func folderChanged(_ path: String) -> Date? {
        var status = stat()
        guard stat(path.folderPart, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9)
    }

    private func proven(_ entry: TaskEntry, _ what: String) {
        entry.awaitsProof = false
        remember(entry, by: "proof", what)
        entry.record.synced = true
        entry.record.pieces = nil
        entry.record.error = nil
        entry.record.waiting = nil
        entry.isDirty = true
        end(entry, as: .complete)
    }

    /// Nothing is known of a file that cannot be read now: it stays, complete as it was, until the next engine looks.
    private func notCompared(_ entry: TaskEntry, _ path: String, _ error: DownloadError) {
        problems.append(
            "\(path) could not be compared with what was received. \(error.message) "
                + "It stays as it is, and the next run looks at it again.")
        end(entry, as: .complete)
    }

    /// Ends the comparison soon, or the waiting for it, and nothing else: the file and the record stay as they are.
    ///
    /// - Returns: false when there was none.
    func endProof(of entry: TaskEntry) -> Bool {
        guard entry.awaitsProof, entry.record.state != .complete, entry.attempt != nil || isActive && entry.isAdmitted
        else { return false }
        withdraw(entry)
        entry.isAdmitted = false
        change(entry, to: .complete)
        account(entry)
        _ = signalStop(of: entry, .keepingBytes)
        return true
    }

    /// Somebody asks again for a task whose comparison was ended or was not possible.
    func demandProofAgain(of entry: TaskEntry) {
        guard entry.awaitsProof, entry.record.state == .complete, entry.attempt == nil else { return }
        entry.isAdmitted = false
        change(entry, to: .idle)
    }

    private func unproven(_ entry: TaskEntry, _ attempt: Attempt) {
        attempt.part.close()
        entry.attempt = nil
        entry.record.attempts += 1
        do throws(DownloadError) { try fetchAgain(entry) } catch { fail(entry, error, resumed: false) }
    }

    /// The file is not what was received. It is set aside until the task is complete, and for good where nothing shows that
    /// only the task has written to it.
    private func fetchAgain(_ entry: TaskEntry) throws(DownloadError) {
        entry.awaitsProof = false
        guard let path = entry.record.path, let identity = FileIdentity(path: path) else {
            forgetFile(of: entry)
            return try fetch(entry)
        }
        let folder = try Folder(path: path.folderPart)
        let (name, id) = (path.lastPathPart, entry.id)
        let isOurs = owner.proves(path, id)
        tellLost(path, entry)
        forgetFile(of: entry)
        if isOurs {
            _ = try setAside(name, in: folder, identity, of: entry) {
                FileNameRules.oldName(for: name, id: id, number: $0)
            }
        } else {
            let kept = try keep(name, in: folder, for: name, id)
            problems.append("What bore the name \(path) was kept as \(kept).")
        }
        try fetch(entry)
    }
}
