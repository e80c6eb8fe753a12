import FKMiddleware
import Foundation

/// Turns typed paths into unique absolute paths, because a task is identified by them.
enum Paths {
    /// The absolute path without `.`, `..`, doubled or trailing slashes.
    ///
    /// Symbolic links in the existing part are resolved, so that `..` has the same meaning as for the file system.
    /// The rest is only normalised. A leading `~` is left to the shell.
    ///
    /// - Parameter folder: the absolute folder of relative paths; empty if there is none.
    /// - Throws: `UsageError` if the path leads to a folder whose name is not UTF-8, or is relative to one.
    static func absolute(_ path: String, from folder: String) throws -> String {
        let isAbsolute = path.utf8.first == UInt8(ascii: "/")
        guard isAbsolute || !folder.isEmpty else { throw noCurrentFolder(path) }
        let whole = isAbsolute ? path : "\(folder)/\(path)"
        var existing = parts(of: whole)
        var missing: [String] = []
        while !existing.isEmpty {
            if let real = try resolve("/" + existing.joined(separator: "/")) {
                return tidy(real, missing.reversed())
            }
            missing.append(existing.removeLast())
        }
        return tidy("/", missing.reversed())
    }

    /// The path with the home folder in place of a leading `~`, as a shell has it for a path that is typed.
    ///
    /// - Parameter home: nil or a relative path leaves the path as it is.
    static func expanded(_ path: String, _ home: String?) -> String {
        guard let home, home.utf8.first == UInt8(ascii: "/"), path.utf8.starts(with: "~/".utf8) else { return path }
        return home + String(Substring(path.utf8.dropFirst()))
    }

    /// The components of a path. It works on bytes: to the system, a slash with a combining mark is still a slash.
    private static func parts(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    }

    private static func resolve(_ path: String) throws -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        if let text = String(validatingCString: real) { return text }
        throw UsageError("\(path.visible) leads to a place whose name is not UTF-8: fk cannot use it.")
    }

    private static func noCurrentFolder(_ path: String) -> UsageError {
        var status = stat()
        let isGone = stat(".", &status) != 0 || status.st_nlink == 0
        return UsageError(
            "The current folder \(isGone ? "does not exist any more" : "has a name that is not UTF-8"): give an absolute "
                + "path in the place of '\(path.visible)', or go to another folder.")
    }

    /// The path of a folder that a list's or source's files go to without `-d`.
    ///
    /// - Throws: `CommandFailure` if a file has that name.
    static func notFile(_ folder: String) throws -> String {
        guard folder.existsOnDisk, !isFolder(folder) else { return folder }
        throw CommandFailure(
            "The files would go to the folder \(folder.visible), and a file has that name. Give another folder with -d DIR.",
            status: ExitStatus.usage)
    }

    /// True for the folder itself and all paths below it. Both must be absolute, as `absolute` returns them.
    static func isBelow(_ path: String, _ folder: String) -> Bool {
        path.isExactly(folder) || path.utf8.starts(with: (folder == "/" ? "/" : folder + "/").utf8)
    }

    private static func tidy(_ base: String, _ rest: [String]) -> String {
        var parts = parts(of: base)
        for part in rest where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Splits `folder/name` of `-o`. The folder is nil for a name alone.
    static func split(_ path: String) -> (folder: String?, name: String) {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (nil, path) }
        let folder = path[..<slash]
        return (folder.isEmpty ? "/" : String(folder), String(path[path.utf8.index(after: slash)...]))
    }
}
