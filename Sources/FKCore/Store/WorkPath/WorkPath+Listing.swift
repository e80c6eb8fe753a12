import FKMiddleware
import Foundation

/// The tasks of a work path, from the names in its folders.
extension WorkPath {
    /// The ids of all tasks, in no particular order. It reads only folders. A missing folder has no tasks.
    ///
    /// - Throws: `.disk` if a folder cannot be listed.
    package func allTaskIDs() throws -> [TaskID] {
        var ids: [TaskID] = []
        try FileIO.forEachName(in: tasksFolder) { shard in
            guard shard.count == 2 else { return true }
            try FileIO.forEachName(in: "\(tasksFolder)/\(String(decoding: shard, as: UTF8.self))") { name in
                if let id = Self.taskID(fileName: name) { ids.append(id) }
                return true
            }
            return true
        }
        return ids
    }

    /// The ids of all tasks, in no particular order. It removes the files beside info files that are gone: a kill after a task's
    /// digests were written and before its record was, or while a task was being removed, leaves one. Only for the engine of the
    /// work path.
    package func sweptTaskIDs() throws -> [TaskID] {
        var ids: [TaskID] = []
        try FileIO.forEachName(in: tasksFolder) { shard in
            guard shard.count == 2 else { return true }
            let folder = "\(tasksFolder)/\(String(decoding: shard, as: UTF8.self))"
            let first = ids.count
            var others: [(id: TaskID, name: String)] = []
            try FileIO.forEachName(in: folder) { name in
                if let id = Self.taskID(fileName: name) {
                    ids.append(id)
                } else if name.count > 64,
                    ["digests", "pieces"].contains(where: { name[64...].elementsEqual(".\($0)".utf8) }),
                    let id = TaskID(hexDigits: UnsafeBufferPointer(rebasing: name[..<64]))
                {
                    others.append((id, String(decoding: name, as: UTF8.self)))
                }
                return true
            }
            guard !others.isEmpty else { return true }
            let present = Set(ids[first...])
            for other in others where !present.contains(other.id) { unlink("\(folder)/\(other.name)") }
            return true
        }
        return ids
    }

    /// The ids whose hexadecimal form starts with `prefix` (at least two digits), in no particular order.
    package func taskIDs(prefix: String) throws -> [TaskID] {
        guard prefix.utf8.count >= 2 else { return [] }
        var ids: [TaskID] = []
        let digits = Array(prefix.utf8)
        try FileIO.forEachName(in: "\(tasksFolder)/\(prefix.prefix(2))") { name in
            if name.starts(with: digits), let id = Self.taskID(fileName: name) { ids.append(id) }
            return true
        }
        return ids
    }

    private static func taskID(fileName: UnsafeBufferPointer<UInt8>) -> TaskID? {
        guard fileName.count == 69, fileName[64...].elementsEqual(".info".utf8) else { return nil }
        return TaskID(hexDigits: UnsafeBufferPointer(rebasing: fileName[..<64]))
    }
}
