import FKMiddleware
import Foundation

/// The files of a task that is cancelled or trashed.
extension TaskRecord {
    /// Deletes the part file. A folder that is gone is not made again for this.
    func removePart(of workPath: WorkPath) {
        guard let name = partName else { return }
        let path = task.directory ?? workPath.filesFolder(id)
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0 else { return }
        try? Folder(path: path).removePart(name)
    }

    /// Deletes what this task wrote, and nothing else: a file that was there before, or that is another one by now, stays.
    ///
    /// - Returns: what became of the files.
    func removeFiles(of workPath: WorkPath) -> String {
        var note = "forgotten"
        removePart(of: workPath)
        if let path, isForeign != true, FileIdentity(path: path) != nil {
            if !owns(path) {
                note += "; \(path) stays: it is not the file as this task left it"
            } else if unlink(path) == 0 {
                note += ", deleted \(path)"
            } else if errno != ENOENT {
                note += "; \(path) stays: \(String(cString: strerror(errno)))"
            }
        }
        for file in setAside ?? [] { file.remove() }
        let folder = task.directory ?? workPath.filesFolder(id)
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: response)
        let rejected = "\(folder)/\(FileNameRules.rejectedName(for: name, id: id))"
        if setAside == nil, ownsRejected(rejected) { unlink(rejected) }
        if task.directory == nil { rmdir(folder) }
        return note
    }
}
