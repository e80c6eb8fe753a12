import FKMiddleware
import Foundation

/// Identifies the work path that a program was added to. A copy of the work path, one that was restored or moved to another file
/// system, and one on a disk of another machine have another home, so that their programs do not start unasked.
package struct ProgramHome: Codable, Sendable, Hashable {
    private var user: UInt32
    private var inode: UInt64
    /// When the folder was made; nil if the file system does not tell.
    private var born: Int64?
    /// The machine; nil on a network file system, which several machines share, and if the machine has no name of its own.
    private var machine: String?

    /// Identifies a work path; nil if its folder cannot be looked at.
    package init?(_ workPath: WorkPath) {
        var status = stat()
        guard stat(workPath.root, &status) == 0 else { return nil }
        user = UInt32(geteuid())
        inode = UInt64(status.st_ino)
        born = FileBirth.time(workPath.root, in: AT_FDCWD)
        machine = NetworkFileSystem.name(of: workPath.root) == nil ? Self.thisMachine : nil
    }

    /// The identity of this installation (machine-id(5)); nil without one, as in many containers and on other systems than Linux.
    private static let thisMachine: String? = {
        guard let bytes = try? [UInt8](ofFile: "/etc/machine-id", limit: 4_096, named: "machine's name") else {
            return nil
        }
        let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
        return text.isEmpty ? nil : Digester.hex(Digester.bytes(of: "fk \(text)", .sha256))
    }()
}
