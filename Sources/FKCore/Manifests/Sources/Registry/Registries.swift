import FKMiddleware
import FKTransport
import Foundation

/// Artifacts and images of OCI registries (`oci:`), and Ollama's models (`ollama:`).
///
/// A tag is resolved to the digest of its manifest, and the manifest names each file by its digest. A token is asked for where the
/// registry wants one, and goes to the registry alone.
struct Registries: Source {
    var schemes: [String] { ["oci", "ollama"] }
    var form: String { "oci:REGISTRY/REPO:TAG, oci:REGISTRY/REPO@sha256:DIGEST or ollama:NAME:TAG" }

    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
        let artifact = try RegistryReference(parsing: reference.description)
        let name = artifact.repository.split(separator: "/").last.map(String.init) ?? artifact.repository
        return SourcePlace(
            reference, title: artifact.description, folderName: name, address: try artifact.server(in: environment),
            pinsFiles: true)
    }

    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let artifact = try RegistryReference(parsing: place.reference.description)
            let found = try await RegistryReader(artifact, client).artifact()
            let base = try artifact.server(in: client.environment)
            var page = SourcePage(version: found.manifest.digest)
            for file in client.choice.layout.files(of: found.image, found.manifest, artifact) {
                let url =
                    file.isManifest
                    ? artifact.manifest(file.isTagged ? artifact.version : file.entry.digest, at: base)
                    : artifact.blob(file.entry.digest, at: base)
                var facts = Manifest.FileFacts(name: file.name, sources: [.init(url)])
                facts.size = file.entry.size
                facts.digests = [file.entry.checksum]
                facts.version = file.entry.digest
                page.files.append(facts)
            }
            var orders = SourcePage.Orders(address: base)
            orders.attributes[SourcePage.Orders.tokenAttribute] = artifact.kind.rawValue
            orders.manifest = RegistryManifestEntry(
                mediaType: found.manifest.mediaType, digest: found.manifest.digest, size: found.manifest.size,
                tag: artifact.tag)
            page.orders = orders
            try await send(page)
        }
    }

    func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String? {
        let artifact = try RegistryReference(parsing: place.reference.description)
        return try await RegistryReader(artifact, client).artifact().manifest.digest
    }
}

extension RegistryReference {
    /// The URL of the registry. `FK_OLLAMA_ENDPOINT` names another one for Ollama's usual registry.
    ///
    /// - Throws: the error of an endpoint that is no URL.
    func server(in environment: [String: String]) throws(DownloadError) -> String {
        guard kind == .ollama, registry == Self.ollama else { return base }
        return try SourceEndpoint.url("FK_OLLAMA_ENDPOINT", base, in: environment)
    }
}

/// Reads the manifest of an artifact.
struct RegistryReader {
    /// The manifest of an artifact with its files.
    struct Artifact {
        var manifest: RegistryManifest.Descriptor
        var image: RegistryManifest.Image
    }

    /// An index may name another one.
    private static let maxDepth = 3

    private let reference: RegistryReference
    private let client: SourceClient
    private let base: String

    init(_ reference: RegistryReference, _ client: SourceClient) throws(DownloadError) {
        self.reference = reference
        self.client = client
        base = try reference.server(in: client.environment)
    }

    /// The artifact: the manifest itself, or the one that an index has for the platform.
    ///
    /// - Throws: the errors of the registry; `.protocolViolation` for an answer that is no manifest, or not the one of its digest;
    ///   `.invalidArgument` for a platform that cannot be one, `.notFound` for one without an image.
    func artifact() async throws(DownloadError) -> Artifact {
        let platform: RegistryManifest.Platform
        if let text = client.choice.platform {
            guard let named = RegistryManifest.Platform(parsing: text) else {
                throw DownloadError(
                    .invalidArgument, "'\(text.visible)' is no platform: write OS/ARCH, such as linux/arm64.")
            }
            platform = named
        } else {
            platform = .current
        }
        var version = reference.version
        for _ in 0..<Self.maxDepth {
            let (manifest, document) = try await document(version)
            switch document {
            case .image(let image): return Artifact(manifest: manifest, image: image)
            case .index(let entries):
                do throws(AnswerFault) { version = try RegistryManifest.choose(entries, for: platform).digest } catch {
                    throw DownloadError(.notFound, "\(reference): \(error.reason).")
                }
            }
        }
        throw DownloadError(.protocolViolation, "\(reference): the index names other indexes only.")
    }

