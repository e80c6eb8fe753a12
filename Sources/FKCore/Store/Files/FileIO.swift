import FKMiddleware
import Foundation

/// The system calls of the store. Interrupted and short calls are continued, and `errno` becomes a `DownloadError`
/// that names the path. Safe to use from any thread.
package enum FileIO {
    /// Opens a regular file close-on-exec. A symbolic link, FIFO, socket, device or folder in its place is refused and
    /// never waited for.
    ///
    /// - Parameter isOwn: true, the default, refuses a file of another user, or one that others may write: it is one of the work
    ///   path, and another user may have put it there.
    /// - Throws: `.notFound` if it is missing, `.fileExists` for `O_EXCL` if it exists, `.workPathUnusable` for a file that is not our
    ///   own, `.noSpace`, else `.disk`.
    package static func open(
        _ path: String, _ flags: Int32, mode: mode_t = 0o600, isOwn: Bool = true
    ) throws -> Int32 {
        let descriptor: Int32
        do {
            descriptor = try openAny(path, flags, mode: mode)
        } catch let error as DownloadError {
            // The system refuses to open a socket, a FIFO without a reader, and a folder for writing.
            var status = stat()
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG, error.code != .fileExists else {
                throw error
            }
            throw notRegular(path)
        }
        if flags & O_EXCL != 0 { return descriptor }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let error = DownloadError(system: errno, "open", path)
            close(descriptor)
            throw error
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw notRegular(path)
        }
        if isOwn, let fault = ownerFault(status) {
            close(descriptor)
            throw DownloadError(
                .workPathUnusable,
                "\(path) \(fault), so it is not read: look at it, and remove it"
                    + (status.st_uid == geteuid() ? " or run: chmod go-w \(path.shellWord)" : ""))
        }
        return descriptor
    }

    /// Why a file or folder of the work path is not trusted, as the rest of a sentence; nil if it is.
    static func ownerFault(_ status: stat) -> String? {
        if status.st_uid != geteuid() { return "belongs to another user (uid \(status.st_uid))" }
        return status.st_mode & 0o022 == 0 ? nil : "can be written by other users"
    }

    private static func notRegular(_ path: String) -> DownloadError {
        DownloadError(.disk, "Cannot open \(path): it is not a regular file.")
    }

    /// Opens a folder close-on-exec. A symbolic link is refused.
    package static func openFolder(_ path: String) throws -> Int32 { try openAny(path, O_RDONLY | O_DIRECTORY) }

    /// Opens a file or folder, without waiting.
    private static func openAny(_ path: String, _ flags: Int32, mode: mode_t = 0) throws -> Int32 {
        while true {
            let descriptor = systemOpen(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode)
            if descriptor >= 0 { return descriptor }
            if errno != EINTR { throw DownloadError(system: errno, "open", path) }
        }
    }

    /// Closes a file after writing. An error that the system reports only now (a quota, a network file system) is
    /// thrown.
    package static func close(_ descriptor: Int32, written path: String) throws {
        if systemClose(descriptor) != 0, errno != EINTR { throw DownloadError(system: errno, "close", path) }
    }

    /// Closes a descriptor that was only read from.
    package static func close(_ descriptor: Int32) {
        _ = systemClose(descriptor)
    }

    /// Writes all bytes at `offset`; short writes are continued.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int, path: String
    ) throws {
        var done = 0
        while done < bytes.count {
            let count = pwrite(
                descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 {
                throw DownloadError(.disk, "Cannot write \(path): the system took no bytes.")
            } else if errno != EINTR {
                throw DownloadError(system: errno, "write", path)
            }
        }
    }

    /// Reads from `offset` until the buffer is full or the file ends.
    ///
    /// - Returns: the number of bytes read.
    package static func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, at offset: Int, path: String
    ) throws -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(offset + done))
            if count == 0 { break }
            if count > 0 {
                done += count
                // A short read of a regular file is its end. Reading again would only confirm that.
                if done < buffer.count, count < 4096 { break }
            } else if errno != EINTR {
                throw DownloadError(system: errno, "read", path)
            }
        }
        return done
    }

    /// Reads a whole regular file.
    ///
    /// - Parameter isOwn: same as in `open`.
    /// - Throws: `.tooLarge` for more than `limit` bytes, and the errors of `open`.
    package static func contents(of path: String, limit: Int, isOwn: Bool = true) throws -> [UInt8] {
        let descriptor = try open(path, O_RDONLY, isOwn: isOwn)
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
        guard status.st_size <= off_t(limit) else {
            throw DownloadError(.tooLarge, "\(path) has \(status.st_size) bytes; at most \(limit) are read.")
        }
        let size = Int(status.st_size)
        // For a capacity of 0 the standard library writes its shared empty array, which the thread sanitizer reports
        // as a race.
        if size == 0 { return [] }
        return try [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            count = try read(into: UnsafeMutableRawBufferPointer(buffer), from: descriptor, at: 0, path: path)
        }
    }

    /// Creates a new file with these bytes and mode 0600, whatever the umask is. A file that could not be written
    /// completely is removed.
    ///
    /// - Parameter setsMode: false if the umask is known to keep the mode (`UsualMask`). The default is true.
    /// - Throws: `.fileExists`, `.noSpace` or `.disk`.
    package static func create(_ path: String, _ bytes: UnsafeRawBufferPointer, setsMode: Bool = true) throws {
        try create(path, setsMode: setsMode) { try write(bytes, to: $0, at: 0, path: path) }
    }

    /// Creates a new file that `fill` writes, as `create` does.
    package static func create(_ path: String, setsMode: Bool = true, fill: (Int32) throws -> Void) throws {
        let descriptor = try open(path, O_WRONLY | O_CREAT | O_EXCL)
        do {
            if setsMode { _ = fchmod(descriptor, 0o600) }
            try fill(descriptor)
        } catch {
            close(descriptor)
            unlink(path)
            throw error
        }
        do {
            try close(descriptor, written: path)
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Replaces a file as a whole: it is written as `aside` and renamed, so that a reader sees either the old or the
    /// new file. A leftover `aside` of an interrupted call is discarded.
    package static func replace(
        _ path: String, aside: String, _ bytes: UnsafeRawBufferPointer, beforeRename: () throws -> Void = {}
    ) throws {
        try replace(path, aside: aside, by: { try create(aside, bytes) }, beforeRename: beforeRename)
    }

    /// Replaces a file as a whole by the file that `make` creates as `aside`.
    package static func replace(
        _ path: String, aside: String, by make: () throws -> Void, beforeRename: () throws -> Void = {}
    ) throws {
        unlink(aside)
        try make()
        do {
            try beforeRename()
            try rename(aside, to: path)
        } catch {
            unlink(aside)
            throw error
        }
    }

    /// Renames a file and replaces an existing one.
    package static func rename(_ path: String, to other: String) throws {
        guard systemRename(path, other) == 0 else { throw DownloadError(system: errno, "rename", path) }
    }

    /// Removes a file. Returns false if it was missing.
    ///
    /// - Throws: `.disk` if it exists and cannot be removed.
    @discardableResult
    package static func remove(_ path: String) throws -> Bool {
        if unlink(path) == 0 { return true }
        if errno == ENOENT { return false }
        throw DownloadError(system: errno, "remove", path)
    }

    /// Creates a folder with mode 0700, whatever the umask is. An existing one stays as it is.
    package static func makeFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 {
            _ = chmod(path, 0o700)
        } else if errno != EEXIST {
            throw DownloadError(system: errno, "create the folder", path)
        }
    }

    /// Creates a folder with the mode of the umask, and always with the rights of the owner, so that folders can be
    /// created in it. An existing one stays as it is.
    package static func makeOuterFolder(_ path: String) throws {
        if mkdir(path, 0o777) == 0 {
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & 0o700 != 0o700 else { return }
            _ = chmod(path, status.st_mode & 0o777 | 0o700)
        } else if errno != EEXIST {
            throw DownloadError(system: errno, "create the folder", path)
        }
    }

    /// Syncs a file or folder.
    ///
    /// An error is final: after EIO the system may discard the data, so a second sync proves nothing.
    package static func synchronize(_ path: String) throws {
        let descriptor = try openAny(path, O_RDONLY)
        defer { close(descriptor) }
        try synchronize(descriptor, path: path)
    }

    /// Syncs an open file or folder.
    package static func synchronize(_ descriptor: Int32, path: String) throws {
        #if canImport(Darwin)
            // On Apple systems, fsync does not flush the drive's own cache.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        while fsync(descriptor) != 0 {
            if errno != EINTR { throw DownloadError(system: errno, "synchronize", path) }
        }
    }

    /// Calls `body` with each name in a folder, except `.` and `..`, in the system's order. A missing folder, or a file
    /// in its place, has no names. `body` returns false to stop. The bytes are valid only during the call.
    ///
    /// - Throws: `.disk` if the folder cannot be read to its end, and the errors of `body`.
    package static func forEachName(
        in folder: String, _ body: (UnsafeBufferPointer<UInt8>) throws -> Bool
    ) throws {
        guard let directory = opendir(folder) else {
            if errno == ENOENT || errno == ENOTDIR { return }
            throw DownloadError(system: errno, "list the folder", folder)
        }
        defer { closedir(directory) }
        guard let nameOffset = MemoryLayout<dirent>.offset(of: \dirent.d_name) else { return }
        while true {
            // Only a changed `errno` tells an error from the end.
            errno = 0
            guard let entry = readdir(directory) else {
                if errno != 0 { throw DownloadError(system: errno, "list the folder", folder) }
                return
            }
            // The name is read in place: copying the fixed-size array could read beyond the end of the entry.
            let name = (UnsafeRawPointer(entry) + nameOffset).assumingMemoryBound(to: UInt8.self)
            let length = strlen(UnsafeRawPointer(name).assumingMemoryBound(to: CChar.self))
            if name[0] == 0x2e, length == 1 || (length == 2 && name[1] == 0x2e) { continue }
            if try !body(UnsafeBufferPointer(start: name, count: length)) { return }
        }
    }

    /// The names in a folder; none if it is missing.
    ///
    /// - Throws: `.disk` if the folder cannot be read to its end.
    package static func names(in folder: String) throws -> [String] {
        var names: [String] = []
        try forEachName(in: folder) { name in
            names.append(String(decoding: name, as: UTF8.self))
            return true
        }
        return names
    }
}

// Methods of the types above have the names of these system calls. `withCString` passes the text in place; passed
// directly, it would be copied.
private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    path.withCString { open($0, flags, mode) }
}
private func systemClose(_ descriptor: Int32) -> Int32 { close(descriptor) }
private func systemRename(_ path: String, _ other: String) -> Int32 { rename(path, other) }
