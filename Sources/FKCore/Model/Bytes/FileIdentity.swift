import Foundation

/// A file as a task left it after its last write. A file with another inode, length or time is a different one.
package struct FileIdentity: Codable, Sendable, Hashable {
    package var inode: UInt64
    /// The length in bytes.
    package var length: Int64
    /// The time of the last write, in nanoseconds since 1970.
    package var time: Int64
    /// When the file was created, in nanoseconds since 1970; nil if the file system does not tell. A new file often gets
    /// the inode of a removed one, but not its birth.
    package var born: Int64?

    /// Creates an identity; by default the birth is not known.
    package init(inode: UInt64, length: Int64, time: Int64, born: Int64? = nil) {
        self.inode = inode
        self.length = length
        self.time = time
        self.born = born
    }

    /// - Parameter born: nil, the default, if the birth is not known.
    package init(_ status: stat, born: Int64? = nil) {
        self.init(
            inode: UInt64(status.st_ino), length: Int64(status.st_size), time: status.modificationTime, born: born)
    }

    /// The identity of the entry with that name, without following symlinks; nil if there is none.
    package init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status, born: FileBirth.time(path, in: AT_FDCWD))
    }

    /// True if a file with the time `now` was last written to at `recorded`. Some file systems store times with a
    /// resolution of 2 s only, and round them once the file is out of memory.
    package static func isSameTime(_ now: Int64, _ recorded: Int64) -> Bool {
        now == recorded || now % 10_000_000 == 0 && abs(now &- recorded) < 2_000_000_000
    }

    /// True if this is the recorded file and it was not written to since.
    package func matches(_ recorded: FileIdentity) -> Bool {
        inode == recorded.inode && length == recorded.length && Self.isSameTime(time, recorded.time)
            && isOfOneBirth(with: recorded) != false
    }

    /// True if this is the recorded file, even if it was written to since; nil if only the mark can tell.
    package func isOne(with recorded: FileIdentity) -> Bool? {
        inode == recorded.inode ? isOfOneBirth(with: recorded) : false
    }

    /// True for the same inode, length and time.
    package func isSame(as other: FileIdentity) -> Bool {
        inode == other.inode && length == other.length && time == other.time
    }

    /// nil if a birth is not known.
    private func isOfOneBirth(with recorded: FileIdentity) -> Bool? {
        guard let born, let other = recorded.born else { return nil }
        return Self.isSameTime(born, other)
    }
}

/// A file that a task has set aside: rejected bytes, or the remains of a file after a power cut. It is removed when
/// the task completes or is trashed, unless it was written to.
package struct SetAsideFile: Codable, Sendable, Hashable {
    /// The absolute path.
    package var path: String
    /// The file as the task left it.
    package var written: FileIdentity

    package init(path: String, written: FileIdentity) {
        self.path = path
        self.written = written
    }
}
