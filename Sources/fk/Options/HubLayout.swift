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
struct HubLayout {
    private let reference: HubReference
    /// The cache, as an absolute path.
    private let folder: String
    /// The folder of the repository in the cache.
    private let root: String
    private var blobs = ExactText.Map<Bool>()
    /// The links to make once the whole list is known.
    private var links: [(name: String, blob: String)] = []

    init(of reference: HubReference, in folder: String) {
        self.reference = reference
        self.folder = folder
        let names = reference.repository.split(separator: "/")
        root = ((names.count == 2 ? ["models"] : []) + names).joined(separator: "--")
    }

    /// Names the next files of a list after their blobs. Files with the same bytes are one blob.
    mutating func place(_ files: [Manifest.FileFacts]) -> [Manifest.FileFacts] {
        files.compactMap { file in
            guard let name = file.name, let blob = file.digests.first?.hex else { return nil }
            links.append((name, blob))
            guard blobs[blob] == nil else { return nil }
            blobs[blob] = true
            var file = file
            file.name = "\(root)/blobs/\(blob)"
            return file
        }
    }

    /// Makes the links and the reference.
    ///
    /// - Parameter commit: the commit of the list; nil for the revision itself.
    /// - Throws: `CommandFailure` if a link or the reference cannot be made.
    func finish(commit: String?) throws {
        let commit = commit ?? reference.revision
        for (name, blob) in links {
            let up = String(repeating: "../", count: name.utf8.split(separator: UInt8(ascii: "/")).count + 1)
            try Self.link("\(up)blobs/\(blob)", at: "\(folder)/\(root)/snapshots/\(commit)/\(name)")
        }
        if reference.revision != commit {
            try Self.refer(to: commit, at: "\(folder)/\(root)/refs/\(reference.revision)")
        }
    }

    private static func link(_ target: String, at path: String) throws {
        let files = FileManager.default
        if (try? files.destinationOfSymbolicLink(atPath: path)) == target { return }
        try making(path) { try files.createSymbolicLink(atPath: path, withDestinationPath: target) }
    }

    private static func refer(to commit: String, at path: String) throws {
        var options: Data.WritingOptions = .withoutOverwriting
        if let old = FileManager.default.contents(atPath: path) {
            if String(decoding: old, as: UTF8.self) == commit { return }
            // The hub's own client moves a reference too.
            guard old.count == 40, old.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
                throw CommandFailure(
                    "--layout hub: \(path.visible) names no commit. Remove it, so that it can name \(commit).",
                    status: ExitStatus.taskFailed)
            }
            options = .atomic
        }
        try making(path) { try Data(commit.utf8).write(to: URL(fileURLWithPath: path), options: options) }
    }

    private static func making(_ path: String, _ make: () throws -> Void) throws {
        do {
            try FileManager.default.createDirectory(
                atPath: Paths.split(path).folder ?? "/", withIntermediateDirectories: true)
            try make()
        } catch {
            throw CommandFailure(
                "--layout hub: \(path.visible) cannot be made: \(error.localizedDescription)",
                status: ExitStatus.taskFailed)
        }
    }
}
