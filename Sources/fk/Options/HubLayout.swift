import FKManifests
import FKMiddleware
import Foundation

/// The layout of the cache of the hub's own client, which finds the files there offline:
///
/// ```text
/// models--OWNER--REPO/blobs/DIGEST                the bytes: SHA-256 in LFS, else git's id
/// models--OWNER--REPO/snapshots/COMMIT/PATH       a link to the blob
/// models--OWNER--REPO/refs/REVISION               the commit
/// ```
///
/// A link leads nowhere until its blob is complete; the client does not count it then. Files of others are not replaced.
enum HubLayout {
    /// The values of `--layout`.
    enum Choice: String, CaseIterable, Sendable {
        case plain
        case hub
    }

    /// Makes the links, and names the files of a list after their blobs.
    ///
    /// - Parameter folder: the cache, as an absolute path.
    /// - Throws: `CommandFailure` if a link or the reference cannot be made.
    static func apply(to manifest: inout Manifest, of reference: HubReference, in folder: String) throws {
        let commit = manifest.facts.commit ?? reference.revision
        let names = reference.repository.split(separator: "/")
        let root = ((names.count == 2 ? ["models"] : []) + names).joined(separator: "--")
        var blobs = ExactMap<Bool>()
        var entries: [Manifest.Entry] = []
        for var entry in manifest.entries {
            guard let name = entry.name, let blob = entry.digests.first?.hex else { continue }
            let up = String(repeating: "../", count: name.utf8.split(separator: UInt8(ascii: "/")).count + 1)
            try link("\(up)blobs/\(blob)", at: "\(folder)/\(root)/snapshots/\(commit)/\(name)")
            guard blobs[blob] == nil else { continue }
            blobs[blob] = true
            entry.name = "\(root)/blobs/\(blob)"
            entries.append(entry)
        }
        manifest.entries = entries
        if reference.revision != commit { try refer(to: commit, at: "\(folder)/\(root)/refs/\(reference.revision)") }
    }

    private static func link(_ target: String, at path: String) throws {
        let files = FileManager.default
        if (try? files.destinationOfSymbolicLink(atPath: path)) == target { return }
        try making(path) { try files.createSymbolicLink(atPath: path, withDestinationPath: target) }
    }

    private static func refer(to commit: String, at path: String) throws {
        if let old = FileManager.default.contents(atPath: path) {
            guard String(decoding: old, as: UTF8.self) == commit else {
                throw CommandFailure(
                    "--layout hub: \(Escaping.visible(path)) names another commit. Remove it, so that it can name \(commit).",
                    status: ExitStatus.taskFailed)
            }
            return
        }
        try making(path) { try Data(commit.utf8).write(to: URL(fileURLWithPath: path), options: .withoutOverwriting) }
    }

    private static func making(_ path: String, _ make: () throws -> Void) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: Paths.split(path).folder ?? "/", withIntermediateDirectories: true)
            try make()
        } catch {
            throw CommandFailure(
                "--layout hub: \(Escaping.visible(path)) cannot be made: \(error.localizedDescription)",
                status: ExitStatus.taskFailed)
        }
    }
}
