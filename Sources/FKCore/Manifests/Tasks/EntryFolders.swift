import FKMiddleware
import Foundation

/// Finds the folders for the files of a list. A file stays below the folder of its list, also through symbolic links.
package struct EntryFolders {
    /// The folders found so far, by base and subfolder. A list may have many files in one folder.
    private var known = ExactText.Map<String>()

    package init() {}

    /// The folder and the name of an entry's file.
    ///
    /// - Parameters:
    ///   - name: a path without a fault (`listedPathFault`).
    ///   - base: the absolute path of the list's folder.
    /// - Throws: `EntryFault` if a symbolic link leads out of `base`.
    package mutating func place(of name: String, under base: String) throws(EntryFault) -> (
        folder: String, name: String
    ) {
        let (subfolder, last) = FileNameRules.splitListed(name)
        guard let subfolder else { return (base, last) }
        let key = "\(base)\u{0}\(subfolder)"
        if let folder = known[key] { return (folder, last) }
        let root = Self.resolved(base)
        let folder = Self.resolved(root.path(of: subfolder))
        guard folder.utf8.starts(with: (root == "/" ? root : root + "/").utf8) else {
            throw EntryFault("'\(name)' leads out of the folder \(root) to \(folder)")
        }
        known[key] = folder
        return (folder, last)
    }

    /// The path with the symbolic links of its existing part resolved.
    package static func resolved(_ path: String) -> String {
        var existing = path
        var missing: [String] = []
        while existing.utf8.count > 1 {
            if let real = realpath(existing, nil) {
                defer { free(real) }
                return missing.reversed().reduce(String(cString: real)) { $0.path(of: $1) }
            }
            missing.append(existing.lastPathPart)
            existing = existing.folderPart
            if existing.isEmpty { break }
        }
        return path
    }
}
