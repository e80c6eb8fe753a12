import FKMiddleware
import Foundation

/// Keeps a published set on disk while it is read, in this process and in others.
package final class SetLease: Sendable {
    package let version: String
    /// The files, by name.
    package let files: [URL]
    private let lock: Int32

    /// Locks the mark of the set that is at the folder now.
    ///
    /// - Throws: `.notFound` if the barrel has no published set.
    package init(_ barrel: String, in workPath: WorkPath) throws {
        guard let record = try SetRecord(barrel, in: workPath), let folder = record.folder else {
            throw DownloadError(.notFound, "The barrel \(barrel) was not published: call publish(to:) first.")
        }
        let path = folder.path(of: SetMark.fileName)
        while true {
            let lock: Int32
            do {
                lock = try FileIO.open(path, O_RDONLY)
            } catch let error as DownloadError where error.code == .notFound {
                throw DownloadError(
                    .notFound, "The published folder \(folder) of the barrel \(barrel) is gone: publish it again.")
            }
            let isLocked = flock(lock, LOCK_SH | LOCK_NB) == 0 || FileLock.unsupported.contains(errno)
            var (held, named) = (stat(), stat())
            // It may have been replaced meanwhile.
            let isPresent = fstat(lock, &held) == 0 && lstat(path, &named) == 0 && held.st_ino == named.st_ino
            guard isLocked, isPresent, let mark = SetMark(in: folder) else {
                FileLock.release(lock)
                if isPresent, !isLocked {
                    throw DownloadError(
                        .notFound, "The published folder \(folder) of the barrel \(barrel) is being removed.")
                }
                if isPresent, isLocked {
                    throw DownloadError(.corruptInfo, "The mark \(path) cannot be read: publish the barrel again.")
                }
                continue
            }
            (self.lock, version) = (lock, mark.version)
            files = mark.files.map { URL(fileURLWithPath: folder.path(of: $0.name), isDirectory: false) }
            return
        }
    }

    deinit { FileLock.release(lock) }
}
