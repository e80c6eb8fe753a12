import FKMiddleware

/// The names that the files of an artifact get.
package enum RegistryLayout: String, Sendable, Hashable, CaseIterable {
    /// Titled files under their titles, as ORAS does; without any title every file, by its digest. Ollama's files by their meaning.
    case files
    /// An OCI image layout: `blobs/ALGORITHM/HEX`, `index.json` and `oci-layout`.
    case oci
    /// Ollama's folder of models: `blobs/sha256-HEX` and `manifests/REGISTRY/REPO/TAG`.
    case ollama
}

/// The manifest of an artifact, as the index of an OCI image layout names it.
package struct RegistryManifestEntry: Sendable, Hashable {
    let mediaType: String
    /// `sha256:HEX`
    let digest: String
    /// The length in bytes.
    let size: Int64
    /// The tag; nil for an artifact that is named by its digest alone.
    let tag: String?

    /// The content of the file `oci-layout`.
    package static let layoutFile = Array("{\"imageLayoutVersion\":\"1.0.0\"}\n".utf8)

    private static let tagKey = "org.opencontainers.image.ref.name"

    /// The digests that an index or a manifest names: manifests, layers and the configuration. None for other bytes.
    package static func references(in bytes: [UInt8]) -> [String] {
        var reader = JSONReader(bytes)
        guard bytes.first == UInt8(ascii: "{"), let object = try? reader.value().object else { return [] }
        let lists = ["manifests", "layers"].flatMap { object[$0]?.array ?? [] }
        return (lists + [object["config"]].compactMap(\.self)).compactMap { $0.object?["digest"]?.string }
    }

    /// The content of `index.json` with this manifest: the manifests of an old one stay as they are, unless they have the same tag, or the
    /// same digest and no tag.
    ///
    /// - Parameter old: the content of the present file; nil without one.
    /// - Returns: nil if the old content is no index.
    package func index(joining old: [UInt8]?) -> [UInt8]? {
        var entries: [[UInt8]] = []
        if let old {
            guard let kept = Self.entries(of: old) else { return nil }
            entries = kept.filter { $0.tag == nil ? $0.digest != digest : $0.tag != tag }.map(\.bytes)
        }
        var entry = JSONLine()
        entry.add("mediaType", mediaType)
        entry.add("digest", digest)
        entry.add("size", size)
        if let tag {
            var annotations = JSONLine()
            annotations.add(Self.tagKey, tag)
            entry.add("annotations", object: annotations)
        }
        entries.append(entry.closed)
        return Array(#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":["#.utf8)
            + Array(entries.joined(separator: [UInt8(ascii: ",")])) + Array("]}\n".utf8)
    }

    /// The manifests of an index, each as it is written.
    private static func entries(of bytes: [UInt8]) -> [(bytes: [UInt8], digest: String?, tag: String?)]? {
        var reader = JSONReader(bytes)
        var found: [(bytes: [UInt8], digest: String?, tag: String?)]?
        do throws(JSONReader.Fault) {
            try reader.expect(UInt8(ascii: "{"))
            repeat {
                guard try reader.memberName() == "manifests" else {
                    _ = try reader.scalar()
                    continue
                }
                found = []
                try reader.expect(UInt8(ascii: "["))
                if reader.skip(UInt8(ascii: "]")) { continue }
                repeat {
                    guard let object = try reader.value().object else { return nil }
                    let tag = object["annotations"]?.object?[tagKey]?.string
                    found?.append((Array(bytes[object.start..<reader.index]), object["digest"]?.string, tag))
                } while reader.skip(UInt8(ascii: ","))
                try reader.expect(UInt8(ascii: "]"))
            } while reader.skip(UInt8(ascii: ","))
            try reader.expect(UInt8(ascii: "}"))
            try reader.expectEnd()
        } catch { return nil }
        return found
    }
}
