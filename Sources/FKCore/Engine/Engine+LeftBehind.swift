import FKMiddleware
import Foundation

/// Files that response middlewares have moved. The old place is removed after the record that tells of the new one: a
/// process that is killed in between has a file that is found, in one place or in both.
extension Engine {
    /// Where the chain has left the file, and what else there is of it.
    func takePlace(from response: DownloadResponse, _ entry: TaskEntry) {
        if let path = response.fileURL?.path { entry.record.path = path }
        let left = response.leftBehind.map(\.path).filter { path in
            entry.record.path.map { !Self.isOneName($0, path) } ?? true
        }
        entry.record.leftBehind = left.isEmpty ? nil : left
    }

    /// With `Durability.power` the file's new name has to be on the disk before the record says so.
    func completeMoved(_ entry: TaskEntry, _ attempt: Attempt) {
        guard configure.durability == .power, entry.record.leftBehind != nil, let path = entry.record.path else {
            return complete(entry)
        }
        offEngine(entry.id) { () throws(DownloadError) in
            try Folder(path: path.folderPart).synchronize()
        } then: { engine, entry, attempt, result in
            guard case .failure(let error) = result else { return engine.complete(entry) }
            engine.reject(entry, attempt, error)
        }
    }

    func removeLeftBehind(_ entry: TaskEntry) {
        for path in entry.record.leftBehind ?? [] { unlink(path) }
        entry.record.leftBehind = nil
    }

    /// After a kill between the record and the removing: by now the place may be somebody else's. What is left is removed
    /// with the next writing of the record.
    func forgetLeftBehind(_ entry: TaskEntry) {
        guard let left = entry.record.leftBehind else { return }
        entry.record.leftBehind = left.filter { path in
            guard let file = entry.record.path, !Self.isOneName(file, path) else { return false }
            return FileNames.areOfOneFile(file, path) || FileOwner.isMarked(path, as: entry.id)
        }
        writeRecovered(entry)
    }

    /// One name, whatever symlinks lead to its folder.
    private static func isOneName(_ path: String, _ other: String) -> Bool {
        guard path.lastPathPart.isExactly(other.lastPathPart) else { return false }
        let (folder, otherFolder) = (path.folderPart, other.folderPart)
        return folder.isExactly(otherFolder) || FileNames.areOfOneFile("\(folder)/.", "\(otherFolder)/.")
    }
}
