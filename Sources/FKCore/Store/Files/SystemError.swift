import FKMiddleware
import Foundation

extension DownloadError {
    /// The kind of file that a system call failed for.
    package enum Place: Sendable {
        /// A file of the work path, which other programs should not touch.
        case workPath
        /// A file or folder at the user's destination.
        case destination
    }

    /// Creates an error from the system's reason why `path` could not be opened, written, and so on.
    ///
    /// | errno | work path | destination |
    /// | --- | --- | --- |
    /// | a full disk, a quota, the limit on a file's size | `.noSpace`, retryable | the same |
    /// | too many open files | `.disk`, retryable | the same |
    /// | missing | `.notFound` | `.destination` |
    /// | exists already | `.fileExists` | `.disk` |
    /// | not permitted, read-only | `.disk` | `.destination` |
    /// | a component is not a folder, the path is a folder, a loop or too long | `.disk` | `.destination` |
    /// | any other | `.disk` | the same |
    ///
    /// - Parameter action: completes the sentence "Cannot … <path>".
    package init(system number: Int32, _ action: String, _ path: String, in place: Place = .workPath) {
        let reason = String(cString: strerror(number))
        var code = Code.disk
        var message = "Cannot \(action) \(path): \(reason)."
        switch (number, place) {
        case (ENOSPC, _), (EDQUOT, _), (EFBIG, _):
            code = .noSpace
            message =
                number == ENOSPC && Self.hasNoInodes(path)
                ? "Cannot \(action) \(path): its file system cannot have more files (all inodes are in use). Delete files, then "
                    + "retry."
                : number == EFBIG
                    ? "Cannot \(action) \(path): the limit on the size of files is reached. Raise it (ulimit -f), then retry."
                    : "There is no space to \(action) \(path): free some, then retry."
        case (ENOENT, .workPath): code = .notFound
        case (EEXIST, .workPath): code = .fileExists
        case (EACCES, .destination), (EPERM, .destination), (EROFS, .destination):
            code = .destination
            message = "Not allowed to \(action) \(path): choose another folder or change its permissions."
        case (ENOENT, .destination), (ENOTDIR, .destination), (EISDIR, .destination), (ELOOP, .destination),
            (ENAMETOOLONG, .destination):
            code = .destination
        default: break
        }
        let isRetryable = code == .noSpace || number == EMFILE || number == ENFILE
        self.init(code, message, underlying: reason, isRetryable: isRetryable)
    }

    /// True if the file system of the path has free space but no free inode. Some file systems have no limit of inodes and
    /// report 0 in all.
    private static func hasNoInodes(_ path: String) -> Bool {
        var folder = path
        var status = statvfs()
        while statvfs(folder, &status) != 0 {
            guard errno == ENOENT, folder.utf8.count > 1 else { return false }
            folder = folder.folderPart
        }
        return status.f_files > 0 && status.f_favail == 0 && status.f_bavail > 0
    }
}
