import FKMiddleware
import Foundation

/// Where files go that cannot be read: kept for inspection, out of everybody's way.
package enum Quarantine {
    /// Moves a bad file to `quarantine/<time>-<name>`. Only for the process that owns the engine.
    ///
    /// - Returns: an error for reporting that says what is wrong with the file and where it is now. Its code is that
    ///   of `error`.
    package static func move(
        _ path: String, in workPath: WorkPath, because error: any Error, now: Date = Date()
    ) -> DownloadError {
        var report = DownloadError(wrapping: error, code: .corruptInfo, message: "\(path) cannot be read.")
        // Room for the time in front: a name may be as long as the file system takes.
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
