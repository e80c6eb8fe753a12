import FKMiddleware
import Foundation

/// Asks the kernel whether a process holds a lock (`flock`).
package enum FileLock {
    /// The errors of a file system that has no locks.
    package static let unsupported: Set<Int32> = [ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL]

    /// True while a process holds the lock of a file. False if the file is missing or may not be opened, or its file system
    /// has no locks.
    ///
    /// True as well if the system cannot answer, for example without a free descriptor. Taking a held lock for a free one
    /// would show running downloads as stopped. The next call asks again.
    ///
    /// - Parameter kind: `LOCK_SH` finds an exclusive lock, `LOCK_EX` finds a shared one too.
    package static func isHeld(_ path: String, _ kind: Int32) -> Bool {
        let descriptor: Int32
        do {
            descriptor = try FileIO.open(path, kind == LOCK_EX ? O_RDWR : O_RDONLY)
        } catch {
            return (error as? DownloadError)?.isUnanswered == true
        }
        defer { FileIO.close(descriptor) }
        while flock(descriptor, kind | LOCK_NB) != 0 {
            if errno != EINTR { return !unsupported.contains(errno) }
        }
        _ = flock(descriptor, LOCK_UN)
        return false
    }
}
