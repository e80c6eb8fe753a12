import FKMiddleware
import Foundation

extension FileIO {
    /// The obstacle that a rename tells by `EBUSY`: `obstacle` does not see a folder of the same file system that is mounted there.
    package static let mounted = "another file system is mounted there"

    /// Why a rename cannot replace the empty folder by another one with its content, that of a set or of an unpacked archive; nil if it
    /// can. A clause.
    package static func obstacle(toReplacing path: String) -> String? {
        var (own, outer, here) = (stat(), stat(), stat())
        guard lstat(path, &own) == 0 else { return nil }
        if stat(path.folderPart, &outer) == 0, outer.st_dev != own.st_dev {
            return mounted
        }
        if stat(".", &here) == 0, here.st_ino == own.st_ino, here.st_dev == own.st_dev {
            return "it is the current folder"
        }
        return nil
    }

    /// Gives a new folder the owner and the mode of the one that it replaces, as far as the process may.
    package static func copyAccess(of path: String, to new: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        _ = chown(new, status.st_uid, status.st_gid)
        _ = chmod(new, status.st_mode & 0o7777 | 0o700)
    }
}
