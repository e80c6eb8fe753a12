import FKEngine
import FKMiddleware
import Foundation

/// Decides what a wait for a task's file returns or throws once the task's infos have ended.
///
/// | the task | then |
/// | --- | --- |
/// | complete | its file |
/// | complete, and its file is gone or has another length | `.notFound` |
/// | in error | its error |
/// | cancelled, trashed or forgotten during the wait | `.cancelled` |
/// | never there | `.notFound` |
/// | able to run, or suspended, and the waiting Swift task is cancelled | `.cancelled` |
/// | able to run, or suspended, and the downloader is closed | `.cancelled` |
///
/// An end of the task counts more than the cancellation of the wait.
enum FileOutcome {
    /// - Parameters:
    ///   - last: the last info that was reported; nil if there was none.
    ///   - present: the info after that; nil if there is no such task.
    ///   - isCancelled: true if the waiting Swift task is cancelled.
    ///   - isLost: true for a complete task whose file is gone or has another length.
    static func judge(
        last: DownloadInfo?, present: DownloadInfo?, isCancelled: Bool, isLost: (DownloadInfo) -> Bool = \.hasLostFile
    ) -> Result<URL, DownloadError> {
        // A task that was queued again since its end counts as it ended.
        let info = last.flatMap { $0.state.isOver ? $0 : nil } ?? present
        guard let info else {
            if isCancelled { return .failure(waitCancelled) }
            guard let last else { return .failure(.init(.notFound, "There is no such task: add it first.")) }
            return .failure(gone(last))
        }
        switch info.state {
        case .complete:
            guard let path = info.path else { return .failure(gone(info)) }
            guard !isLost(info) else {
                return .failure(
                    DownloadError(
                        .notFound,
                        "The finished file \(path.visible) is gone or has another length: download it again.",
                        url: info.url.masked))
            }
            return .success(URL(fileURLWithPath: path))
        case .error:
            return .failure(info.error ?? DownloadError(.disk, "The task failed.", url: info.url.masked))
        case .cancel, .unknown: return .failure(gone(info))
        case .idle, .action, .suspend: return .failure(isCancelled ? waitCancelled : closed)
        }
    }

    static let waitCancelled = DownloadError(.cancelled, "The Swift task that waited was cancelled.")

    /// The error of a call whose Swift task was cancelled, with what became of the download.
    ///
    /// - Parameter state: the state of the task afterwards; nil if it is gone.
    static func waitCancelled(leaving state: DownloadState?) -> DownloadError {
        let fate =
            switch state {
            case nil, .unknown: "The download was forgotten."
            case .cancel: "The download was cancelled, and its unfinished bytes were deleted."
            case .suspend: "The download is suspended and keeps its bytes: another call continues it."
            case .idle, .action: "The download was not stopped."
            case .complete: "The file is complete."
            case .error: "The download has failed."
            }
        return DownloadError(.cancelled, "The Swift task that waited was cancelled. \(fate)")
    }

    private static let closed = DownloadError(
        .cancelled, "The downloader was closed: its tasks keep their bytes for the next one.")

    private static func gone(_ info: DownloadInfo) -> DownloadError {
        let text =
            info.state == .cancel
            ? "The task was cancelled: retry or add it again."
            : "The task was trashed or forgotten: add it again."
        return DownloadError(.cancelled, text, url: info.url.masked)
    }
}
