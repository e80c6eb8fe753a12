import FKManifests
import FKMiddleware
import Foundation

/// The values of `--layout`.
enum SourceLayout: String, CaseIterable, Sendable {
    case plain
    case hub
    case oci
    case ollama

    /// The layout of an artifact; nil for another one.
    var registry: RegistryLayout? {
        switch self {
        case .plain, .hub: nil
        case .oci: .oci
        case .ollama: .ollama
        }
    }
}

/// The two files of an OCI image layout that name its manifests.
enum OCILayout {
    /// The names of the blobs that the images of a layout need.
    static func used(in folder: String) -> Set<ExactText> {
        var used: Set<ExactText> = []
        var rest = references("\(folder)/index.json")
        while let digest = rest.popLast() {
            let name = "blobs/" + digest.replacing(":", with: "/")
            // A manifest is small, and a layer is no JSON.
            if used.insert(ExactText(name)).inserted { rest += references("\(folder)/\(name)") }
        }
        return used
    }

    private static func references(_ path: String) -> [String] {
        (try? SmallFile.read(path, limit: 4 << 20, named: "manifest")).map(RegistryManifestEntry.references(in:)) ?? []
    }

    /// Writes `oci-layout` and `index.json`. Other manifests of the index stay, unless they have the same tag.
    ///
    /// - Parameter folder: the layout, as an absolute path.
    /// - Throws: `CommandFailure` if a file cannot be written, or if the folder has an index that is none.
    static func finish(_ manifest: RegistryManifestEntry, in folder: String) throws {
        let path = "\(folder)/index.json"
        let old: [UInt8]?
        do {
            old = access(path, F_OK) == 0 ? try SmallFile.read(path, limit: 16 << 20, named: "index") : nil
        } catch {
            throw CommandFailure("--layout oci: \(error.message)", status: ExitStatus.taskFailed)
        }
        guard let index = manifest.index(joining: old) else {
            throw CommandFailure(
                "--layout oci: \(Escaping.visible(path)) is no index of an image layout. Choose another folder with -d.",
                status: ExitStatus.taskFailed)
        }
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            for (name, bytes) in [("oci-layout", RegistryManifestEntry.layoutFile), ("index.json", index)] {
                let place = "\(folder)/\(name)"
                if let found = FileManager.default.contents(atPath: place), Array(found) == bytes { continue }
                try Data(bytes).write(to: URL(fileURLWithPath: place), options: .atomic)
            }
        } catch {
            throw CommandFailure(
                "--layout oci: \(Escaping.visible(path)) cannot be written: \(error.localizedDescription)",
                status: ExitStatus.taskFailed)
        }
    }
}
