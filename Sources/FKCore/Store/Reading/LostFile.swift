import FKMiddleware
import Foundation

/// Finished files that are gone. They are looked for at their places, and not read.
package enum LostFile {
    /// True if nothing is at the path. A place that cannot be looked at counts as a file.
    package static func isGone(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) != 0 else { return false }
        return errno == ENOENT || errno == ENOTDIR
    }
}

extension TaskRecord {
    /// True if the task is complete, and its file is gone.
    package var hasLostFile: Bool { state == .complete && path.map(LostFile.isGone) ?? false }
}

extension DownloadInfo {
    /// True if the task is complete, and its file is gone.
    package var hasLostFile: Bool { state == .complete && path.map(LostFile.isGone) ?? false }
}

extension StoreReader {
    /// The complete tasks among these ids whose files are gone. The records of others are searched and not parsed.
    package func lost(_ ids: [TaskID]) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: Array("\"state\":\"complete\"".utf8), problem: { _ in }) { _, record in
            if record.hasLostFile { records.append(record) }
        }
        return records
    }
}
