import Foundation
import TestSupport

/// A file system in memory with little room, for tests of a full and of a read-only disk. Gone with its last reference.
final class TinyDisk: Sendable {
    /// Needs root and leave to mount, which containers often lack.
    static let isPossible = (try? TinyDisk(kilobytes: 64)) != nil
    static let reason: String = "needs leave to mount a tmpfs"

    private let folder: TemporaryFolder
    var path: String { "\(folder.path)/disk" }

    init(kilobytes: Int) throws {
        folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try Program.run("mount", ["-t", "tmpfs", "-o", "size=\(kilobytes)k", "tmpfs", path])
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
        while rest > 0, (try? handle.write(contentsOf: Data(count: min(rest, 4_096)))) != nil { rest -= 4_096 }
    }

    /// Gives it back.
    func clear() throws { try FileManager.default.removeItem(atPath: "\(path)/filler") }

    func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }
}
