extension RegistryLayout {
    /// A file of the artifact with its name.
    struct File: Sendable, Hashable {
        var name: String
        var entry: RegistryManifest.Descriptor
        /// True for the manifest itself, which has an address of its own.
        var isManifest = false
        /// True for a manifest under the name of its tag: a later one of the tag is another version of the same file.
        var isTagged = false
    }

    /// The files of an artifact under their names.
    ///
    /// - Parameters:
    ///   - manifest: the manifest as an entry, with its digest and length.
    ///   - reference: the name of the artifact, for the folder of Ollama.
    func files(
        of image: RegistryManifest.Image, _ manifest: RegistryManifest.Descriptor, _ reference: RegistryReference
    ) -> [File] {
        let all = Self.unique((image.config.map { [$0] } ?? []) + image.layers)
        switch self {
        case .files where reference.kind == .ollama: return Self.ollamaFiles(image)
        case .files:
            let titled = image.layers.filter { $0.title != nil }
            guard titled.isEmpty else {
                return titled.map { File(name: ($0.title ?? "") + ($0.isPackedFolder ? ".tar.gz" : ""), entry: $0) }
            }
            return all.map { File(name: $0.checksum.hex, entry: $0) }
        case .oci:
            return all.map { File(name: Self.path($0), entry: $0) }
                + [File(name: Self.path(manifest), entry: manifest, isManifest: true)]
        case .ollama:
            return all.map { File(name: "blobs/" + $0.digest.replacing(":", with: "-"), entry: $0) } + [
                File(
                    name: "manifests/\(reference.registry)/\(reference.repository)/\(reference.tag ?? "latest")",
                    entry: manifest, isManifest: true, isTagged: true)
            ]
        }
    }

    private static func path(_ entry: RegistryManifest.Descriptor) -> String {
        "blobs/" + entry.digest.replacing(":", with: "/")
    }

    /// Each file once: layers are often equal.
    private static func unique(_ entries: [RegistryManifest.Descriptor]) -> [RegistryManifest.Descriptor] {
        var known: Set<String> = []
        return entries.filter { known.insert($0.digest).inserted }
    }

    /// Ollama's files by the end of their media types. A second one of a kind gets a number.
    private static func ollamaFiles(_ image: RegistryManifest.Image) -> [File] {
        let names = [
            "model": "model.gguf", "projector": "projector.gguf", "adapter": "adapter.gguf", "template": "template.txt",
            "system": "system.txt", "license": "license.txt", "params": "params.json", "messages": "messages.json",
        ]
        var counts: [String: Int] = [:]
        let entries = image.layers + (image.config.map { [$0] } ?? [])
        return entries.map { entry in
            let kind = entry.mediaType.split(separator: ".").last.map(String.init) ?? ""
            let isConfig = entry == image.config
            let name = isConfig ? "config.json" : names[kind] ?? entry.digest.replacing(":", with: "-")
            let count = (counts[name] ?? 0) + 1
            counts[name] = count
            guard count > 1 else { return File(name: name, entry: entry) }
            let dot = name.lastIndex(of: ".") ?? name.endIndex
            return File(name: "\(name[..<dot])-\(count)\(name[dot...])", entry: entry)
        }
    }
}
