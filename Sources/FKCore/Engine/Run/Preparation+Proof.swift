import FKMiddleware
import Foundation

/// Checks a file of another boot that was complete but not synced, before it counts as complete again (`FileProof`).
extension Preparation {
    func prove(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        guard let what = try await proof() else { return }
        entry.awaitsProof = false
        run.appendHistory(by: "proof", what)
        entry.record.prove()
        entry.recordChange()
        run.end(as: .complete)
    }

    /// - Returns: why the file counts as it is; nil if it is fetched again, or if the run has ended.
    private func proof(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> String? {
        guard let path = entry.record.path, let expected = entry.record.fileLength else {
            try fetchAgain()
            return nil
        }
        let checksum = entry.record.changed == nil ? entry.expectedDigest : entry.record.fileDigest
        let pieces =
            entry.record.changed == nil ? PieceChecksum.covering(entry.record.pieces, length: expected) : nil
        var proof = FileProof.judge(
            FileClaim.Found(path), of: entry.record, folderChanged: FileProof.folderChanged(path),
            isComparable: checksum != nil || pieces != nil)
        if proof == .complete, entry.isMissed { proof = .torn }
        entry.isMissed = false
        if proof != .torn {
            // Nothing is fetched, so the attempt does not count.
            entry.record.undoAttempt()
        }
        switch proof {
        case .torn: try fetchAgain()
        case .complete: return "the file was taken away after the task was complete"
        case .anothers:
            book.problems.append(
                "\(path) is not the file as the task left it: it stays as it is, and was not compared.",
                code: .fileExists)
            return "\(path) is not the file as the task left it: it stays as it is"
        case .compare:
            let isSame: Bool
            do throws(DownloadError) {
                let file = try PartFile(reading: path.lastPathPart, in: try Folder(path: path.folderPart))
                defer { file.close() }
                isSame = try await run.read(file) { file throws(DownloadError) in
                    let isSame =
                        if let checksum {
                            try file.digest(checksum.algorithm) == checksum.hex
                        } else {
                            try file.matches(pieces ?? [])
                        }
                    if isSame { try file.synchronize() }
                    return isSame
                }
            } catch {
                try run.checkStop()
                notCompared(path, error)
                return nil
            }
            if isSame { return "the file is whole, although the system went down before it was synced" }
            entry.record.beginAgain()
            try fetchAgain()
        }
        return nil
    }

    /// The file cannot be read. It stays complete, and the next engine checks it again.
    private func notCompared(_ path: String, _ error: DownloadError) {
        book.problems.append(
            "\(path) could not be compared with what was received. \(error.message) "
                + "It is not changed, and the next run examines it again.")
        run.end(as: .complete)
    }

    /// The file differs from the received bytes. It is set aside until the task is complete. If another program may have
    /// written to it, it is kept.
    private func fetchAgain() throws(DownloadError) {
        entry.awaitsProof = false
        guard let path = entry.record.path, let identity = FileIdentity(path: path) else {
            forgetFile()
            return try begin()
        }
        let folder = try Folder(path: path.folderPart)
        let (name, id) = (path.lastPathPart, entry.id)
        let isOurs = entry.record.claim(path, book.owner) == .ours
        book.recordLost(path, entry)
        forgetFile()
        if isOurs {
            _ = try entry.setAside(name, in: folder, identity, book) {
                FileNameRules.oldName(for: name, id: id, number: $0)
            }
        } else {
            let kept = try entry.keep(name, in: folder, for: name)
            book.problems.append("The file that had the name \(path) was kept as \(kept).", code: .fileExists)
        }
        try begin()
    }

    private func forgetFile() {
        entry.forgetFile()
        run.reporter.account(entry)
    }
}
