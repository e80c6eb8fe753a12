import FKMiddleware
import Foundation

/// Finds finished files of a work path by their SHA-256. It reads the records once, when it is first asked.
final class ReuseIndex: Sendable {
    /// Nil until the records are read.
    private let tasks = Locked<[String: TaskID]?>(nil)

    /// Adds a completed task. It does nothing before the records are read.
    func add(_ record: @autoclosure () -> TaskRecord) {
        tasks.withLock { tasks in
            guard tasks != nil else { return }
            let record = record()
            if let digest = Self.digest(of: record) { tasks?[digest] = record.id }
        }
    }

    /// Fills an empty part file with the bytes of a finished file, and verifies them. It blocks.
    ///
    /// - Returns: the path and the length of that file; nil if there is none, or if it has changed.
    /// - Throws: `DownloadError` if the part cannot be written; `.cancelled` if it was abandoned.
    func fill(
        _ part: PartFile, with digest: String, in workPath: WorkPath
    ) throws(DownloadError) -> (path: String, length: Int64)? {
        guard let id = find(digest, in: workPath), let record = try? StoreReader(workPath).record(id),
            record.state == .complete,
            case .proven(by: .digest) = record.versionOfFinished.joins(Self.version(digest)), let path = record.path,
            let length = record.expected,
            record.claim(path).act(.reuse) == .read,
            let folder = try? Folder(path: path.folderPart),
            let source = try? PartFile(reading: path.lastPathPart, in: folder)
        else { return nil }
        defer { source.close() }
        do throws(DownloadError) {
            try part.fill(from: source)
            if part.length == length, try part.digest(.sha256) == digest { return (path, length) }
        } catch {
            // The record says nothing of these bytes, so they must not stay, least of all on a full disk.
            try? part.truncate(to: 0)
            throw error
        }
        try part.truncate(to: 0)
        return nil
    }

    private func find(_ digest: String, in workPath: WorkPath) -> TaskID? {
        tasks.withLock { tasks in
            if tasks == nil {
                var found: [String: TaskID] = [:]
                let isRead = try? StoreReader(workPath).records(where: { record in
                    if let digest = Self.digest(of: record) { found[digest] = record.id }
                    return false
                })
                if isRead != nil { tasks = found }
            }
            return tasks?[digest]
        }
    }

    /// The version that is wanted.
    private static func version(_ digest: String) -> FileVersion {
        FileVersion(validator: Validator(digest: try? Checksum(.sha256, hex: digest)), isVouched: true)
    }

    /// The SHA-256 with which a complete file was verified; nil for any other.
    private static func digest(of record: TaskRecord) -> String? {
        guard record.state == .complete, record.isForeign != true else { return nil }
        let own = record.task.optionsBox?.value.checksum
        return [own, record.validator?.digest].compactMap(\.self).first { $0.algorithm == .sha256 }?.hex
    }
}
