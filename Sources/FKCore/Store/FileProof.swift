import Foundation

/// What a task that was complete has to show after another boot, when its file was never synced: the system may have gone
/// down before the bytes, or the length, got to the disk.
///
/// | the file | then |
/// | --- | --- |
/// | is not there, and its folder has changed since the task was done | complete: somebody has taken it away |
/// | is not there, and its folder has not | fetched again: its name never got to the disk |
/// | was written to after the task was done | complete: it is somebody's by now |
/// | has another length | fetched again |
/// | has the length | its digest or its checksums are compared; fetched again where they differ, or nothing is known |
enum FileProof: Hashable {
    case complete
    case torn
    case compare

    /// Seconds by which a file's time may be later than the record's: clocks of file systems are coarse.
    static let tolerance = 2.0
    /// Seconds by which a folder's time may be later than the record's though nothing has happened since the rename.
    static let momentOfRename = 0.05

    struct File: Hashable {
        var length: Int64
        /// When it was last written to.
        var modified: Date
    }

    /// - Parameters:
    ///   - file: nil when there is no regular file under the name.
    ///   - folderChanged: when a name was last given or taken in its folder; nil when that is not there.
    ///   - isComparable: a digest or checksums of the whole file are known.
    static func judge(
        _ file: File?, folderChanged: Date?, expected: Int64, finished: Date?, isComparable: Bool
    ) -> FileProof {
        guard let file else {
            guard let folderChanged, let finished else { return .complete }
            return folderChanged.timeIntervalSince(finished) > momentOfRename ? .complete : .torn
        }
        if let finished, file.modified.timeIntervalSince(finished) > tolerance { return .complete }
        return file.length == expected && (isComparable || expected == 0) ? .compare : .torn
    }
}

extension TaskRecord {
    /// It says that the task is complete, and that was written in another boot, before the file was on the disk.
    package func needsProof(bootID current: String = BootID.current) -> Bool {
        isOnDisk == false && path != nil && bootID != current
    }
}
