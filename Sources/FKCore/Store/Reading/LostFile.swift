import FKMiddleware
import Foundation

/// Finished files that are gone, or that have another length than their tasks left them with. They are looked for at their places, and
/// not read.
package enum LostFile {
    /// True if nothing is at the path. A place that cannot be looked at counts as a file.
    package static func isGone(_ path: String) -> Bool { isLost(path, length: nil) }

    /// True if nothing is at the path, or something of another length. A place that cannot be looked at counts as the file.
    ///
    /// - Parameter length: nil compares no length.
    static func isLost(_ path: String, length: Int64?) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR }
        return length.map { $0 != Int64(status.st_size) } ?? false
    }
}

extension TaskRecord {
    /// True if nothing is at the path of the file; nil for a task without a path.
    package var isFileGone: Bool? { path.map(LostFile.isGone) }

    /// True if the task is complete, and its file is gone or has another length.
    package var hasLostFile: Bool {
        state == .complete && path.map { LostFile.isLost($0, length: lengthLeft) } ?? false
    }
}

extension DownloadInfo {
    /// True if the task is complete, and its file is gone or has another length.
    package var hasLostFile: Bool {
        state == .complete && path.map { LostFile.isLost($0, length: lengthLeft) } ?? false
    }
}

extension StoreReader {
    /// The complete tasks among these ids whose files are gone or have another length. The records of others are searched and not parsed.
    package func lost(_ ids: [TaskID]) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: Array("\"state\":\"complete\"".utf8), problem: { _ in }) { _, record in
            if record.hasLostFile { records.append(record) }
        }
        return records
    }
}
