import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// Confines downloads to the folders that were named at the start, also through symbolic links.
struct FolderGate: Sendable {
    /// The allowed folders as absolute paths. The first is the default.
    let folders: [String]

    /// - Parameter dir: an absolute path, or one below the default folder; nil and an empty text are the default.
    /// - Throws: `RPCError` for a folder that is not allowed.
    func folder(_ dir: String?) throws(RPCError) -> String {
        let base = folders.first ?? "/"
        guard let dir, !dir.isEmpty else { return base }
        guard !dir.utf8.contains(0) else { throw refusal(dir) }
        let path = Self.normalized(dir.hasPrefix("/") ? dir : "\(base)/\(dir)")
        let real = EntryFolders.resolved(path)
        for folder in folders where Self.isBelow(real, EntryFolders.resolved(folder)) {
            // The name that was given is kept if it needs no link to be below its folder.
            return Self.isBelow(path, folder) ? path : real
        }
        throw refusal(dir)
    }

    /// The folders of the system with certificates, which clients may name too.
    private static let authorities = [
        "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates",
        "/usr/local/share/ca-certificates",
    ]

    /// The path of a file of certificates that a client names, with its links resolved.
    ///
    /// - Throws: `RPCError` unless it is below an allowed folder, or below one of the system's folders for certificates.
    func file(_ path: String) throws(RPCError) -> String {
        guard !path.utf8.contains(0) else { throw refusal(path, "file") }
        let real = EntryFolders.resolved(Self.normalized(path))
        for folder in folders + Self.authorities where Self.isBelow(real, EntryFolders.resolved(folder)) { return real }
        throw refusal(path, "file")
    }

    /// The path of another program's partial file, with its links resolved.
    ///
    /// - Parameters:
    ///   - path: an absolute path, or one below `folder`.
    ///   - folder: the folder of the new task.
    /// - Throws: `RPCError` unless it is a file below an allowed folder.
    func partial(_ path: String, in folder: String) throws(RPCError) -> String {
        guard !path.utf8.contains(0) else { throw refusal(path, "partial file") }
        let given = path.hasSuffix(".aria2") ? String(path.dropLast(6)) : path
        let real = EntryFolders.resolved(Self.normalized(given.hasPrefix("/") ? given : "\(folder)/\(given)"))
        guard folders.contains(where: { Self.isBelow(real, EntryFolders.resolved($0)) }) else {
            throw refusal(path, "partial file")
        }
        var status = stat()
        guard lstat(real, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw RPCError("There is no partial file \(path.visible).")
        }
        return real
    }

    /// True if the path is a folder or below it.
    private static func isBelow(_ path: String, _ folder: String) -> Bool {
        let folder = normalized(folder)
        return path == folder || folder == "/" || path.utf8.starts(with: "\(folder)/".utf8)
    }

    /// The path without `.`, `..`, double and final slashes.
    static func normalized(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    private func refusal(_ path: String, _ kind: String = "folder") -> RPCError {
        let list = folders.map { $0.visible }.joined(separator: ", ")
        if kind == "partial file" {
            return RPCError(
                "The partial file \(path.visible) is not allowed: clients name files in \(list) and below. fk rpc -d names them."
            )
        }
        return RPCError(
            kind == "folder"
                ? "The folder \(path.visible) is not allowed: downloads go to \(list) and below. fk rpc -d names them."
                : "The file \(path.visible) is not allowed: clients name files in \(list) and below, and in the "
                    + "system's folders for certificates. fk rpc -d names them.")
    }
}
