import TestSupport

/// A file system with little room, for tests of a full and of a read-only disk. Gone with its last reference.
final class TinyDisk: Sendable {
    /// Needs root and leave to mount, which containers often lack.
    static let isPossible = (try? TinyDisk(kilobytes: 64)) != nil
    static let reason: String = "needs leave to mount a tmpfs"

    private let folder: TemporaryFolder
    var path: String { "\(folder.path)/disk" }

    convenience init(kilobytes: Int) throws {
        try self.init(try TemporaryFolder(), mount: ["-t", "tmpfs", "-o", "size=\(kilobytes)k", "tmpfs"])
    }

    /// A file system with free space and a limit on the number of files and folders.
    convenience init(inodes: Int) throws {
        try self.init(try TemporaryFolder(), mount: ["-t", "tmpfs", "-o", "size=10m,nr_inodes=\(inodes)", "tmpfs"])
    }

    /// Needs mkfs.btrfs, root, and a free loop device.
    static let isCopyOnWritePossible = (try? TinyDisk.copyOnWrite()) != nil
    static let copyOnWriteReason: String = "needs mkfs.btrfs and leave to mount a loop device"

    /// A btrfs of its smallest size: each write needs a new block there, one over a byte that was there before as well.
    static func copyOnWrite() throws -> TinyDisk {
        let folder = try TemporaryFolder()
        let image = "\(folder.path)/image"
        try Program.run("truncate", ["-s", "130M", image])
        // Data and metadata share their blocks. Apart, a full disk may keep 8 MiB of metadata only, and then a removed file gives
        // no room back: seen once in about 60 runs, for ten minutes.
        try Program.run("mkfs.btrfs", ["-q", "--mixed", "-d", "single", "-m", "single", image])
        // A removed file's room is free after the next commit, which would be up to 30 seconds later.
        return try TinyDisk(folder, mount: ["-o", "loop,nodiscard,commit=1", image])
    }

    private init(_ folder: TemporaryFolder, mount words: [String]) throws {
        self.folder = folder
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Program.run("mount", words + [path])
    }

    deinit { _ = try? Program.run("umount", ["-l", path]) }

    func makeReadOnly() throws { try Program.run("mount", ["-o", "remount,ro", path]) }

    /// Takes room away: so many bytes, or all there is.
    func fill(_ bytes: Int = .max) throws {
        let file = "\(path)/filler"
        try Data().write(to: URL(fileURLWithPath: file))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        defer { try? handle.close() }
        var rest = bytes
        var before: Int
        repeat {
            before = rest
            while rest > 0, (try? handle.write(contentsOf: Data(count: min(rest, 4_096)))) != nil { rest -= 4_096 }
            // What is only in memory so far may have room that is gone once it is on the disk, or more room than it needs there.
            sync()
        } while 0 < rest && rest < before
    }

    /// Gives it back. btrfs frees the space of a deleted file with its next commit.
    func clear() throws {
        try FileManager.default.removeItem(atPath: "\(path)/filler")
        #if os(Linux)
            sync()
        #endif
    }

    func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }
}
