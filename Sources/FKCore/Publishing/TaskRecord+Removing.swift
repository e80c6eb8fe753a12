import FKMiddleware
import Foundation

/// The files of a task that is cancelled, trashed or forgotten.
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
    /// - Parameter keepsFinished: the finished file stays, and is nobody's from then on.
    /// - Returns: what became of the files.
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

    /// - Returns: what became of it, for the end of a line.
    private func delete(_ path: String) -> String {
        guard isForeign != true, FileIdentity(path: path) != nil else { return "" }
        guard owns(path) else { return "; \(path) stays: it is not the file as this task left it" }
        if unlink(path) == 0 { return ", deleted \(path)" }
        return errno == ENOENT ? "" : "; \(path) stays: \(String(cString: strerror(errno)))"
    }

    /// Removes the task's mark, so that after a power cut the file is not taken for a leftover of a task.
    private func release(_ path: String) -> String {
        guard FileIdentity(path: path) != nil else { return "" }
        if isForeign != true, owns(path) { FileOwner.clear(path) }
        return ", kept \(path)"
    }
}
