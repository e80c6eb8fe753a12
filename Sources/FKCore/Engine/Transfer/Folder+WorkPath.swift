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
    /// The error for a destination in the work path, or in another one; nil for any other. The nearest existing folder of the path
    /// decides, before a missing one is created. The folders themselves are compared and not their names, so a symlink does not hide
    /// it.
    ///
    /// - Throws: `.destination` if a folder cannot be opened.
    static func inWorkPath(_ workPath: WorkPath, _ path: String) throws(DownloadError) -> DownloadError? {
        var nearest = path
        var descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        while descriptor < 0, errno == ENOENT, nearest.utf8.count > 1 {
            nearest = nearest.folderPart
            descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw DownloadError(system: errno, "open the folder", nearest, in: .destination) }
        defer { close(descriptor) }
        return try inWorkPath(workPath, path, descriptor, nearest)
    }

    /// Checks that a destination is in no work path.
    ///
    /// - Throws: `.destination` if a work path is this folder or above it, or if a folder cannot be opened.
    static func checkOutside(_ workPath: WorkPath, _ path: String) throws(DownloadError) {
        if let error = try inWorkPath(workPath, path) { throw error }
    }

    /// Checks the open folder itself.
    ///
    /// - Throws: same as for a path.
    func checkOutside(_ workPath: WorkPath) throws(DownloadError) {
        if let error = try Self.inWorkPath(workPath, path, descriptor, path) { throw error }
    }

    private static func isWorkPath(_ folder: Int32) -> Bool {
        faccessat(folder, WorkPath.layoutName, F_OK, 0) == 0 && faccessat(folder, WorkPath.lockName, F_OK, 0) == 0
    }

    /// The error if the open folder, or one above it, is the work path or has the files of another one.
    ///
    /// - Parameters:
    ///   - path: the destination.
    ///   - name: the path of the open folder.
    private static func inWorkPath(
        _ workPath: WorkPath, _ path: String, _ descriptor: Int32, _ name: String
    ) throws(DownloadError) -> DownloadError? {
        var root = stat()
        guard stat(workPath.root, &root) == 0 else {
            throw DownloadError(system: errno, "find the work path", workPath.root, in: .destination)
        }
        let other = Identity(root)
        var current = dup(descriptor)
        defer { if current >= 0 { close(current) } }
        var last: Identity?
        var levels = 0
        while true {
            var status = stat()
            guard current >= 0, fstat(current, &status) == 0 else {
                throw DownloadError(system: errno, "look above the folder", path, in: .destination)
            }
            let identity = Identity(status)
            if identity == other { return inWorkPath(path, workPath.root, isOther: false) }
            if isWorkPath(current) { return inWorkPath(path, folder(levels, above: name), isOther: true) }
            // The root is its own parent.
            if identity == last { return nil }
            last = identity
            levels += 1
            let parent = openat(current, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            // A folder above that may be entered and not read, such as another user's, is no folder of the work path, which
            // belongs to this user.
            if parent < 0, errno == EACCES { return nil }
            close(current)
            current = parent
        }
    }

    private static func inWorkPath(_ path: String, _ root: String, isOther: Bool) -> DownloadError {
        // A command ends its line, so that it can be copied.
        let mark = "\(root)/\(WorkPath.layoutName)".shellWord
        let undo = isOther ? ". If \(root) is no work path, run: rm \(mark)" : "."
        return DownloadError(
            .destination,
            "\(path) is in the work path \(root), whose files are not downloads: choose another folder" + undo)
    }

    /// The path of a folder above that one, without symlinks.
    private static func folder(_ levels: Int, above path: String) -> String {
        let real = realpath(path, nil)
        defer { Foundation.free(real) }
        var folder = real.map { String(cString: $0) } ?? path
        for _ in 0..<levels { folder = folder.folderPart }
        return folder
    }
}
