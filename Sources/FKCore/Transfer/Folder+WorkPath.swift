import FKMiddleware
import Foundation

/// A downloaded file must not become a file of the work path: the engine runs the programs that its `middlewares` names.
extension Folder {
    /// Checks that a destination is not in the work path. The nearest existing folder of the path decides, before a
    /// missing one is created. The folders themselves are compared and not their names, so a symlink does not hide it.
    ///
    /// - Throws: `.destination` if the work path is this folder or above it.
    static func checkOutside(_ workPath: WorkPath, _ path: String) throws(DownloadError) {
        var nearest = path
        var descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        while descriptor < 0, errno == ENOENT, nearest.utf8.count > 1 {
            nearest = nearest.folderPart
            descriptor = Foundation.open(nearest, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw DownloadError(system: errno, "open the folder", nearest, in: .destination) }
        defer { close(descriptor) }
        try check(descriptor, outside: workPath, path)
    }

    /// Checks the open folder itself.
    ///
    /// - Throws: same as for a path.
    func checkOutside(_ workPath: WorkPath) throws(DownloadError) {
        try Self.check(descriptor, outside: workPath, path)
    }

    private static func check(
        _ descriptor: Int32, outside workPath: WorkPath, _ path: String
    ) throws(DownloadError) {
        var root = stat()
        guard stat(workPath.root, &root) == 0 else {
            throw DownloadError(system: errno, "find the work path", workPath.root, in: .destination)
        }
        guard try isInside(descriptor, Identity(root), path) else { return }
        throw DownloadError(
            .destination,
            "\(path) is in the work path \(workPath.root), whose files are not downloads: choose another folder.")
    }

    /// True if the open folder, or one above it, is the other folder.
    private static func isInside(
        _ descriptor: Int32, _ other: Identity, _ path: String
    ) throws(DownloadError) -> Bool {
        var current = dup(descriptor)
        defer { if current >= 0 { close(current) } }
        var last: Identity?
        while true {
            var status = stat()
            guard current >= 0, fstat(current, &status) == 0 else {
                throw DownloadError(system: errno, "look above the folder", path, in: .destination)
            }
            let identity = Identity(status)
            if identity == other { return true }
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
