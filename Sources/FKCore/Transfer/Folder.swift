import FKMiddleware
import Foundation

/// A destination folder held open, so that files are made and renamed beneath it even when somebody moves the folder
/// or puts a symlink in its place. Safe to use from any thread.
final class Folder: Sendable {
    let path: String
    private let descriptor: Int32
    /// Which folder it is; nil when the system does not tell.
    private let identity: Identity?

    /// Which file or folder it is, whatever name it has.
    struct Identity: Equatable {
        var device: dev_t
        var inode: ino_t

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Opens the folder and makes it, with its parents, when it is not there.
    ///
    /// - Throws: `.destination` naming the part of the path that cannot be made or opened.
    init(path: String) throws(DownloadError) {
        self.path = path
        var descriptor = systemOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT {
            try Self.create(path)
            descriptor = systemOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
        guard descriptor >= 0 else { throw DownloadError(system: errno, "open the folder", path, in: .destination) }
        self.descriptor = descriptor
        var status = stat()
        identity = fstat(descriptor, &status) == 0 ? Identity(status) : nil
    }

    deinit { close(descriptor) }

    private static func create(_ path: String) throws(DownloadError) {
        if mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        let parent = path.folderPart
        guard errno == ENOENT, parent.utf8.count > 1 else {
            throw DownloadError(system: errno, "make the folder", path, in: .destination)
        }
        try create(parent)
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else {
            throw DownloadError(system: errno, "make the folder", path, in: .destination)
        }
    }

    /// False once the folder was removed or something else stands in its place: then it has to be opened again.
    var isStillThere: Bool {
        var named = stat()
        return path.withCString { stat($0, &named) } == 0 && Identity(named) == identity
    }

    /// A file that gets its name in a folder that is not there any more would be nowhere, or where nobody looks.
    ///
    /// - Throws: `.destination` when the folder was removed, or when something else stands in its place.
    func checkStillThere() throws(DownloadError) {
        if isStillThere { return }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw DownloadError(system: errno, "find the folder", path, in: .destination)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            throw DownloadError(system: ENOTDIR, "find the folder", path, in: .destination)
        }
        throw DownloadError(
            .destination,
            "The folder \(path) is another one than when the file was begun in it: retry to fetch it into this one.")
    }

    /// The file system it is on; nil when the system does not tell.
    var device: dev_t? { identity?.device }

    var fileSystem: statvfs? {
        var status = statvfs()
        return fstatvfs(descriptor, &status) == 0 ? status : nil
    }

    func path(of name: String) -> String { path.path(of: name) }

    /// What stands under a name: nil for nothing. Symlinks are not followed.
    func status(of name: String) -> stat? {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// True when something, of whatever kind, bears the name.
    func contains(_ name: String) -> Bool { status(of: name) != nil }

    /// Whether a rename may replace what bears the name: nothing, a file, or a symlink, which is itself replaced.
    ///
    /// - Throws: `.destination` for a folder, a FIFO, a socket or a device: those are somebody's, and not a download.
    func checkReplaceable(_ name: String) throws(DownloadError) {
        guard let status = status(of: name) else { return }
        guard [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) else { throw notAFile(name) }
    }

    /// The length in bytes of the file that bears the name, or to which the symlink of that name leads.
    ///
    /// - Throws: `.destination` when it is no file.
    func fileLength(_ name: String) throws(DownloadError) -> Int64 {
        var status = stat()
        guard fstatat(descriptor, name, &status, 0) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw notAFile(name)
        }
        return Int64(status.st_size)
    }

    /// Whether the name is that of a file that a task has left under it before `date` and nobody has written to since.
    func isLeftover(_ name: String, of id: TaskID, _ owner: FileOwner, before date: Date) -> Bool {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var status = stat()
        return fstat(file, &status) == 0 && Double(status.modificationTime) / 1e9 < date.timeIntervalSince1970
            && owner.proves(file, id)
    }

