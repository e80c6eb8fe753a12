import FKMiddleware
import Foundation

/// Files that response middlewares have moved. The old place is removed after the record that tells of the new one: a
/// process that is killed in between has a file that is found, in one place or in both.
extension Engine {
    /// Where the chain has left the file, and what else there is of it.
    ///
    /// From here on the file counts as it is now: what middlewares have made of it is the task's. At its old name only the
    /// file that was there is: another one that somebody has put there meanwhile stays. So does a new file under the old
    /// name after a chain that was stopped: nothing says then that it is a middleware's.
    func takePlace(from response: DownloadResponse, _ entry: TaskEntry, isStopped: Bool) {
        let (oldPath, old) = (entry.record.path, entry.record.written)
        if let path = response.fileURL?.path { entry.record.path = path }
        guard let path = entry.record.path else { return }
        let file = FileIdentity(path: path)
        let isSamePath = oldPath?.isExactly(path) == true
        if !isStopped || !isSamePath || file?.inode == old?.inode { entry.record.written = file }
        let left = response.leftBehind.map(\.path).filter { other in
            guard !Self.isOneName(path, other) else { return false }
            guard oldPath?.isExactly(other) == true, let old, let file = FileIdentity(path: other),
                file.inode != old.inode, !FileNames.areOfOneFile(path, other)
            else { return true }
            problems.append("\(other) stays: it is another file than the one that was moved to \(path).")
            return false
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
            return FileNames.areOfOneFile(file, path) || owner.proves(path, entry.id)
        }
        removeLeftBehind(entry)
        write(entry)
    }

    /// One name, whatever symlinks lead to its folder.
    private static func isOneName(_ path: String, _ other: String) -> Bool {
        guard path.lastPathPart.isExactly(other.lastPathPart) else { return false }
        let (folder, otherFolder) = (path.folderPart, other.folderPart)
        return folder.isExactly(otherFolder) || FileNames.areOfOneFile("\(folder)/.", "\(otherFolder)/.")
    }
}
