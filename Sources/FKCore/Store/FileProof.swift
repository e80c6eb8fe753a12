import Foundation

/// What a task that was complete has to show after another boot, when its file was never synced: the system may have gone
/// down before the bytes, or the length, got to the disk.
///
/// | the file | then |
/// | --- | --- |
/// | is not there, and its folder has changed since the task was done | complete: somebody has taken it away |
/// | is not there, and its folder has not | fetched again: its name never got to the disk |
/// | has another inode, another task's mark, or a time that is not of the task's work | complete: it is somebody's by now |
/// | has another length | fetched again |
/// | has the length | its digest or its checksums are compared; fetched again where they differ, or nothing is known |
enum FileProof: Hashable {
    /// Taken away.
    case complete
    /// Another file bears the name, or somebody has written to this one.
    case anothers
    case torn
    case compare

    /// Seconds by which a folder's time may be later than the record's though nothing has happened since the rename.
    static let momentOfRename = 0.05

    struct File: Hashable {
        /// False for a folder, a symlink or whatever else.
        var isRegular = true
        var identity: FileIdentity
        var mark: FileOwner.Mark
    }

    /// - Parameters:
    ///   - file: nil when nothing bears the name.
    ///   - folderChanged: when a name was last given or taken in its folder; nil when that is not there.
    ///   - isComparable: a digest or checksums of the whole file are known.
    static func judge(_ file: File?, of record: TaskRecord, folderChanged: Date?, isComparable: Bool) -> FileProof {
        guard let file else {
            guard let folderChanged, let finished = record.finished else { return .complete }
            return folderChanged.timeIntervalSince(finished) > momentOfRename ? .complete : .torn
        }
        if isAnothers(file, record) { return .anothers }
        return file.identity.length == record.expected && (isComparable || record.expected == 0) ? .compare : .torn
    }

    /// A power cut changes bytes and length of a file, and takes its time back to an earlier write of the task at most.
    private static func isAnothers(_ file: File, _ record: TaskRecord) -> Bool {
        if !file.isRegular || !file.mark.isOf(record.id, orNone: true) { return true }
        guard let written = record.written else {
            guard let finished = record.finished else { return false }
            let end = finished.timeIntervalSince1970
            return !isWithin(file.identity.time, end, TaskRecord.timeTolerance, of: record)
        }
        // Where there are no attributes, inodes may have other numbers after each mount as well.
        if file.identity.inode != written.inode, file.mark != .unknown { return true }
        return !FileIdentity.isSameTime(file.identity.time, written.time)
            && !isWithin(file.identity.time, Double(written.time) / 1e9, 0, of: record)
    }

    /// Whether a time lies in the task's work, which ended at `end` and took as long as the record says.
    private static func isWithin(_ time: Int64, _ end: Double, _ tolerance: Double, of record: TaskRecord) -> Bool {
        let seconds = record.finished.flatMap { end in record.started.map { end.timeIntervalSince($0) } } ?? .infinity
        let time = Double(time) / 1e9
        return end - seconds - TaskRecord.timeTolerance <= time && time <= end + tolerance
    }
}

extension TaskRecord {
    /// It says that the task is complete, and that was written in another boot, before the file was on the disk.
    package func needsProof(bootID current: String = BootID.current) -> Bool {
        isOnDisk == false && path != nil && bootID != current
    }
}
