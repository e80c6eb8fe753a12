import FKMiddleware

/// The rules for a file name that a list gives. A list may be somebody else's: what it says stays below the folder of the
/// task, in which it may name subfolders.
package enum ListedName {
    /// What is wrong with the name; nil for one that can be used.
    package static func objection(to name: String) -> String? {
        let parts = name.utf8.split(separator: slash, omittingEmptySubsequences: false).map { String(Substring($0)) }
        guard let last = parts.last, last != "", last != "." else { return "it does not name a file" }
        if name.utf8.first == slash { return "an absolute path is not allowed; dir= chooses the folder" }
        if name.utf8.contains(0) { return "it holds a zero byte" }
        if parts.contains("..") { return "'..' would leave the folder; dir= chooses another one" }
        if parts.contains(where: { $0.utf8.count > 255 }) { return "a name is longer than the 255 bytes it may have" }
        return AskedForName.objection(to: last)
    }

    /// The subfolder, nil for none, and the name of the file.
    ///
    /// - Parameter name: one without an objection.
    package static func split(_ name: String) -> (folder: String?, name: String) {
        let parts = name.utf8.split(separator: slash).map { String(Substring($0)) }.filter { $0 != "." }
        let folder = parts.dropLast().joined(separator: "/")
        return (folder.isEmpty ? nil : folder, parts.last ?? "")
    }

    private static let slash = UInt8(ascii: "/")
}
