import CSystem
import FKMiddleware
import Foundation

/// The mark a task leaves on the file it makes, until that is on the disk itself: the task's id, as an extended attribute.
///
/// After a power cut a file may bear its final name while the record that says whose it is was lost, because a name goes
/// through the file system's journal and the bytes of a record do not. The mark goes through the journal as well, before
/// the name. File systems without extended attributes have no mark; the file then counts as a stranger's.
enum FileOwner {
    /// A text that calls take as it stands, where a `String` would be copied for each.
    private static let nameText: StaticString = "user.fkdownloader.task"
    private static var name: UnsafePointer<CChar> {
        UnsafeRawPointer(nameText.utf8Start).assumingMemoryBound(to: CChar.self)
    }
    /// Longer than any id.
    private static let room = 64

    static func mark(_ file: Int32, as id: TaskID) {
        var text = id.short
        text.withUTF8 { _ = fk_set_attribute(file, name, $0.baseAddress, $0.count) }
    }

    static func isMarked(_ file: Int32, as id: TaskID) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { buffer in
            let count = fk_get_attribute(file, name, buffer.baseAddress, buffer.count)
            return count > 0 && buffer.prefix(count).elementsEqual(id.short.utf8)
        }
    }

    static func isMarked(_ path: String, as id: TaskID) -> Bool {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        return isMarked(file, as: id)
    }

    static func clear(_ file: Int32) { _ = fk_remove_attribute(file, name) }
}
