import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension TaskRecord {
    /// Takes over that the file is whole. The state is left to the caller.
    mutating func finish(received: Int64, at date: Date) {
        let size = expected ?? received
        ranges = [SavedRange(start: 0, end: size, position: size, synced: synced == true ? size : 0)]
        expected = size
        pieces = synced == true ? nil : PieceChecksum.covering(pieces, length: size)
        finished = date
        error = nil
        waiting = nil
    }

    /// Whether a power cut leaves the finished file; nil for what is not finished or not the task's own.
    package var isOnDisk: Bool? { state == .complete && isForeign != true ? synced == true : nil }

    /// True for a record that says `complete` while the part file still has its own name: the process ended between
    /// writing the record and renaming the file, which is done in this order so that a small file costs one write.
    /// Such a task is not complete; its bytes are all there.
    package var isRenameMissing: Bool {
        guard state == .complete, let path, let partName else { return false }
        var status = stat()
        return lstat("\(path.folderPart)/\(partName)", &status) == 0
    }

    /// Where a file system cannot rename without replacing, a file is linked to its final name and then loses the part's.
    /// Does the second half for a process that was killed between the two: a part file with two names is not adopted.
    func finishRename() {
        guard let path, let partName else { return }
        let part = "\(path.folderPart)/\(partName)"
        if FileNames.areOfOneFile(path, part) { unlink(part) }
    }
}
