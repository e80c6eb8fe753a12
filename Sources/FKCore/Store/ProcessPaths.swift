import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Paths the process was started with. The system's names are bytes, and a `String` holds UTF-8 alone: Foundation replaces
/// other bytes by U+FFFD, and the path is then another one. Here such a path is nil instead.
package enum ProcessPaths {
    /// Nil when the current folder was removed, cannot be found out, or has a name that is not UTF-8.
    package static var currentFolder: String? {
        guard let path = getcwd(nil, 0) else { return nil }
        defer { free(path) }
        return String(validatingCString: path)
    }

    /// False for a variable that is set to bytes that are not UTF-8.
    package static func isText(variable name: String) -> Bool {
        getenv(name).map { String(validatingCString: $0) != nil } ?? true
    }

    /// The path from the root, without `.`, `..`, doubled and trailing slashes. Symbolic links are not looked at.
    ///
    /// - Returns: nil for a path that no file can have: one with a zero byte, or a relative one without a current folder.
    package static func absolute(_ path: String) -> String? {
        if path.utf8.contains(0) { return nil }
        if path.utf8.first != UInt8(ascii: "/"), currentFolder == nil { return nil }
        return URL(fileURLWithPath: path).standardizedFileURL.path
    }

    /// Stands for a path that cannot be: a URL without one.
    package static let unusable = URL(string: "file:///%FF") ?? URL(fileURLWithPath: "/dev/null")
}
