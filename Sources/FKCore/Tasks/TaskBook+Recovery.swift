import FKMiddleware
import Foundation

/// What the last engine left: brought into order when a task is read.
extension TaskBook {
    /// What a task that its last engine left running, or in the middle of being published, becomes.
    ///
    /// Before the queue is activated this happens in memory alone: to ask for a task writes nothing.
    ///
    /// - Returns: true where its file had the final name, and its record did not say so yet.
    func recover(_ entry: TaskEntry) -> Bool {
        forgetLeftBehind(entry)
        entry.record.finishRename()
        if entry.record.state == .complete, entry.record.removeSetAside() { write(entry) }
        switch entry.record.state {
        case .action where entry.record.isPublished && !entry.isHandled(by: chains.response):
            entry.record.finish(received: entry.received, at: clock.date)
            _ = entry.record.removeSetAside()
            entry.record.forgetPart()
            entry.record.state = .complete
            writeRecovered(entry)
            return true
        case .action, .prepare:
            // The attempt did not fail: its process ended.
            entry.record.interrupt()
            writeRecovered(entry)
        case .complete where entry.record.isRenameMissing:
            // The record was written before the bytes had to be on the disk: after a power cut only synced ones count.
            entry.record.unfinish()
            writeRecovered(entry)
        case .complete where entry.record.needsProof():
            entry.demandProof()
        case .cancel where entry.record.partName != nil || entry.record.path != nil:
            // The process ended between the verb and the removal of the bytes.
            if entry.record.isPublished, let path = entry.record.path { unlink(path) }
            entry.record.removeLeftBehind()
            entry.record.removePart(of: workPath)
            entry.dropBytes()
            writeRecovered(entry)
        case .idle:
            if entry.record.task.type == .foreground { entry.record.state = .suspend }
        default: break
        }
        return false
    }

    /// Writes what was brought into order, or leaves that to the activation of the queue, a verb or an addition.
    private func writeRecovered(_ entry: TaskEntry) {
        entry.isRecovered = true
        if schedule.isActive { write(entry) }
    }

    /// Writes what was brought into order in memory, before anything is done with the task.
    func writeRecovery(_ entry: TaskEntry) {
        if entry.isRecovered { write(entry) }
    }

    /// After a kill between the record and the removing: by now the place may be somebody else's. What is left is removed
    /// with the next writing of the record.
    private func forgetLeftBehind(_ entry: TaskEntry) {
        guard let left = entry.record.leftBehind else { return }
        let ours = left.filter { path in
            guard let file = entry.record.path, !FileNames.isOneName(file, path) else { return false }
            return FileNames.areOfOneFile(file, path) || owner.proves(path, entry.id)
        }
        entry.record.leaveBehind(ours)
        writeRecovered(entry)
    }

    /// Finds the finished files whose names never got to the disk, before anything is done in their folders that would
    /// change the folders' times. Once in a boot.
    func findLost() {
        guard !tenure.isExamined else { return }
        for id in workPath.allTaskIDs() {
            guard let entry = read(id, isNew: false), entry.record.needsProof(), !entry.record.isRenameMissing,
                let path = entry.record.path, FileProof.file(path) == nil,
                FileProof.judge(
                    nil, of: entry.record, folderChanged: FileProof.folderChanged(path), isComparable: false) == .torn
            else { continue }
            noteLost(path, entry)
            entry.forgetFile()
            entry.record.state = .idle
            write(entry)
        }
        tenure.noteExamined()
    }

    /// Says that a finished file had not reached the disk.
    func noteLost(_ path: String, _ entry: TaskEntry) {
        problems.append("\(path) had not reached the disk when the system went down: it is fetched again.")
        appendHistory(entry, by: "resume", "the file had not reached the disk when the system went down")
    }
}

extension TaskRecord {
    /// After a crash between the rename and the last record: true when the file bears its final name already.
    var isPublished: Bool {
        guard let path, let partName else { return false }
        var status = stat()
        return lstat("\(path.folderPart)/\(partName)", &status) != 0 && owns(path)
    }
}

extension FileProof {
    static func file(_ path: String) -> File? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let isRegular = status.st_mode & S_IFMT == S_IFREG
        return File(isRegular: isRegular, identity: FileIdentity(status), mark: FileOwner.mark(of: path))
    }

    static func folderChanged(_ path: String) -> Date? {
        var status = stat()
        guard stat(path.folderPart, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9)
    }
}

extension FileNames {
    /// One name, whatever symlinks lead to its folder.
    static func isOneName(_ path: String, _ other: String) -> Bool {
        guard path.lastPathPart.isExactly(other.lastPathPart) else { return false }
        let (folder, otherFolder) = (path.folderPart, other.folderPart)
        return folder.isExactly(otherFolder) || areOfOneFile("\(folder)/.", "\(otherFolder)/.")
    }
}
