import FKMiddleware
import Foundation

/// The owner of an entry with the name of a part file.
///
/// Part names are predictable, and in a shared folder anybody can create a file with one. The owner of a file can
/// write to it after its digest was compared, and through a second link or a symlink our bytes would overwrite
/// another file. A task therefore writes only to a file that no other user can have created and that has no other
/// name.
enum PartHolder: Equatable {
    case nobody
    /// A regular file of our own with only this name.
    case us
    /// Any other entry. The text completes "it ...".
    case another(String)
}

extension Folder {
    func holder(of name: String) -> PartHolder {
        status(of: name).map { holder($0) } ?? .nobody
    }

    /// The owner of an entry with this status.
    ///
    /// - Parameter written: the finished file that was taken back from its final name. That file may have a second
    ///   name, given by a response middleware.
    func holder(_ status: stat, written: FileIdentity? = nil) -> PartHolder {
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFLNK: return .another("is a symlink")
        default: return .another("is not a regular file")
        }
        if status.st_nlink > 1, written.map({ FileIdentity(status).matches($0) }) != true {
            return .another("has \(status.st_nlink) names")
        }
        // Some file systems give all files one owner, or give the files of root another owner.
        if status.st_uid != geteuid(), status.st_uid != ownerOfNewFiles() {
            return .another("belongs to another user")
        }
        return .us
    }

    /// The owner of files that this process creates in the folder; nil if it cannot create one.
    private func ownerOfNewFiles() -> uid_t? {
        let name = ".\(Self.randomDigits()).fkpart"
        guard let file = try? open(name, flags: O_WRONLY | O_CREAT | O_EXCL) else { return nil }
        defer {
            remove(name)
            close(file)
        }
        var status = stat()
        return fstat(file, &status) == 0 ? status.st_uid : nil
    }

    /// Random hexadecimal digits, which cannot be predicted.
    static func randomDigits() -> String { String(UInt32.random(in: 1 << 28 ... .max), radix: 16) }
}
