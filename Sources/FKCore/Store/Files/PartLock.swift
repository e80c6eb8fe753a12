import CSystem
import Foundation

/// The lock of a part file that is open for writing. It ends with its process, however that dies, and two engines of one process
/// exclude each other as well. File systems without locks have none: there the marks of part files have to do (`FileOwner`).
package enum PartLock {
    /// Takes the lock of a file that is open for writing. It does not wait.
    ///
    /// - Returns: false if another descriptor holds it.
    package static func acquire(_ file: Int32) -> Bool {
        while fk_lock(file) != 0 {
            if errno != EINTR { return errno != EAGAIN && errno != EACCES }
        }
        return true
    }

    /// Releases the lock before the file is closed, because a child between fork and exec has the descriptor as well for an
    /// instant.
    package static func release(_ file: Int32) { fk_unlock(file) }

    /// True if another descriptor holds the lock. It takes none.
    package static func isHeld(_ file: Int32) -> Bool { fk_is_locked(file) == 1 }
}
