import FKMiddleware
import Foundation

/// The files of a task that is cancelled, trashed or forgotten.
extension TaskRecord {
    /// Deletes the part file. It does not create a missing folder.
    func removePart(of workPath: WorkPath) {
        guard let name = partName else { return }
        let path = task.directory ?? workPath.filesFolder(id)
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0 else { return }
        try? Folder(path: path).removePart(name)
    }

    /// Deletes the files that this task wrote. A file that existed before, or that was replaced since, stays.
    ///
    /// - Parameter keepsFinished: true keeps the finished file, which then belongs to no task.
    /// - Returns: a note about the files.
    func removeFiles(of workPath: WorkPath, keepsFinished: Bool) -> String {
        removePart(of: workPath)
        let note = "forgotten" + (path.map { keepsFinished ? release($0) : delete($0) } ?? "")
        for file in setAside ?? [] { file.remove() }
        let folder = task.directory ?? workPath.filesFolder(id)
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: response)
        let rejected = "\(folder)/\(FileNameRules.rejectedName(for: name, id: id))"
        if setAside == nil, ownsRejected(rejected) { unlink(rejected) }
        if task.directory == nil { rmdir(folder) }
        return note
    }

    /// - Returns: the end of the note.
    private func delete(_ path: String) -> String {
        guard isForeign != true, FileIdentity(path: path) != nil else { return "" }
        guard owns(path) else { return "; \(path) stays: it is not the file as this task left it" }
        if unlink(path) == 0 { return ", deleted \(path)" }
        return errno == ENOENT ? "" : "; \(path) stays: \(String(cString: strerror(errno)))"
    }

    /// Removes the task's mark. Otherwise the file would count as a leftover of the task after a power cut.
    private func release(_ path: String) -> String {
        guard FileIdentity(path: path) != nil else { return "" }
        if isForeign != true, owns(path) { FileOwner.clear(path) }
        return ", kept \(path)"
    }
}
