import FKMiddleware
import Foundation

extension WorkPath {
    /// The destination: the folder of a task's finished file.
    package func destination(of record: TaskRecord) -> String { record.task.directory ?? filesFolder(record.id) }

    /// True for a path in the folder of a task without a destination of its own.
    package func isOwn(_ path: String, _ id: TaskID) -> Bool {
        path.hasPrefix(filesFolder(id) + "/") && !path.contains("/../")
    }
}

/// A downloaded file must not become a file of the work path: the engine runs the programs that its `middlewares` names.
extension Folder {
    /// True for a destination in the work path, or in another one. The nearest existing folder of the path decides, before a
    /// missing one is created. The folders themselves are compared and not their names, so a symlink does not hide it.
    ///
    /// - Throws: `.destination` if a folder cannot be opened.
    static func isInWorkPath(_ workPath: WorkPath, _ path: String) throws(DownloadError) -> Bool {
        var nearest = path
        var descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        while descriptor < 0, errno == ENOENT, nearest.utf8.count > 1 {
            nearest = nearest.folderPart
            descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw DownloadError(system: errno, "open the folder", nearest, in: .destination) }
        defer { close(descriptor) }
        return try isInside(descriptor, workPath, path)
    }

    /// Checks that a destination is in no work path.
    ///
    /// - Throws: `.destination` if a work path is this folder or above it, or if a folder cannot be opened.
    static func checkOutside(_ workPath: WorkPath, _ path: String) throws(DownloadError) {
        if try isInWorkPath(workPath, path) { throw inWorkPath(path) }
    }

    /// Checks the open folder itself.
    ///
    /// - Throws: same as for a path.
    func checkOutside(_ workPath: WorkPath) throws(DownloadError) {
        if try Self.isInside(descriptor, workPath, path) { throw Self.inWorkPath(path) }
    }

    /// The error for a destination in a work path.
    static func inWorkPath(_ path: String) -> DownloadError {
        DownloadError(
            .destination, "\(path) is in a work path, whose files are not downloads: choose another folder.")
    }

    private static func isWorkPath(_ folder: Int32) -> Bool {
        faccessat(folder, WorkPath.layoutName, F_OK, 0) == 0 && faccessat(folder, WorkPath.lockName, F_OK, 0) == 0
    }

    /// True if the open folder, or one above it, is the work path or has the files of another one.
    private static func isInside(
        _ descriptor: Int32, _ workPath: WorkPath, _ path: String
    ) throws(DownloadError) -> Bool {
        var root = stat()
        guard stat(workPath.root, &root) == 0 else {
            throw DownloadError(system: errno, "find the work path", workPath.root, in: .destination)
        }
        let other = Identity(root)
        var current = dup(descriptor)
        defer { if current >= 0 { close(current) } }
        var last: Identity?
        while true {
            var status = stat()
            guard current >= 0, fstat(current, &status) == 0 else {
                throw DownloadError(system: errno, "look above the folder", path, in: .destination)
            }
            let identity = Identity(status)
            if identity == other || isWorkPath(current) { return true }
            // The root is its own parent.
            if identity == last { return false }
            last = identity
            let parent = openat(current, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // A folder above that may be entered and not read, such as another user's, is no folder of the work path, which
            // belongs to this user.
            if parent < 0, errno == EACCES { return false }
            close(current)
            current = parent
        }
    }
}