    private func document(
        _ version: String
    ) async throws(DownloadError) -> (RegistryManifest.Descriptor, RegistryManifest) {
        let url = reference.manifest(version, at: base)
        let answer = try await get(url)
        guard answer.bytes.count <= RegistryManifest.maxBytes else {
            throw DownloadError(
                .tooLarge, "The manifest is longer than \(RegistryManifest.maxBytes >> 20) MiB.", url: url)
        }
        let wanted = RegistryReference.checksum(version)
        let digester = Digester(wanted?.algorithm ?? .sha256)
        answer.bytes.withUnsafeBytes { digester.update($0) }
        let hex = digester.hex()
        let name = wanted?.algorithm == .sha512 ? "sha512" : "sha256"
        guard let checksum = RegistryReference.checksum("\(name):\(hex)"), wanted == nil || checksum == wanted else {
            throw DownloadError(
                .checksumMismatch, "The registry sent another manifest than the one of the digest.", url: url)
        }
        // What the registry itself says about the tag.
        if wanted == nil, let said = answer.head.first("Docker-Content-Digest").flatMap(RegistryReference.checksum),
            said.algorithm == checksum.algorithm, said != checksum
        {
            throw DownloadError(.checksumMismatch, "The manifest has another digest than the registry says.", url: url)
        }
        let type = answer.head.first("Content-Type").map { String($0.prefix { $0 != ";" }) }
        do throws(AnswerFault) {
            let manifest = try RegistryManifest(answer.bytes, mediaType: type)
            let mediaType = if case .image(let image) = manifest { image.mediaType } else { type ?? "" }
            return (
                RegistryManifest.Descriptor(
                    mediaType: mediaType, digest: "\(name):\(hex)", checksum: checksum, size: Int64(answer.bytes.count)),
                manifest
            )
        } catch {
            throw DownloadError(.protocolViolation, "\(reference): \(error.reason).", url: url)
        }
    }

    /// Asks for a manifest, with a token if the registry wants one.
    private func get(_ url: String) async throws(DownloadError) -> SourceAnswer {
        let given = client.login(for: base)
        var login = RegistryTokens.shared.known(base, reference.repository, given)
        var isRenewed = false
        while true {
            var request = SourceRequest(url)
            request.headers = [HeaderField("Accept", RegistryManifest.accepted)]
            request.statuses = [200, 203, 401, 403, 404]
            request.readsErrors = true
            if let login { request.secrets = [SourceSecret(HeaderField("Authorization", login), for: base)] }
            let answer = try await client.get(request)
            if answer.head.status == 200 || answer.head.status == 203 { return answer }
            // Without a login, and once more with a new one: the one that is known may have ended.
            if answer.head.status == 401, !isRenewed, isOwn(answer), RegistryTokens.mayExchange(given) {
                isRenewed = true
                login = try await RegistryTokens.shared.renew(
                    base, reference, challenges: answer.head.values(of: "WWW-Authenticate"), given, client)
                if login != nil, login != given { continue }
            }
            throw error(answer, hasLogin: (login ?? given) != nil)
        }
    }

    /// False for the answer of another server, behind a redirect: the registry's login is not for it.
    private func isOwn(_ answer: SourceAnswer) -> Bool { URLOrigin(answer.head.url) == URLOrigin(base) }

    private func error(_ answer: SourceAnswer, hasLogin: Bool) -> DownloadError {
        var error = RetryRules.error(for: answer.head, now: Date())
        let errors = (try? SourceJSON.object(answer.bytes, ""))?["errors"]?.array
        let said = errors?.first?.object?["message"]?.string.map { String($0.prefix(300)) }
        switch answer.head.status {
        case 404:
            error.code = .notFound
            error.message = "The registry has no \(reference)."
        case _ where !isOwn(answer):
            error.message =
                "The registry redirects to \(String(URLParts(answer.head.url).hostPort).visible), which does not allow reading "
                + "\(reference). The registry's login was not sent there."
            error.remedy = nil
        default:
            error.message =
                "The registry does not allow reading \(reference)"
                + (hasLogin ? "." : ": log in with docker login, podman login or skopeo login.")
            error.remedy = nil
        }
        error.underlying = said.map { $0.visible }
        error.url = reference.manifest(reference.version, at: base)
        return error
    }
}
