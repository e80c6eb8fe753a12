import FKMiddleware

extension FileNameRules {
    /// The problem with a file name in a list; nil if it can be used. A list may come from another person, so its names stay below the
    /// task's folder. They may contain subfolders.
    package static func fault(inListed name: String) -> String? {
        let parts = name.utf8.split(separator: slash, omittingEmptySubsequences: false).map { String(Substring($0)) }
        guard let last = parts.last, last != "", last != "." else { return "it does not name a file" }
        if name.utf8.first == slash { return "an absolute path is not allowed; dir= chooses the folder" }
        if name.utf8.contains(0) { return "it holds a zero byte" }
        if parts.contains("..") { return "'..' would leave the folder; dir= chooses another one" }
        if parts.contains(where: { $0.utf8.count > 255 }) { return "a name is longer than the 255 bytes it may have" }
        return fault(inAsked: last)
    }

    /// Splits a name in a list into its subfolder (nil if there is none) and the file name.
    ///
    /// - Parameter name: a name without a fault.
    package static func splitListed(_ name: String) -> (folder: String?, name: String) {
        guard name.utf8.contains(slash) else { return (nil, name.isExactly(".") ? "" : name) }
        let parts = name.utf8.split(separator: slash).map { String(Substring($0)) }.filter { $0 != "." }
        let folder = parts.dropLast().joined(separator: "/")
        return (folder.isEmpty ? nil : folder, parts.last ?? "")
    }

    private static let slash = UInt8(ascii: "/")
}
