import CSystem
import FKMiddleware
import Foundation

/// The mark that a task puts on its file until the file is synced: an extended attribute with the task, the work
/// path, and the file as it was left.
///
/// After a power cut, a file may have its final name while the record that names its owner is lost: a name is written
/// to the file system's journal, the bytes of a record are not. The mark is written to the journal as well, before
/// the name. File systems without extended attributes have no marks; the file then counts as another owner's.
package struct FileOwner: Sendable {
    /// The mark of a file.
    package enum Mark: Hashable {
        /// The file system has no such attributes, or they cannot be read.
        case unknown
        case none
        /// `<first 12 digits of the id> <work path> <inode> <time>`; earlier versions wrote only the digits. A part file has
        /// `<first 12 digits of the id> <work path> <inode of the work path> part`.
        case text(String)

        /// True for the task's own mark, even if the file has changed since.
        package func isOf(_ id: TaskID, orNone: Bool) -> Bool {
            guard case .text(let text) = self else { return orNone }
            return text.utf8.prefix { $0 != UInt8(ascii: " ") }.elementsEqual(id.short.utf8)
        }

        /// True for the mark of another task, or of another work path.
        ///
        /// - Parameter owner: of the work path; nil ignores the work paths of marks.
        package func isOfAnother(_ id: TaskID, _ owner: FileOwner?) -> Bool {
            guard isOf(id, orNone: true) else { return true }
            guard case .text(let text) = self, let own = owner?.workPath else { return false }
            let parts = text.split(separator: " ")
            return parts.count == 4 && parts[1] != own
        }
    }

    /// Static text, which system calls take without the copy that a `String` needs.
    private static let nameText: StaticString = "user.fkdownloader.task"
    private static let workPathText: StaticString = "user.fkdownloader.workpath"
    /// Longer than any mark.
    private static let room = 128

    /// Identifies the work path among others with the same tasks. nil if the work path cannot have attributes; then
    /// no file is marked.
    package let workPath: String?

    /// The inode of the work path, by which a copy of it is another one.
    private let inode: UInt64
    /// The work path in the names of its part files where they cannot have a mark: eight hexadecimal digits.
    package let digits: String

    package init(workPath: String?, inode: UInt64 = 0) { self.init(workPath, inode, root: "") }

    private init(_ workPath: String?, _ inode: UInt64, root: String) {
        self.workPath = workPath
        self.inode = inode
        let text = Array("\(workPath ?? root) \(inode)".utf8)
        let hex = String(text.withUnsafeBytes { CRC32C.checksum($0) }, radix: 16)
        digits = String(repeating: "0", count: 8 - hex.utf8.count) + hex
    }

    /// Reads the work path's own attribute, or sets a new one. It is set once and moves with the folder.
    ///
    /// - Parameter folder: the work path. The caller must own its engine.
    package init(of folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            self.init(nil, 0, root: folder)
            return
        }
        defer { close(descriptor) }
        var status = stat()
        let inode = fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : 0
        if case .text(let text) = Self.read(descriptor, Self.workPathText) {
            self.init(text, inode, root: folder)
            return
        }
        let new = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
        self.init(Self.write(new, descriptor, Self.workPathText) ? new : nil, inode, root: folder)
    }

    /// Marks a file. Call it after the last write.
    package func mark(_ file: Int32, _ identity: FileIdentity, as id: TaskID) {
        guard let workPath else { return }
        // Joined as bytes: texts take four times as long, and each finished file has a mark.
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.room) { text in
            var count = 0
            for part in [id.short, workPath, String(identity.inode), String(identity.time)] {
                guard count + part.utf8.count < text.count else { return }
                count = text[count...].update(fromContentsOf: part.utf8)
                text[count] = UInt8(ascii: " ")
                count += 1
            }
            _ = fk_set_attribute(file, Self.pointer(Self.nameText), text.baseAddress, count - 1)
        }
    }

    /// Marks an open part file. Two work paths with one URL and one folder have one name for it.
    ///
    /// - Returns: false if the file cannot have a mark.
    package func markPart(_ file: Int32, as id: TaskID) -> Bool {
        guard let workPath else { return false }
        return Self.write("\(id.short) \(workPath) \(inode) part", file, Self.nameText)
    }

    /// The owner of a part file, by its mark, or by the work path in its name.
    package enum PartOwner: Hashable, CaseIterable, Sendable {
        /// Neither tells.
        case unknown
        case us
        /// This work path before it was moved or copied, or the copy.
        case relative
        case another
    }

    package func owner(ofPart file: Int32, _ name: String, _ id: TaskID) -> PartOwner {
        owner(ofPart: Self.read(file, Self.nameText), name, id)
    }

    func owner(ofPart mark: Mark, _ name: String, _ id: TaskID) -> PartOwner {
        guard case .text(let text) = mark else {
            return FileNameRules.workPath(inPartName: name).map { $0 == digits ? .us : .another } ?? .unknown
        }
        let parts = text.split(separator: " ")
        guard mark.isOf(id, orNone: false) else { return .another }
        // Earlier versions wrote only the digits.
        guard parts.count == 4 else { return .unknown }
        guard let workPath, parts[1] == workPath else { return .another }
        return parts[3] != "part" || parts[2] == String(inode) ? .us : .relative
    }

    /// True if a task of this work path wrote the file and it was not written to since. A power cut may have
    /// shortened it.
    package func proves(_ file: Int32, _ id: TaskID) -> Bool { provenTask(file) == id.short }

    /// `TaskID.short` of the task of this work path that wrote the file, if it was not written to since; nil
    /// otherwise.
    package func provenTask(_ file: Int32) -> String? {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return provenTask(Self.read(file, Self.nameText), FileIdentity(status))
    }

    private func provenTask(_ mark: Mark, _ file: FileIdentity) -> String? {
        guard let workPath, case .text(let text) = mark else { return nil }
        let parts = text.split(separator: " ")
        guard parts.count == 4, parts[1] == workPath, let time = Int64(parts[3]), parts[2] == String(file.inode),
            FileIdentity.isSameTime(file.time, time)
        else { return nil }
        return String(parts[0])
    }

    func proves(_ mark: Mark, _ file: FileIdentity, _ id: TaskID) -> Bool { provenTask(mark, file) == id.short }

    static func mark(of path: String) -> Mark {
        read { fk_get_path_attribute(path, pointer(nameText), $0.baseAddress, $0.count) }
    }

    /// Removes the mark of a file.
    package static func clear(_ path: String) {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        clear(file)
    }

    /// The same for an open file.
    package static func clear(_ file: Int32) { _ = fk_remove_attribute(file, pointer(nameText)) }

    private static func pointer(_ name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    private static func write(_ text: String, _ file: Int32, _ name: StaticString) -> Bool {
        var text = text
        return text.withUTF8 { fk_set_attribute(file, pointer(name), $0.baseAddress, $0.count) } == 0
    }

    private static func read(_ file: Int32, _ name: StaticString) -> Mark {
        read { fk_get_attribute(file, pointer(name), $0.baseAddress, $0.count) }
    }

    private static func read(_ get: (UnsafeMutableRawBufferPointer) -> Int) -> Mark {
        withUnsafeTemporaryAllocation(byteCount: room, alignment: 1) { buffer in
            let count = get(buffer)
            guard count >= 0 else { return errno == fk_no_attribute ? .none : .unknown }
            return .text(String(decoding: buffer.prefix(count), as: UTF8.self))
        }
    }
}
