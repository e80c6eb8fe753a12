import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A file as a task left it after its last write. A file that has another inode, length or time is not that one.
package struct FileIdentity: Codable, Sendable, Hashable {
    package var inode: UInt64
    /// In bytes.
    package var length: Int64
    /// When it was last written to, in nanoseconds since 1970.
    package var time: Int64

    package init(inode: UInt64, length: Int64, time: Int64) {
        self.inode = inode
        self.length = length
        self.time = time
    }

    init(_ status: stat) {
        self.init(
            inode: UInt64(status.st_ino), length: Int64(status.st_size), time: status.modificationTime)
    }

    /// Of whatever bears the name; symlinks are not followed. Nil for nothing.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Whether a file that has this time now was last written to at `recorded`: some file systems keep times no finer than
    /// 2 s, and round them once the file is out of memory.
    static func isSameTime(_ now: Int64, _ recorded: Int64) -> Bool {
        now == recorded || now % 10_000_000 == 0 && abs(now &- recorded) < 2_000_000_000
    }

    /// Whether this is what the other one was of, with nothing written to it since.
    func matches(_ recorded: FileIdentity) -> Bool {
        inode == recorded.inode && length == recorded.length && Self.isSameTime(time, recorded.time)
    }
}

/// A file that a task has moved aside: rejected bytes, or what a power cut has left of a file. It is removed once the
/// task is complete or trashed, unless somebody has written to it.
package struct SetAsideFile: Codable, Sendable, Hashable {
    /// Absolute.
    package var path: String
    package var written: FileIdentity

    package init(path: String, written: FileIdentity) {
        self.path = path
        self.written = written
    }

    /// True while it is the file that was moved there.
    var isThere: Bool { FileIdentity(path: path)?.matches(written) ?? false }

    /// Removes it, if it is still that file.
    func remove() { if isThere { unlink(path) } }
}

extension TaskRecord {
    /// Seconds by which the times of a file and of a record may differ: clocks of file systems are coarse.
    static let timeTolerance = 2.0

    /// The one rule for a finished file: a task deletes, moves or replaces only what it provably wrote.
    ///
    /// That is a regular file with inode, length and time of the task's last write. Records of earlier versions do not
    /// have them: there the length and a time between the task's begin and its end have to do, and no other task's mark.
    func owns(_ path: String) -> Bool {
        guard isForeign != true, let expected else { return false }
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
        let file = FileIdentity(status)
        guard file.length == expected else { return false }
        if let written { return file.matches(written) }
        return wasWrittenByTask(at: file.time) && FileOwner.mark(of: path).isOf(id, orNone: true)
    }

    /// Between the task's begin and its end, where that is known.
    private func wasWrittenByTask(at time: Int64) -> Bool {
        let time = Double(time) / 1e9
        let begin = (started ?? created).timeIntervalSince1970 - Self.timeTolerance
        let end = finished.map { $0.timeIntervalSince1970 + Self.timeTolerance } ?? .infinity
        return begin <= time && time <= end
    }

    /// A file of ours, whatever was written to it: all that is asked of one with a name that only this task gives.
    static func isOrdinary(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_uid == geteuid()
    }

    /// Rejected bytes that an earlier version has set aside, of which its record says nothing.
    func ownsRejected(_ path: String) -> Bool {
        guard Self.isOrdinary(path), let identity = FileIdentity(path: path) else { return false }
        return wasWrittenByTask(at: identity.time)
    }
}
