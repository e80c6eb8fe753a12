import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A file as a task left it after its last write. A file with another inode, length or time is a different one.
package struct FileIdentity: Codable, Sendable, Hashable {
    /// The inode number.
    package var inode: UInt64
    /// The length in bytes.
    package var length: Int64
    /// The time of the last write, in nanoseconds since 1970.
    package var time: Int64

    /// Creates an identity.
    package init(inode: UInt64, length: Int64, time: Int64) {
        self.inode = inode
        self.length = length
        self.time = time
    }

    init(_ status: stat) {
        self.init(
            inode: UInt64(status.st_ino), length: Int64(status.st_size), time: status.modificationTime)
    }

    /// The identity of the entry with that name, without following symlinks; nil if there is none.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// True if a file with the time `now` was last written to at `recorded`. Some file systems store times with a
    /// resolution of 2 s only, and round them once the file is out of memory.
    static func isSameTime(_ now: Int64, _ recorded: Int64) -> Bool {
        now == recorded || now % 10_000_000 == 0 && abs(now &- recorded) < 2_000_000_000
    }

    /// True if this is the recorded file and it was not written to since.
    func matches(_ recorded: FileIdentity) -> Bool {
        inode == recorded.inode && length == recorded.length && Self.isSameTime(time, recorded.time)
    }
}

/// A file that a task has set aside: rejected bytes, or the remains of a file after a power cut. It is removed when
/// the task completes or is trashed, unless it was written to.
package struct SetAsideFile: Codable, Sendable, Hashable {
    /// The absolute path.
    package var path: String
    /// The file as the task left it.
    package var written: FileIdentity

    /// Creates the description of a file.
    package init(path: String, written: FileIdentity) {
        self.path = path
        self.written = written
    }

    /// True while the same file is there.
    var isThere: Bool { FileIdentity(path: path)?.matches(written) ?? false }

    /// Removes the file if it is still the same.
    func remove() { if isThere { unlink(path) } }
}

extension TaskRecord {
    /// The seconds by which the times of a file and of a record may differ, because clocks of file systems are
    /// coarse.
    static let timeTolerance = 2.0

    /// The only rule for a finished file: a task deletes, moves or replaces only a file that it provably wrote.
    ///
    /// Such a file is a regular file with the inode, length and time of the task's last write. Records of earlier
    /// versions lack these. For them, the length must match, the time must be between the task's start and end, and
    /// there must be no other task's mark.
    func owns(_ path: String) -> Bool {
        guard isForeign != true, let expected else { return false }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        let file = FileIdentity(status)
        guard file.length == expected else { return false }
        if let written { return file.matches(written) }
        return wasWrittenByTask(at: file.time) && FileOwner.mark(of: path).isOf(id, orNone: true)
    }

    /// True between the task's start and end, as far as they are known.
    private func wasWrittenByTask(at time: Int64) -> Bool {
        let time = Double(time) / 1e9
        let begin = (started ?? created).timeIntervalSince1970 - Self.timeTolerance
        let end = finished.map { $0.timeIntervalSince1970 + Self.timeTolerance } ?? .infinity
        return begin <= time && time <= end
    }

    /// True for a regular file of our own, whatever was written to it. That is sufficient for a name that only this
    /// task uses.
    static func isOrdinary(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid()
    }

    /// True for rejected bytes that an earlier version has set aside without recording them.
    func ownsRejected(_ path: String) -> Bool {
        guard Self.isOrdinary(path), let identity = FileIdentity(path: path) else { return false }
        return wasWrittenByTask(at: identity.time)
    }
}
