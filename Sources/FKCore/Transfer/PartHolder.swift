import FKMiddleware
import Foundation

/// What bears the name of a part file.
///
/// Part names can be foretold, and in a shared folder anybody can make a file under one. Who owns a file can write to it
/// after its digest was compared, and through a second link or a symlink our bytes would go over somebody's file. So only
/// a file that nobody else can have made, and that has no other name, takes a task's bytes.
enum PartHolder: Equatable {
    case nobody
    /// A regular file of our own with this one name.
    case us
    /// Anything else; the text completes "it ...".
    case another(String)
}

extension Folder {
    func holder(of name: String) -> PartHolder {
        status(of: name).map { holder($0) } ?? .nobody
    }

    /// - Parameter written: the file that the task has finished and taken back from its final name. That one may have a
    ///   second name, where a response middleware has put it.
    func holder(_ status: stat, written: FileIdentity? = nil) -> PartHolder {
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFLNK: return .another("is a symlink")
        default: return .another("is not a regular file")
        }
        if status.st_nlink > 1, written.map(FileIdentity(status).matches) != true {
            return .another("has \(status.st_nlink) names")
        }
        // Some file systems give every file the same owner, or the files of root another one.
        if status.st_uid != geteuid(), status.st_uid != ownerOfNewFiles() {
            return .another("belongs to another user")
        }
        return .us
    }

    /// Who owns a file that this process makes here; nil when it cannot make one.
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

    /// Hexadecimal, and not to be foretold.
    static func randomDigits() -> String { String(UInt32.random(in: 1 << 28 ... .max), radix: 16) }

    /// Deletes a part file that no attempt has open. What is not the task's own stays.
    func removePart(_ name: String) {
        if holder(of: name) == .us { remove(name) }
    }
}
