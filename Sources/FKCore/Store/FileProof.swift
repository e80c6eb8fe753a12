import Foundation

/// What a task that was complete has to show after another boot, when its file was never synced: the system may have gone
/// down before the bytes, or the length, got to the disk.
///
/// | the file | then |
/// | --- | --- |
/// | is not there, or is no file | complete: somebody has taken it away, since names get to the disk in order |
/// | was written to after the task was done | complete: it is somebody's by now |
/// | has another length | fetched again |
/// | has the length | its digest or its checksums are compared; fetched again where they differ, or nothing is known |
enum FileProof: Hashable {
    case complete
    case torn
    case compare

    /// Seconds by which a file's time may be later than the record's: clocks of file systems are coarse.
    static let tolerance = 2.0

    struct File: Hashable {
        var length: Int64
        /// When it was last written to.
        var modified: Date
    }

    /// - Parameters:
    ///   - file: nil when there is no regular file under the name.
    ///   - isComparable: a digest or checksums of the whole file are known.
    static func judge(_ file: File?, expected: Int64, finished: Date?, isComparable: Bool) -> FileProof {
        guard let file else { return .complete }
        if let finished, file.modified.timeIntervalSince(finished) > tolerance { return .complete }
        return file.length == expected && (isComparable || expected == 0) ? .compare : .torn
    }
}

extension TaskRecord {
    /// It says that the task is complete, and that was written in another boot, before the file was on the disk.
    func needsProof(bootID current: String = BootID.current) -> Bool {
        state == .complete && synced != true && isForeign != true && path != nil && bootID != current
    }

    /// It was complete in another boot and has not been looked at since.
    var awaitsProof: Bool { state != .complete && path != nil && partName == nil && isForeign != true }
}