    /// What bears a name, as the search for a free one has to know it.
    func place(of name: String, _ owner: FileOwner) -> NameNumbers.Place {
        guard let status = status(of: name) else { return .free }
        guard status.st_mode & S_IFMT == S_IFREG, isOfEarlierBoot(status), let task = task(of: name, owner) else {
            return .taken
        }
        return .leftover(of: task)
    }

    private func isOfEarlierBoot(_ status: stat) -> Bool {
        Double(status.modificationTime) / 1e9 < BootID.began.timeIntervalSince1970
    }

    /// The task that has left the file; nil for none.
    private func task(of name: String, _ owner: FileOwner) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return owner.provenTask(file)
    }

    private func notAFile(_ name: String) -> DownloadError {
        DownloadError(.destination, "\(path(of: name)) exists and is not a file.")
    }

    /// Opens or makes a regular file; never through a symlink.
    func open(_ name: String, flags: Int32) throws(DownloadError) -> Int32 {
        let file = name.withCString { openat(descriptor, $0, flags | O_NOFOLLOW | O_CLOEXEC, 0o666) }
        guard file >= 0 else {
            let action = flags & O_ACCMODE == O_RDONLY ? "read" : "write to"
            throw DownloadError(system: errno, action, path(of: name), in: .destination)
        }
        return file
    }

    /// Gives a file another name in this folder.
    ///
    /// - Returns: false when `replacing` is false and the name is taken; the file then keeps its name.
    /// - Throws: `.destination` when what is to be replaced is not a file, or for the system's reason.
    func rename(_ name: String, to newName: String, replacing: Bool) throws(DownloadError) -> Bool {
        if replacing {
            try checkReplaceable(newName)
            guard renameat(descriptor, name, descriptor, newName) == 0 else {
                throw DownloadError(system: errno, "rename to", path(of: newName), in: .destination)
            }
            return true
        }
        if exclusiveRename(descriptor, name, newName) == 0 { return true }
        // The file system cannot rename exclusively: a hard link can do the same in two steps.
        if errno == EINVAL || errno == ENOSYS || errno == ENOTSUP, linkat(descriptor, name, descriptor, newName, 0) == 0
        {
            unlinkat(descriptor, name, 0)
            return true
        }
        guard errno == EEXIST else {
            throw DownloadError(system: errno, "rename to", path(of: newName), in: .destination)
        }
        // Killed between the two steps, a process leaves the file under both names: it is not in its own way.
        guard areOne(name, newName) else { return false }
        unlinkat(descriptor, name, 0)
        return true
    }

    private func areOne(_ name: String, _ other: String) -> Bool {
        guard let first = status(of: name), let second = status(of: other) else { return false }
        return Identity(first) == Identity(second)
    }

    func remove(_ name: String) { unlinkat(descriptor, name, 0) }

    /// Makes names given in this folder survive a power cut.
    func synchronize() throws(DownloadError) {
        guard fsync(descriptor) == 0 else {
            throw DownloadError(system: errno, "sync the folder", path, in: .destination)
        }
    }
}

/// The name is taken by a method above.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }

#if canImport(Glibc) || canImport(Musl)
    private typealias RenameAt2 =
        @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

    /// `renameat2` is not in the headers Swift imports; glibc has it since 2.28.
    private let renameAt2: RenameAt2? = dlsym(nil, "renameat2").map { unsafeBitCast($0, to: RenameAt2.self) }

    private func exclusiveRename(_ folder: Int32, _ name: String, _ newName: String) -> Int32 {
        guard let renameAt2 else {
            errno = ENOSYS
            return -1
        }
        let noReplace: UInt32 = 1
        return name.withCString { name in
            newName.withCString { renameAt2(folder, name, folder, $0, noReplace) }
        }
    }
#else
    private func exclusiveRename(_ folder: Int32, _ name: String, _ newName: String) -> Int32 {
        renameatx_np(folder, name, folder, newName, UInt32(RENAME_EXCL))
    }
#endif
