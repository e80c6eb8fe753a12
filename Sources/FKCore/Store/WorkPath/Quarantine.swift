import FKMiddleware
import Foundation

/// Keeps unreadable files for inspection, away from all other code.
package enum Quarantine {
    /// Moves a bad file to `quarantine/<time>-<name>`. Only for the process that owns the engine.
    ///
    /// - Returns: an error to report, with the problem of the file and its new place. Its code is that of `error`.
    package static func move(
        _ path: String, in workPath: WorkPath, because error: any Error, now: Date = Date()
    ) -> DownloadError {
        var report = DownloadError(wrapping: error, code: .corruptInfo, message: "\(path) cannot be read.")
        // Leaves space for the time in front, because a name may have the maximum length of the file system.
        let name = FileNameParts.cut(path.lastPathPart, to: 200)
        let target = "\(workPath.quarantineFolder)/\(Int64(now.timeIntervalSince1970 * 1000))-\(name)"
        do {
            try FileIO.makeFolder(workPath.quarantineFolder)
            try FileIO.rename(path, to: target)
            report.message += " It was moved to \(target)."
        } catch {
            report.message += " It could not be moved to \(target) either."
        }
        return report
    }
}
