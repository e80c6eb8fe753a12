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
                    nil, folderChanged: Self.folderChanged(path), expected: entry.record.expected ?? 0,
                    finished: entry.record.finished, isComparable: false) == .torn
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
        // It is no attempt to fetch anything.
        entry.record.attempts -= 1
        guard let path = entry.record.path, let expected = entry.record.expected else { return try fetchAgain(entry) }
        let checksum = expectedDigest(of: entry)
        let pieces = PieceChecksum.covering(entry.record.pieces, length: expected)
        switch FileProof.judge(
            Self.file(path), folderChanged: Self.folderChanged(path), expected: expected,
            finished: entry.record.finished,
            isComparable: checksum != nil || pieces != nil)
        {
        case .complete: proven(entry)
        case .torn: try fetchAgain(entry)
        case .compare:
            let folder = try Folder(path: path.folderPart)
            let file = try PartFile(in: folder, name: path.lastPathPart)
            let attempt = Attempt(
                folder: folder, part: file, counters: LiveCounters(entry.record.ranges), isResumed: true,
                url: entry.nextURL, plan: [])
            entry.attempt = attempt
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
                case .success(true): engine.proven(entry)
                case .success(false): engine.unproven(entry, attempt)
                case .failure(let error): engine.fail(entry, error, resumed: false)
                }
            }
        }
    }

    private static func file(_ path: String) -> FileProof.File? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileProof.File(
            length: Int64(status.st_size), modified: Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9))
    }

    private static func folderChanged(_ path: String) -> Date? {
        var status = stat()
        guard stat(path.folderPart, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9)
    }

    private func proven(_ entry: TaskEntry) {
        entry.awaitsProof = false
        remember(entry, by: "proof", "the file is whole, although the system went down before it was synced")
        entry.record.synced = true
        entry.record.pieces = nil
        entry.record.error = nil
        entry.record.waiting = nil
        entry.isDirty = true
        end(entry, as: .complete)
    }

    private func unproven(_ entry: TaskEntry, _ attempt: Attempt) {
        attempt.part.close()
        entry.attempt = nil
        do throws(DownloadError) { try fetchAgain(entry) } catch { fail(entry, error, resumed: false) }
    }

    /// The file is not what was received. It is set aside until the task is complete, and for good where nothing shows that
    /// it is the task's own.
    private func fetchAgain(_ entry: TaskEntry) throws(DownloadError) {
        entry.awaitsProof = false
        if let path = entry.record.path {
            let aside = "\(path.folderPart)/\(FileNameRules.partName(for: path.lastPathPart, id: entry.id)).old"
            guard Foundation.rename(path, aside) == 0 || errno == ENOENT else {
                throw DownloadError(system: errno, "set aside", path, in: .destination)
            }
            tellLost(path, entry)
            if FileOwner.isMarked(aside, as: entry.id) { entry.work.setAside = aside }
        }
        forgetFile(of: entry)
        entry.record.attempts += 1
        try fetch(entry)
    }
}
