import FKMiddleware
import Foundation

/// Files under a task's names that do not count: moved to a hidden name beside them, and never over another file.
extension TaskEntry {
    /// Moves the task's own file aside, until the task is complete or trashed.
    ///
    /// The record tells of it first: a process that is killed in between leaves nothing that nobody knows of.
    ///
    /// - Parameters:
    ///   - identity: of that file; nil for one that is kept for good.
    ///   - names: the names to try, by their number.
    /// - Returns: its new path.
    func setAside(
        _ name: String, in folder: Folder, _ identity: FileIdentity?, _ book: TaskBook, as names: (Int) -> String
    ) throws(DownloadError) -> String {
        var number = 0
        while true {
            let path = folder.path(of: names(number))
            // An earlier one of this task under the same name is of no use any more.
            record.removeSetAside(path)
            if !folder.contains(names(number)) {
                if let identity {
                    record.setAside(SetAsideFile(path: path, written: identity))
                    // A disk that refuses the record is no reason to leave wrong bytes under a right name.
                    try? book.save(self)
                }
                if try folder.rename(name, to: names(number), replacing: false) { return path }
            }
            number += 1
        }
    }

    /// Moves a file aside that nothing shows to be the task's: it is kept, and the task forgets it.
    ///
    /// - Returns: its new path.
    func keep(_ name: String, in folder: Folder, for final: String) throws(DownloadError) -> String {
        var number = 0
        while true {
            let kept = FileNameRules.oldName(for: final, id: id, number: number)
            if try folder.rename(name, to: kept, replacing: false) { return folder.path(of: kept) }
            number += 1
        }
    }
}
