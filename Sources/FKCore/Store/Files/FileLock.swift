import FKMiddleware
import Foundation

/// Asks the kernel whether a process holds a lock (`flock`).
package enum FileLock {
    /// The errors of a file system that has no locks.
    package static let unsupported: Set<Int32> = [ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL]

    /// True if an open file has no name any more, so that its lock excludes nobody.
    package static func isNameless(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }

    /// Releases the lock of an open file, if there is one, and closes the file.
    ///
    /// Closing alone does not release it at once: a program that another thread is starting has the descriptor as well, between
    /// fork and exec, and a lock ends with its last descriptor (flock(2)).
    package static func release(_ descriptor: Int32) {
        _ = flock(descriptor, LOCK_UN)
        FileIO.close(descriptor)
    }

    /// Runs `body` while no other process runs one with the same lock file, which is created and stays. Files that are read, changed
    /// and replaced would otherwise lose the change of another process. File systems without locks exclude nobody.
    ///
    /// - Parameter seconds: the longest wait; the default is 10.
    /// - Throws: `.workPathBusy` if the wait is over; the errors of `open` and of `body`.
    package static func exclusively<Value>(
        _ path: String, waiting seconds: Double = 10, _ body: () throws -> Value
    ) throws -> Value {
        let descriptor = try FileIO.open(path, O_RDWR | O_CREAT)
        defer { release(descriptor) }
        var rest = seconds
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let code = errno
            if unsupported.contains(code) { break }
            guard code == EWOULDBLOCK || code == EINTR else { throw DownloadError(system: code, "lock", path) }
            guard rest > 0 else {
                throw DownloadError(
                    .workPathBusy,
                    "Another process is changing the settings, and holds \(path). Nothing was changed: repeat the command.",
                    isRetryable: true)
            }
            usleep(2_000)
            rest -= 0.002
        }
        return try body()
    }

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
        defer { release(descriptor) }
        while flock(descriptor, kind | LOCK_NB) != 0 {
            if errno != EINTR { return !unsupported.contains(errno) }
        }
        return false
    }
}
