import Foundation

/// Paths that the process was started with. The system's names are bytes, but a `String` contains only UTF-8.
/// Foundation replaces other bytes by U+FFFD, which makes it another path. Here such a path is nil.
extension ProcessInfo {
    /// The current folder; nil if it was removed, cannot be determined, or has a name that is not UTF-8.
    package static var currentFolder: String? {
        guard let path = getcwd(nil, 0) else { return nil }
        defer { free(path) }
        return String(validatingCString: path)
    }

    /// False if the variable is set to bytes that are not UTF-8.
    package static func isText(variable name: String) -> Bool {
        getenv(name).map { String(validatingCString: $0) != nil } ?? true
    }

    /// The absolute path without `.`, `..`, doubled and trailing slashes. Symbolic links are not resolved.
    ///
    /// - Returns: nil for a path that no file can have: one with a zero byte, or a relative one without a current
    ///   folder.
    package static func absolute(_ path: String) -> String? {
        if path.utf8.contains(0) { return nil }
        var whole = path
        if path.utf8.first != UInt8(ascii: "/") {
            guard let currentFolder else { return nil }
            whole = "\(currentFolder)/\(path)"
        }
        return isStandard(whole) ? whole : URL(fileURLWithPath: path).standardizedFileURL.path
    }

    /// True for a path that stays as it is. Foundation takes 0.3 ms for its first one at each start.
    private static func isStandard(_ path: String) -> Bool {
        // macOS has links there, which Foundation takes away.
        if path.hasPrefix("/private") { return false }
        return path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
    }

    /// A placeholder for an impossible path: a URL without a path.
    package static let unusable = URL(string: "file:///%FF") ?? URL(fileURLWithPath: "/dev/null")
}
