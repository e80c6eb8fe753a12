import CSystem
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The mark a task leaves on the file it makes, until that is on the disk itself: the beginning of the task's id, as an
/// extended attribute.
///
/// After a power cut a file may bear its final name while the record that says whose it is was lost, because a name goes
/// through the file system's journal and the bytes of a record do not. The mark goes through the journal as well, before
/// the name. File systems without extended attributes have no mark; the file then counts as a stranger's.
package enum FileOwner {
    private static let name = "user.fkdownloader.task"
    /// Longer than any mark.
    private static let room = 64

    /// - Parameter id: the task's id, 64 hexadecimal digits; of them 12 are written.
    package static func mark(_ file: Int32, as id: String) {
        var text = String(id.prefix(12))
        text.withUTF8 { _ = fk_set_attribute(file, name, $0.baseAddress, $0.count) }
    }

    package static func isMarked(_ file: Int32, as id: String) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { buffer in
            let count = fk_get_attribute(file, name, buffer.baseAddress, buffer.count)
            return count > 0 && buffer.prefix(count).elementsEqual(id.prefix(12).utf8)
        }
    }

    package static func isMarked(_ path: String, as id: String) -> Bool {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        return isMarked(file, as: id)
    }

    package static func clear(_ file: Int32) { _ = fk_remove_attribute(file, name) }
}
