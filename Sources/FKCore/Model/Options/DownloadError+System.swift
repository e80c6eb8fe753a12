import FKMiddleware
import Foundation

extension DownloadError {
    /// True if the process or the system has too many open files and connections.
    package var isOutOfDescriptors: Bool { isRetryable && isCaused(by: [EMFILE, ENFILE]) }

    /// True if the system could not look at a file at this moment. The error says nothing about the file's content.
    package var isUnanswered: Bool { isCaused(by: [EMFILE, ENFILE, ENOMEM, EIO]) }

    private func isCaused(by numbers: [Int32]) -> Bool {
        guard let underlying else { return false }
        return numbers.contains { underlying.contains(String(cString: strerror($0))) }
    }
}
