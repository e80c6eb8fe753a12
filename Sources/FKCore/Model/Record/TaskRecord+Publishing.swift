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
    /// True if the finished file survives a power cut; nil if it is not finished or not the task's own.
    package var isOnDisk: Bool? { state == .complete && isForeign != true ? synced == true : nil }

    /// True if the record says `complete` but the part file still has its own name: the process ended between writing
    /// the record and renaming the file. That order saves a small file one write. The task is not complete, but has
    /// all its bytes.
    package var isRenameMissing: Bool {
        guard state == .complete, let path, let partName else { return false }
        var status = stat()
        return lstat("\(path.folderPart)/\(partName)", &status) == 0
    }
}
