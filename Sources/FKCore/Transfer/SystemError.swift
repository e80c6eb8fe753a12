import FKMiddleware
import Foundation

/// The system's last error as the error of a task, with the path it happened to.
func diskError(_ action: String, _ path: String, _ number: Int32 = errno) -> DownloadError {
    let reason = String(cString: strerror(number))
    switch number {
    case ENOSPC, EDQUOT, EFBIG:
        return DownloadError(
            .noSpace, "There is no space to \(action) \(path): free some, then retry.", underlying: reason,
            isRetryable: true)
    case EACCES, EPERM, EROFS:
        return DownloadError(
            .destination, "Not allowed to \(action) \(path): choose another folder or change its permissions.",
            underlying: reason)
    case ENOENT, ENOTDIR, EISDIR, ELOOP, ENAMETOOLONG:
        return DownloadError(.destination, "Cannot \(action) \(path).", underlying: reason)
    default:
        return DownloadError(
            .disk, "Cannot \(action) \(path).", underlying: reason, isRetryable: number == EMFILE || number == ENFILE)
    }
}
