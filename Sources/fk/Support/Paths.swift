import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Turns what a person typed into absolute paths that are the same each time, because a task is recognised by them.
enum Paths {
    /// An absolute path without `.`, `..`, doubled or trailing slashes.
    ///
    /// Symbolic links in the part that exists are resolved, so that `..` means what the file system means by it; the
    /// rest, which nobody has created yet, is only tidied. A leading `~` belongs to the shell and is not touched.
    static func absolute(_ path: String, from folder: String) -> String {
        let whole = path.hasPrefix("/") ? path : "\(folder)/\(path)"
        var existing = whole.split(separator: "/").map(String.init)
        var missing: [String] = []
        while !existing.isEmpty {
            if let real = resolve("/" + existing.joined(separator: "/")) {
                return tidy(real, missing.reversed())
            }
            missing.append(existing.removeLast())
        }
        return tidy("/", missing.reversed())
    }

    private static func resolve(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private static func tidy(_ base: String, _ rest: [String]) -> String {
        var parts = base.split(separator: "/").map(String.init)
        for part in rest where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// The text as one word of a shell's command line.
    static func shellWord(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (byte >= 0x30 && byte <= 0x39) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7a)
                    || "-_./:,+@%".utf8.contains(byte)
            }
        return isPlain ? text : "'" + text.replacingOccurrences(of: "'", with: "'\\''") + "'"
    }

    /// Splits `folder/name` as given to `-o`; the folder is nil for a bare name.
    static func split(_ path: String) -> (folder: String?, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (nil, path) }
        let folder = path[..<slash]
        return (folder.isEmpty ? "/" : String(folder), String(path[path.index(after: slash)...]))
    }
}
