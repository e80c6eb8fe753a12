import FKMiddleware
import Foundation

/// Recovery: repairs the tasks of an engine that was killed, when they are read.
extension TaskBook {
    /// Repairs a task that was running or being published when its last engine ended. Before the queue is active, the record
    /// changes only in memory, because reading a task writes no record.
    ///
    /// - Returns: true if its file had the final name, but its record did not say so.
    func recover(_ entry: TaskEntry) -> Bool {
        forgetLeftBehind(entry)
        entry.record.finishRename()
        let isRenameMissing = entry.record.isRenameMissing
        if entry.record.state == .complete, !isRenameMissing, entry.record.removeSetAside() { write(entry) }
        switch entry.record.state {
        case .action where entry.record.isPublished && !entry.isHandled(by: chains.response):
            entry.record.finish(received: entry.received, at: clock.date)
            _ = entry.record.removeSetAside()
            entry.record.forgetPart()
            entry.record.state = .complete
            writeRecovered(entry)
            return true
        case .action:
            // The attempt has not failed. Its process ended.
            leavePart(entry)
            entry.record.interrupt()
            writeRecovered(entry)
        case .complete where isRenameMissing:
            // The record was written before the bytes were synced. After a power cut only synced bytes count.
            entry.record.unfinish()
            writeRecovered(entry)
        case .complete where entry.record.needsProof():
            entry.demandProof()
        case .cancel where entry.record.partName != nil || entry.record.path != nil:
            // The process ended between the verb and the removal of the bytes.
            if let path = entry.record.path { _ = entry.record.remove(path, for: .recovery, owner) }
            entry.removeLeftBehind()
            entry.record.removePart(of: workPath, owner)
            entry.dropBytes()
            writeRecovered(entry)
        case .idle:
            if entry.record.task.type == .foreground { entry.record.state = .suspend }
        default: break
        }
        return false
    }

    /// Records the time of the part for a process that was killed, so that a later write by another program is noticed. Since
    /// the process writes a position into the info file after its bytes, a part that is newer than the info file was written to
    /// by another program, unless it has bytes without a position: those are the last bytes of the process. File systems of other
    /// machines have other clocks, so nothing is recorded there.
    private func leavePart(_ entry: TaskEntry) {
        let record = entry.record
        guard record.partTime == nil, record.bootID == BootID.current, record.received > 0, !entry.awaitsProof,
            let info = FileIdentity(path: workPath.infoPath(entry.id))?.time,
            let path = record.partFolders(home: workPath.destination(of: record)).lazy
                .map({ $0.path(of: record.partName ?? "") }).first(where: \.existsOnDisk),
            [workPath.root, path.folderPart].allSatisfy(NetworkFileSystem.hasOwnClock),
            let folder = try? Folder(path: path.folderPart),
            folder.claim(ofPart: path.lastPathPart, record.partKey(owner)).allows(.adopt),
            let part = try? PartFile(reading: path.lastPathPart, in: folder)
        else { return }
        let seconds = (Double(part.openedTime) - Double(info)) / 1e9
        let isEdited = seconds > (record.ranges.contains { part.hasBytes(after: $0) } ? Self.longWrite : Self.rounding)
        entry.record.leavePart(isEdited ? info : part.openedTime)
    }

    /// The seconds by which a copy of a work path may round times. The kernel's clock never goes back between the two writes.
    private static var rounding: Double { 0.001 }
    /// The longest time in seconds between the write of bytes and that of their position.
    private static var longWrite: Double { 5 }

    /// Writes a repaired record. Before the queue is active, its activation, a verb or an addition writes it.
    private func writeRecovered(_ entry: TaskEntry) {
        entry.recordRecovery()
        if schedule.isActive { write(entry) }
    }

    /// Writes a record that was only repaired in memory, before the task changes.
    func writeRecovery(_ entry: TaskEntry) {
        if entry.unsaved.isRecovered { write(entry) }
    }

    /// Keeps only the task's own files in `leftBehind`: since the kill, another file may have taken their place. The next write
    /// of the record removes them.
    private func forgetLeftBehind(_ entry: TaskEntry) {
        guard let left = entry.record.leftBehind else { return }
        let ours = left.filter { path in
            guard let file = entry.record.path, !FileNames.isOneName(file, path) else { return false }
            return FileNames.areOfOneFile(file, path) || entry.record.claim(path, owner) == .ours
        }
        entry.leaveBehind(ours.compactMap { path in FileIdentity(path: path).map { .init(path: path, written: $0) } })
        writeRecovered(entry)
    }

    /// Finds finished files whose names were lost in a power cut, once in a boot. It runs before anything changes the times of
    /// their folders.
    ///
    /// - Throws: `.disk` if a folder of the work path cannot be listed. The next engine looks again.
    func findLost() throws {
        guard !ownership.isExamined else { return }
        for id in try workPath.allTaskIDs() {
            guard let entry = read(id), entry.record.needsProof(), !entry.record.isRenameMissing,
                let path = entry.record.path, FileClaim.Found(path) == nil,
                FileProof.judge(
                    nil, of: entry.record, folderChanged: FileProof.folderChanged(path), isComparable: false) == .torn
            else { continue }
            recordLost(path, entry)
            entry.forgetFile()
            entry.record.state = .idle
            write(entry)
        }
        ownership.recordExamined()
    }

    /// Reports that a finished file was lost in a power cut.
    func recordLost(_ path: String, _ entry: TaskEntry) {
        problems.append("\(path) had not reached the disk when the system went down: it is fetched again.")
        appendHistory(entry, by: "resume", "the file had not reached the disk when the system went down")
    }
}

extension TaskRecord {
    /// True if the file has its final name, after a crash between the rename and the last record.
    var isPublished: Bool {
        guard let path, partName != nil else { return false }
        return !hasPartBesideFile && claim(path) == .ours
    }
}

extension FileNames {
    /// True if both paths are the same name in the same folder, also through symlinks.
    static func isOneName(_ path: String, _ other: String) -> Bool {
        guard path.lastPathPart.isExactly(other.lastPathPart) else { return false }
        let (folder, otherFolder) = (path.folderPart, other.folderPart)
        return folder.isExactly(otherFolder) || areOfOneFile("\(folder)/.", "\(otherFolder)/.")
    }
}
