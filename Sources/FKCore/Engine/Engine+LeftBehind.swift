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

    /// After a kill between the record and the removing: by now the place may be somebody else's.
    func forgetLeftBehind(_ entry: TaskEntry) {
        guard let left = entry.record.leftBehind else { return }
        entry.record.leftBehind = left.filter { path in
            guard let file = entry.record.path, !Self.isOneName(file, path) else { return false }
            return Self.isOneFile(file, path) || FileOwner.isMarked(path, as: entry.id)
        }
        removeLeftBehind(entry)
        write(entry)
    }

    /// Two names of one file.
    private static func isOneFile(_ path: String, _ other: String) -> Bool {
        var one = stat()
        var two = stat()
        return lstat(path, &one) == 0 && lstat(other, &two) == 0 && one.st_ino == two.st_ino
            && one.st_dev == two.st_dev
    }

    /// One name, whatever symlinks lead to its folder.
    private static func isOneName(_ path: String, _ other: String) -> Bool {
        path.lastPathPart == other.lastPathPart
            && (path.folderPart == other.folderPart || isOneFile("\(path.folderPart)/.", "\(other.folderPart)/."))
    }
}
