import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The values of `--layout`.
enum SourceLayout: String, CaseIterable, Sendable {
    case plain
    case hub
    case oci
    case ollama
}

/// The two files of an OCI image layout that name its manifests.
enum OCILayout {
    /// The names of the blobs that the images of a layout need.
    static func used(in folder: String) -> Set<ExactText> {
        var used: Set<ExactText> = []
        var rest = references("\(folder)/index.json")
        while let digest = rest.popLast() {
            let name = path(digest)
            // A manifest is small, and a layer is no JSON.
            if used.insert(ExactText(name)).inserted { rest += references("\(folder)/\(name)") }
        }
        return used
    }

    private static func references(_ path: String) -> [String] {
        (try? [UInt8](ofFile: path, limit: 4 << 20, named: "manifest")).map(RegistryManifestEntry.references(in:)) ?? []
    }

    /// The path of a blob below the folder.
    private static func path(_ digest: String) -> String { "blobs/" + digest.replacing(":", with: "/") }

    /// Checks that the index of a folder can name one more manifest.
    ///
    /// - Throws: `CommandFailure` if the folder has an index that is none.
    static func check(_ manifest: RegistryManifestEntry, in folder: String) throws {
        _ = try index(with: manifest, in: folder)
    }

    /// Writes `oci-layout` and `index.json`, if the barrel's image is one of a layout and all of its blobs are there. Before that the index
    /// names what it named, so that a download that fails breaks no image. Other manifests of it stay, unless they have the same tag.
    ///
    /// - Parameter folder: the layout, as an absolute path; nil for the barrel's folder.
    /// - Returns: false if a blob is missing.
    /// - Throws: `CommandFailure` if a file cannot be written, or if the folder has an index that is none.
    @discardableResult
    static func finish(_ barrel: BarrelOptions, in folder: String? = nil) throws -> Bool {
        guard barrel.source?.layout == SourceLayout.oci.rawValue, let folder = folder ?? barrel.directory,
            let origin = barrel.origin, let digest = barrel.commit
        else { return true }
        guard
            let bytes = try? [UInt8](ofFile: "\(folder)/\(path(digest))", limit: 4 << 20, named: "manifest"),
            let manifest = RegistryManifestEntry(bytes, digest: digest, of: origin),
            RegistryManifestEntry.references(in: bytes).allSatisfy({ access("\(folder)/\(path($0))", F_OK) == 0 })
        else { return false }
        let index = try index(with: manifest, in: folder)
        for (name, bytes) in [("oci-layout", RegistryManifestEntry.layoutFile), ("index.json", index)] {
            let place = "\(folder)/\(name)"
            if let found = FileManager.default.contents(atPath: place), Array(found) == bytes { continue }
            do { try Data(bytes).write(to: URL(fileURLWithPath: place), options: .atomic) } catch {
                throw CommandFailure(
                    "--layout oci: \(place.visible) cannot be written: \(error.localizedDescription)",
                    status: ExitStatus.taskFailed)
            }
        }
        return true
    }

    /// The content of `index.json` with the manifest.
    private static func index(with manifest: RegistryManifestEntry, in folder: String) throws -> [UInt8] {
        let path = "\(folder)/index.json"
        let old: [UInt8]?
        do {
            old = access(path, F_OK) == 0 ? try [UInt8](ofFile: path, limit: 16 << 20, named: "index") : nil
        } catch {
            throw CommandFailure("--layout oci: \(error.message)", status: ExitStatus.taskFailed)
        }
        guard let index = manifest.index(joining: old) else {
            throw CommandFailure(
                "--layout oci: \(path.visible) is no index of an image layout. Choose another folder with -d.",
                status: ExitStatus.taskFailed)
        }
        return index
    }
}
