import FKMiddleware
import Foundation

/// Moves rejected or old files of a task to hidden names in the same folder. It never replaces another file.
extension TaskEntry {
    /// Moves the task's own file aside, until the task is complete or trashed. The record contains the file first, so that a
    /// killed process leaves no unknown file.
    ///
    /// - Parameters:
    ///   - identity: the identity of the file; nil if it is kept.
    ///   - names: returns the name to try, by its number.
    /// - Returns: its new path.
    package func setAside(
        _ name: String, in folder: Folder, _ identity: FileIdentity?, _ book: TaskBook, as names: (Int) -> String
    ) throws(DownloadError) -> String {
        var number = 0
        while true {
            let other = folder.fitted(names(number))
            let path = folder.path(of: other)
            // An earlier file of this task with the same name is of no use any more.
            record.removeSetAside(path)
            if !folder.contains(other) {
                if let identity {
                    record.setAside(SetAsideFile(path: path, written: identity))
                    // Without the record the file is still moved: wrong bytes must not have the right name.
                    try? book.save(self)
                }
                do throws(DownloadError) {
                    if try folder.rename(name, to: other, replacing: false) { return path }
                } catch {
                    guard folder.useStricterNames(for: names(number), error) else { throw error }
                    continue
                }
            }
            number += 1
        }
    }

    /// Moves a file aside that is not proven to be the task's. It is kept, and the task forgets it.
    ///
    /// - Returns: its new path.
    package func keep(_ name: String, in folder: Folder, for final: String) throws(DownloadError) -> String {
        var number = 0
        while true {
            let kept = FileNameRules.oldName(for: folder.fitted(final), id: id, number: number)
            if try folder.rename(name, to: kept, replacing: false) { return folder.path(of: kept) }
            number += 1
        }
    }
}
