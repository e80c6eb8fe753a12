import FKMiddleware
import Foundation

extension DownloadError {
    /// Whose file a system call was about.
    package enum Place: Sendable {
        /// A file of the work path, which nobody else should touch.
        case workPath
        /// A file or folder where the user wants the download.
        case destination
    }

    /// What the system said when `path` was to be opened, written, …
    ///
    /// | errno | work path | destination |
    /// | --- | --- | --- |
    /// | a full disk, a quota, the limit on a file's size | `.noSpace`, retryable | the same |
    /// | too many open files | `.disk`, retryable | the same |
    /// | not there | `.notFound` | `.destination` |
    /// | there already | `.fileExists` | `.disk` |
    /// | not permitted, read-only | `.disk` | `.destination` |
    /// | a part of the path is no folder, is one, is a loop or too long | `.disk` | `.destination` |
    /// | anything else | `.disk` | the same |
    ///
    /// - Parameter action: completes the sentence "Cannot … <path>".
    package init(system number: Int32, _ action: String, _ path: String, in place: Place = .workPath) {
        let reason = String(cString: strerror(number))
        var code = Code.disk
        var message = "Cannot \(action) \(path): \(reason)."
        switch (number, place) {
        case (ENOSPC, _), (EDQUOT, _), (EFBIG, _):
            code = .noSpace
            message = "There is no space to \(action) \(path): free some, then retry."
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
}
