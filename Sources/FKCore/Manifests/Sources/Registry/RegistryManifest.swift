import FKMiddleware

/// A document of a registry: the manifest of an artifact, or an index of manifests for several platforms. The media types are those
/// of OCI and of Docker's version 2.2.
enum RegistryManifest: Sendable {
    case image(Image)
    case index([Descriptor])

    /// The maximum length of a manifest in bytes: the 4 MiB that registries have to accept.
    static let maxBytes = 4 << 20
    /// The most entries of a manifest or an index.
    static let maxEntries = 10_000

    /// The media types to ask for, as the value of `Accept`.
    static let accepted = [
        "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    ].joined(separator: ", ")

    /// A file, or a manifest of an index.
    struct Descriptor: Sendable, Hashable {
        var mediaType: String
        /// `sha256:HEX` or `sha512:HEX`.
        var digest: String
        var checksum: Checksum
        var size: Int64
        var annotations: [String: String] = [:]
        /// For entries of an index; nil without one.
        var platform: Platform?

        /// The name of a file (`org.opencontainers.image.title`), which ORAS writes.
        var title: String? { annotations["org.opencontainers.image.title"] }
        /// True for a folder that ORAS has packed: the blob is a compressed tar.
        var isPackedFolder: Bool { annotations["io.deis.oras.content.unpack"] == "true" }
    }

    /// A manifest with its files.
    struct Image: Sendable {
        var mediaType: String
        var config: Descriptor?
        var layers: [Descriptor]
    }

    /// An operating system with a processor.
    struct Platform: Sendable, Hashable, CustomStringConvertible {
        var operatingSystem: String
        var processor: String
        /// Such as `v7` of `arm`; empty for none.
        var variant = ""

        /// `OS/ARCH` or `OS/ARCH/VARIANT`.
        var description: String { "\(operatingSystem)/\(processor)" + (variant.isEmpty ? "" : "/\(variant)") }

        /// True if a program for `other` is the one to take on this platform. Without a variant, `arm64` means `v8` and `arm` `v7`.
        func takes(_ other: Platform) -> Bool {
            operatingSystem == other.operatingSystem && processor == other.processor && fullVariant == other.fullVariant
        }

        private var fullVariant: String {
            if !variant.isEmpty { return variant }
            return processor == "arm64" ? "v8" : processor == "arm" ? "v7" : ""
        }
    }

    /// - Parameter mediaType: `Content-Type` of the answer; the document's own counts first.
    init(_ bytes: [UInt8], mediaType: String?) throws(AnswerFault) {
        var reader = JSONReader(bytes)
        let object: JSONReader.Object
        do throws(JSONReader.Fault) {
            guard let found = try reader.value().object else {
                throw JSONReader.Fault(reason: "an object is expected here", offset: 0)
            }
            try reader.expectEnd()
            object = found
        } catch {
            throw AnswerFault("the manifest cannot be read: \(error.reason), at byte \(error.offset)")
        }
        let type = object["mediaType"]?.string ?? mediaType.map { String($0.prefix { $0 != ";" }) } ?? ""
        guard object["schemaVersion"]?.integer == 2 else {
            throw AnswerFault(
                "the manifest is of an old form (schema \(object["schemaVersion"]?.text ?? "?")): only 2 is supported")
        }
        if let manifests = object["manifests"]?.array {
            guard object["layers"] == nil else { throw AnswerFault("the document is a manifest and an index at once") }
            guard manifests.count <= Self.maxEntries else { throw Self.tooMany }
            self = .index(try manifests.map { value throws(AnswerFault) in try Self.descriptor(value) })
            return
        }
        guard let layers = object["layers"]?.array else {
            throw AnswerFault("the document is neither a manifest with layers nor an index")
        }
        guard layers.count <= Self.maxEntries else { throw Self.tooMany }
        let config = try object["config"].map { value throws(AnswerFault) in try Self.descriptor(value) }
        self = .image(
            Image(
                mediaType: type, config: config,
                layers: try layers.map { value throws(AnswerFault) in try Self.descriptor(value) }))
    }

    private static var tooMany: AnswerFault { AnswerFault("the manifest has more than \(maxEntries) entries") }

    private static func descriptor(_ value: JSONReader.Value) throws(AnswerFault) -> Descriptor {
        guard let object = value.object, let digest = object["digest"]?.string,
            let checksum = RegistryReference.checksum(digest)
        else { throw AnswerFault("an entry of the manifest has no digest of SHA-256 or SHA-512") }
        guard let size = object["size"]?.integer, size >= 0 else {
            throw AnswerFault("the entry \(digest) of the manifest has no size")
        }
        var entry = Descriptor(
            mediaType: object["mediaType"]?.string ?? "", digest: digest, checksum: checksum, size: size)
        for member in object["annotations"]?.object?.members ?? [] {
            if let text = member.value.string { entry.annotations[member.name] = text }
        }
        if let platform = object["platform"]?.object, let operatingSystem = platform["os"]?.string,
            let processor = platform["architecture"]?.string
        {
            entry.platform = Platform(
                operatingSystem: operatingSystem, processor: processor, variant: platform["variant"]?.string ?? "")
        }
        return entry
    }
}

extension RegistryManifest {
    /// The entry of an index for a platform: the first one that matches. An index with a single artifact needs no platform.
    ///
    /// - Throws: `AnswerFault` with the platforms that there are.
    static func choose(_ entries: [Descriptor], for wanted: Platform) throws(AnswerFault) -> Descriptor {
        // Attestations have the platform unknown/unknown, or a type of their own.
        let real = entries.filter { $0.platform?.operatingSystem != "unknown" }
        if let found = real.first(where: { $0.platform.map(wanted.takes) ?? false }) { return found }
        if real.count == 1, real[0].platform == nil { return real[0] }
        var names: [String] = []
        for entry in real {
            let name = entry.platform.map(\.description) ?? "(none)"
            if !names.contains(name) { names.append(name) }
        }
        throw AnswerFault(
            "there is nothing for \(wanted): it has \(names.isEmpty ? "nothing" : names.prefix(30).joined(separator: ", ")). "
                + "Choose another platform")
    }
}

extension RegistryManifest.Platform {
    /// Parses `OS/ARCH` or `OS/ARCH/VARIANT`, with the usual other names of processors; nil for another text.
    init?(parsing text: String) {
        let parts = text.lowercased().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard (2...3).contains(parts.count), parts.allSatisfy({ !$0.isEmpty && $0.utf8.count <= 32 }) else {
            return nil
        }
        let names = ["x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64", "i386": "386", "i686": "386"]
        self.init(
            operatingSystem: parts[0] == "macos" ? "darwin" : parts[0], processor: names[parts[1]] ?? parts[1],
            variant: parts.count > 2 ? parts[2] : "")
    }

    /// The platform of this machine's images: that of Linux, as on other systems the images of Linux are run too.
    static var current: Self {
        #if arch(arm64)
            Self(operatingSystem: "linux", processor: "arm64")
        #else
            Self(operatingSystem: "linux", processor: "amd64")
        #endif
    }
}

extension RegistryManifestEntry {
    /// The entry of a manifest that is in a layout; nil if the bytes are none, or the origin is no artifact.
    ///
    /// - Parameter origin: the reference that the artifact came from, for its tag.
    package init?(_ bytes: [UInt8], digest: String, of origin: String) {
        var reader = JSONReader(bytes)
        guard bytes.first == UInt8(ascii: "{"), let object = try? reader.value().object,
            let reference = try? RegistryReference(parsing: origin)
        else { return nil }
        // Only OCI's manifests may leave it out.
        let mediaType = object["mediaType"]?.string ?? "application/vnd.oci.image.manifest.v1+json"
        self.init(mediaType: mediaType, digest: digest, size: Int64(bytes.count), tag: reference.tag)
    }
}
