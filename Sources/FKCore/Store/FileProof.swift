import Foundation

/// Decides whether a complete task still has its file after a reboot, if the file was never synced. The system may
/// have stopped before the bytes or the length reached the disk.
///
/// | the file | decision |
/// | --- | --- |
/// | is missing, and its folder has changed since the task completed | complete: the file was taken away |
/// | is missing, and its folder has not changed | fetched again: its name never reached the disk |
/// | has another inode or task mark, or a time outside the task's work | complete: it has another owner now |
/// | has another length | fetched again |
/// | has the length | its digest or its checksums are compared; fetched again if they differ or are unknown |
enum FileProof: Hashable {
    /// The file was taken away.
    case complete
    /// Another file has the name, or this one was written to.
    case anothers
    case torn
    case compare

    /// The seconds by which a folder's time may be later than the record's without a change after the rename.
    static let momentOfRename = 0.05

    struct File: Hashable {
        /// False for a folder, a symlink or any other entry.
        var isRegular = true
        var identity: FileIdentity
        var mark: FileOwner.Mark
    }

    /// Decides for one file.
    ///
    /// - Parameters:
    ///   - file: nil if there is no entry with the name.
    ///   - folderChanged: when a name was last added to or removed from its folder; nil if the folder is missing.
    ///   - isComparable: true if a digest or checksums of the whole file are known.
    static func judge(_ file: File?, of record: TaskRecord, folderChanged: Date?, isComparable: Bool) -> FileProof {
        guard let file else {
            guard let folderChanged, let finished = record.finished else { return .complete }
            return folderChanged.timeIntervalSince(finished) > momentOfRename ? .complete : .torn
        }
        if isAnothers(file, record) { return .anothers }
        return file.identity.length == record.expected && (isComparable || record.expected == 0) ? .compare : .torn
    }

    /// A power cut changes the bytes and the length of a file, and sets its time back to an earlier write of the task
    /// at most.
    private static func isAnothers(_ file: File, _ record: TaskRecord) -> Bool {
        if !file.isRegular || !file.mark.isOf(record.id, orNone: true) { return true }
        guard let written = record.written else {
            guard let finished = record.finished else { return false }
            let end = finished.timeIntervalSince1970
            return !isWithin(file.identity.time, end, TaskRecord.timeTolerance, of: record)
        }
        // Without attributes, inodes may also have other numbers after each mount.
        if file.identity.inode != written.inode, file.mark != .unknown { return true }
        return !FileIdentity.isSameTime(file.identity.time, written.time)
            && !isWithin(file.identity.time, Double(written.time) / 1e9, 0, of: record)
    }

    /// True if the time is within the task's work, which ended at `end` and took as long as the record says.
    private static func isWithin(_ time: Int64, _ end: Double, _ tolerance: Double, of record: TaskRecord) -> Bool {
        let seconds = record.finished.flatMap { end in record.started.map { end.timeIntervalSince($0) } } ?? .infinity
        let time = Double(time) / 1e9
        return end - seconds - TaskRecord.timeTolerance <= time && time <= end + tolerance
    }
}

extension TaskRecord {
    /// True if the record says that the task is complete, and was written in another boot before the file was synced.
    package func needsProof(bootID current: String = BootID.current) -> Bool {
        isOnDisk == false && path != nil && bootID != current
    }
}
