import FKMiddleware
import Foundation
import Synchronization

/// A destination folder that is kept open. Files are created and renamed inside it even if the folder is moved or
/// replaced by a symlink. Safe to use from any thread.
package final class Folder: Sendable {
    package let path: String
    package let descriptor: Int32
    /// The identity of the folder; nil if the system does not report it.
    private let identity: Identity?
    private let lacksMarks = Atomic(false)
    /// The number of times that the file system refused a name for its characters: 0, 1 or 2.
    private let strictness = Atomic(0)

    /// The identity of a file or folder, independent of its name.
    struct Identity: Equatable {
        var device: dev_t
        var inode: ino_t

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
        }
    }

    /// Opens the folder.
    ///
    /// - Parameter creates: true creates it, with its parents, if it is missing. The default is false: who only reads, moves or removes a
    ///   file leaves no folder behind.
    /// - Throws: `.destination` with the part of the path that cannot be created or opened.
    package init(path: String, creates: Bool = false) throws(DownloadError) {
        self.path = path
        var descriptor = systemOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT, creates {
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

    /// False if the folder was removed or replaced. It must then be opened again.
    var isStillThere: Bool {
        var named = stat()
        return path.withCString { stat($0, &named) } == 0 && Identity(named) == identity
    }

    /// Checks that the path still leads to this folder, because a file published elsewhere would be lost.
    ///
    /// - Throws: `.destination` if the folder was removed or replaced.
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
            "The folder \(path) is not the one in which the download started: retry to fetch the file into it.")
    }

    /// True if both are the same folder, whatever their paths are.
    func isOne(with other: Folder) -> Bool { identity != nil && identity == other.identity }

    /// The file system of the folder; nil if the system does not report it.
    var device: dev_t? { identity?.device }

    var fileSystem: statvfs? {
        var status = statvfs()
        return fstatvfs(descriptor, &status) == 0 ? status : nil
    }

    package func path(of name: String) -> String { path.path(of: name) }

    /// The name as the file system takes it, as far as is known: other characters than exFAT and SMB have, and then also those
    /// beyond ASCII, are replaced once it has refused a name.
    func fitted(_ name: String) -> String {
        let strictness = strictness.load(ordering: .relaxed)
        return strictness == 0 ? name : FileNameParts.portable(name, onlyASCII: strictness > 1)
    }

    /// The file system has refused a name.
    ///
    /// - Parameter error: of the attempt to use it; nothing changes if it is not of this folder.
    /// - Returns: false if `fitted` has no other name for it.
    func useStricterNames(for name: String, _ error: DownloadError) -> Bool {
        guard error.remedy == .chooseFittingName, error.message.hasPrefix(refusalPrefix) else { return false }
        let old = fitted(name)
        for step in 1...2 where step > strictness.load(ordering: .relaxed) {
            strictness.store(step, ordering: .relaxed)
            if !fitted(name).isExactly(old) { return true }
        }
        return false
    }

    private var refusalPrefix: String { "The file system of \(path) refuses the name " }

    /// The error for a name that the file system refuses for its characters; nil if the system's error says something else.
    func refusal(of name: String, _ code: Int32) -> DownloadError? {
        guard code == EINVAL || code == EILSEQ, let character = FileNameParts.refused(in: name, onlyASCII: true) else {
            return nil
        }
        let isEnd = character == "." || character == " "
        return DownloadError(
            .destination,
            "\(refusalPrefix)\"\(name.visible)\" because of "
                + "\(isEnd ? "its last character" : "'\(String(character).visible)'").",
            underlying: String(cString: strerror(code)), remedy: .chooseFittingName)
    }

    /// False once a file of the folder could not have a mark (`FileOwner`).
    var takesMarks: Bool { !lacksMarks.load(ordering: .relaxed) }

    func recordLackOfMarks() { lacksMarks.store(true, ordering: .relaxed) }

    /// The status of the entry with a name, without following symlinks; nil if there is none.
    package func status(of name: String) -> stat? {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// True if an entry of any kind has the name.
    package func contains(_ name: String) -> Bool { status(of: name) != nil }

    /// Checks that a rename may replace the entry with that name: none, a file, or a symlink, which is itself
    /// replaced.
    ///
    /// - Throws: `.destination` for a folder, a FIFO, a socket or a device, because those are never downloads.
    func checkReplaceable(_ name: String) throws(DownloadError) {
        guard let status = status(of: name) else { return }
        guard [S_IFREG, S_IFLNK].contains(status.st_mode & S_IFMT) else { throw notAFile(name) }
    }

    /// The length in bytes of the file with that name, or of the file that its symlink points to.
    ///
    /// - Throws: `.destination` if it is not a file.
    func fileLength(_ name: String) throws(DownloadError) -> Int64 {
        var status = stat()
        guard fstatat(descriptor, name, &status, 0) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw notAFile(name)
        }
        return Int64(status.st_size)
    }

    /// True if a task left the file under this name before `date` and it was not written to since.
    func isLeftover(_ name: String, of id: TaskID, _ owner: FileOwner, before date: Date) -> Bool {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var status = stat()
        return fstat(file, &status) == 0 && Double(status.modificationTime) / 1e9 < date.timeIntervalSince1970
            && owner.proves(file, id)
    }

    /// The state of a name, for the search for a free one.
    package func place(of name: String, _ owner: FileOwner) -> NameNumbers.Place {
        guard let status = status(of: name) else { return .free }
        guard status.st_mode & S_IFMT == S_IFREG, isOfEarlierBoot(status), let task = task(of: name, owner) else {
            return .taken
        }
        return .leftover(of: task)
    }

    private func isOfEarlierBoot(_ status: stat) -> Bool {
        Double(status.modificationTime) / 1e9 < BootID.began.timeIntervalSince1970
    }

    /// The task that left the file; nil if there is none.
    private func task(of name: String, _ owner: FileOwner) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return owner.provenTask(file)
    }

    private func notAFile(_ name: String) -> DownloadError {
        DownloadError(.destination, "\(path(of: name)) exists and is not a file.")
    }

    /// Opens or creates a regular file, which only the owner may read and write. It never follows a symlink.
    package func open(_ name: String, flags: Int32) throws(DownloadError) -> Int32 {
        let file = name.withCString { openat(descriptor, $0, flags | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        guard file >= 0 else {
            let code = errno
            if flags & O_CREAT != 0, let refusal = refusal(of: name, code) { throw refusal }
            let action = flags & O_ACCMODE == O_RDONLY ? "read" : "write to"
            throw DownloadError(system: code, action, path(of: name), in: .destination)
        }
        return file
    }

    /// Syncs the folder, so that its names survive a power cut.
    package func synchronize() throws(DownloadError) {
        guard fsync(descriptor) == 0 else {
            throw DownloadError(system: errno, "sync the folder", path, in: .destination)
        }
    }
}

/// A method above has the name of the system call.
private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
