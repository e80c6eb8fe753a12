import FKMiddleware

/// An artifact of a registry: `oci:REGISTRY/REPO[:TAG][@DIGEST]`, or a model of Ollama: `ollama:NAME[:TAG]`.
struct RegistryReference: Sendable, Hashable, CustomStringConvertible {
    /// The scheme.
    enum Kind: String, Sendable, Hashable {
        case oci
        case ollama
    }

    let kind: Kind
    /// The registry as people write it, with its port.
    let registry: String
    /// The path of the repository, such as `library/debian`.
    let repository: String
    /// The tag; nil if only a digest is named.
    let tag: String?
    /// The digest that pins the manifest, as `sha256:HEX`; nil for none.
    let digest: String?

    static let ollama = "registry.ollama.ai"

    static func isOne(_ text: String) -> Bool { text.hasPrefix("oci:") || text.hasPrefix("ollama:") }

    /// Parses a reference. The tag is `latest` if neither a tag nor a digest is named.
    ///
    /// - Throws: `.invalidArgument` for another text.
    init(parsing text: String) throws(DownloadError) {
        let kind: Kind = text.hasPrefix("ollama:") ? .ollama : .oci
        func bad() -> DownloadError {
            DownloadError(
                .invalidArgument,
                "'\(text.prefix(200).visible)' is no artifact of a registry: write "
                    + (kind == .ollama
                        ? "ollama:NAME or ollama:NAME:TAG."
                        : "oci:REGISTRY/REPO:TAG or oci:REGISTRY/REPO@sha256:DIGEST."))
        }
        guard Self.isOne(text) else { throw bad() }
        var rest = text.dropFirst(kind.rawValue.count + 1)
        if rest.hasPrefix("//") { rest = rest.dropFirst(2) }
        var digest: String?
        if let at = rest.firstIndex(of: "@") {
            let text = String(rest[rest.index(after: at)...])
            guard Self.checksum(text) != nil else { throw bad() }
            digest = text
            rest = rest[..<at]
        }
        var tag: String?
        let last = rest.lastIndex(of: "/") ?? rest.startIndex
        if let colon = rest[last...].firstIndex(of: ":") {
            let text = String(rest[rest.index(after: colon)...])
            guard Self.isTag(text) else { throw bad() }
            tag = text
            rest = rest[..<colon]
        }
        var parts = rest.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let isHost = parts.count > 1 && (parts[0].contains(".") || parts[0].contains(":") || parts[0] == "localhost")
        switch kind {
        case .oci:
            guard isHost else { throw bad() }
            registry = parts.removeFirst()
            if registry == "docker.io", parts.count == 1 { parts.insert("library", at: 0) }
        case .ollama:
            registry = isHost && parts.count > 2 ? parts.removeFirst() : Self.ollama
            if parts.count == 1 { parts.insert("library", at: 0) }
        }
        guard !parts.isEmpty, parts.allSatisfy(Self.isPart), Self.isHost(registry) else { throw bad() }
        repository = parts.joined(separator: "/")
        guard repository.utf8.count <= 255 else { throw bad() }
        self.kind = kind
        self.tag = tag ?? (digest == nil ? "latest" : nil)
        self.digest = digest
    }

    /// The tag or the digest that a manifest is asked for with.
    var version: String { digest ?? tag ?? "latest" }

    /// The form that `init(parsing:)` reads.
    var description: String {
        let place =
            kind == .ollama && registry == Self.ollama
            ? (repository.hasPrefix("library/") ? String(repository.dropFirst(8)) : repository)
            : "\(registry)/\(repository)"
        return "\(kind.rawValue):\(place)" + (tag.map { ":\($0)" } ?? "") + (digest.map { "@\($0)" } ?? "")
    }

    /// The URL of the registry's API, without a final slash. This machine's own registries are asked without TLS, as the
    /// clients of registries do.
    var base: String {
        // Docker's registry has another name than people write.
        let host = registry == "docker.io" || registry == "index.docker.io" ? "registry-1.docker.io" : registry
        let name = host.hasPrefix("[") ? String(host.prefix { $0 != "]" }) + "]" : String(host.prefix { $0 != ":" })
        let isLocal = name == "localhost" || name == "[::1]" || name.hasPrefix("127.")
        return "\(isLocal ? "http" : "https")://\(host)"
    }

    func blob(_ digest: String, at base: String) -> String { "\(base)/v2/\(repository)/blobs/\(digest)" }
    /// The URL of a manifest, by a tag or a digest.
    func manifest(_ version: String, at base: String) -> String { "\(base)/v2/\(repository)/manifests/\(version)" }

    /// The digest of a text such as `sha256:HEX`; nil for another one. Registries have SHA-256 and SHA-512.
    static func checksum(_ text: String) -> Checksum? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let algorithm: Checksum.Algorithm
        switch parts[0] {
        case "sha256": algorithm = .sha256
        case "sha512": algorithm = .sha512
        default: return nil
        }
        // Capitals would be another digest to a registry.
        guard parts[1].utf8.allSatisfy({ $0.isASCIIDigit || (0x61...0x66).contains($0) }) else { return nil }
        return Checksum(listed: algorithm, hex: parts[1])
    }

    private static func isTag(_ text: String) -> Bool {
        guard let first = text.utf8.first, text.utf8.count <= 128 else { return false }
        return (first.isASCIILetter || first.isASCIIDigit || first == UInt8(ascii: "_"))
            && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "_.-".utf8.contains($0) }
    }

    private static func isPart(_ text: String) -> Bool {
        guard let first = text.utf8.first, let last = text.utf8.last else { return false }
        func isPlain(_ byte: UInt8) -> Bool { byte.isASCIILetter || byte.isASCIIDigit }
        return isPlain(first) && isPlain(last) && text.utf8.allSatisfy { isPlain($0) || "_.-".utf8.contains($0) }
    }

    private static func isHost(_ text: String) -> Bool {
        URLOrigin("https://\(text)/") != nil
            && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || ".-:[]".utf8.contains($0) }
    }
}
