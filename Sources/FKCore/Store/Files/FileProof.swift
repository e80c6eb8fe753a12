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
package enum FileProof: Hashable {
    /// The file was taken away.
    case complete
    /// Another file has the name, or this one was written to.
    case anothers
    /// It is not the whole file: fetch it again.
    case torn
    /// Its bytes decide.
    case compare

    /// The seconds by which a folder's time may be later than the record's without a change after the rename.
    static let momentOfRename = 0.05

    /// Decides for one file.
    ///
    /// - Parameters:
    ///   - file: nil if there is no entry with the name.
    ///   - folderChanged: when a name was last added to or removed from its folder; nil if the folder is missing.
    ///   - isComparable: true if a digest or checksums of the whole file are known.
    package static func judge(
        _ file: FileClaim.Found?, of record: TaskRecord, folderChanged: Date?, isComparable: Bool
    ) -> FileProof {
        guard let file else {
            guard let folderChanged, let finished = record.finished else { return .complete }
            return folderChanged.timeIntervalSince(finished) > momentOfRename ? .complete : .torn
        }
        // The time is within the task's work, which took as long as the record says.
        let seconds = record.finished.flatMap { end in record.started.map { end.timeIntervalSince($0) } } ?? .infinity
        let claim = FileClaim.judge(
            file, afterPowerCut: record.claimed, work: { $0 - max(0, seconds) - TaskRecord.timeTolerance...$0 },
            finished: record.finished)
        if claim.act(.proof) != .read { return .anothers }
        return file.identity.length == record.fileLength && (isComparable || record.fileLength == 0) ? .compare : .torn
    }
}

extension TaskRecord {
    /// True if the record says that the task is complete, and was written in another boot before the file was synced.
    package func needsProof(bootID current: String = BootID.current) -> Bool {
        isOnDisk == false && path != nil && bootID != current
    }
}

extension FileProof {
    /// When the folder of a file last changed; nil if it is missing.
    package static func folderChanged(_ path: String) -> Date? {
        var status = stat()
        guard stat(path.folderPart, &status) == 0 else { return nil }
        return Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9)
    }
}
