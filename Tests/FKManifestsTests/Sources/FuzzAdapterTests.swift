import TestSupport
import Testing

@testable import FKManifests

/// Answers of stores, registries and APIs from anywhere: they are read safely or refused, and what is read of them can be used.
@Suite("Fuzzed answers of sources") struct FuzzAdapterTests {
    private static let samples = [
        StoreAnswers.s3, StoreAnswers.google, StoreAnswers.azure, StoreAnswers.artifact, StoreAnswers.index,
        StoreAnswers.ollama,
        StoreAnswers.release, StoreAnswers.giteaRelease, StoreAnswers.report, StoreAnswers.item,
        #"Bearer realm="https://a.example/t",service="s",scope="repository:a:pull", Basic realm=x"#,
        #"{"token":"abc","expires_in":300}"#,
        #"{"auths":{"ghcr.io":{"auth":"bWU6cHc="}},"credHelpers":{"gcr.io":"x"},"credsStore":"y"}"#,
        "<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region></Error>",
        #"{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"s","Token":"t","Expiration":"2024-05-01T10:00:00Z"}"#,
        #"{"url":"https://h/a.bin","name":"x/a.bin","size":3,"version":"3"}"# + "\n" + #"{"version":"1"}"#,
    ]

    private static func mutated(_ random: inout SeededRandom) -> [UInt8] {
        var bytes = Array(random.pick(samples).utf8)
        for _ in 0..<random.below(4) {
            switch random.below(4) {
            case 0: Mutation.apply(&bytes, with: Array(random.pick(samples).utf8), &random)
            case 1: bytes.insert(contentsOf: NastyText.bytes(&random), at: random.below(bytes.count + 1))
            case 2 where bytes.first == UInt8(ascii: "{"): JSONMutation.apply(&bytes, &random)
            default:
                let piece = random.pick([
                    "<Contents>", "</Key>", "%2e%2e%2f", "%00", "../", "-1", "99999999999999999999", "true", "null",
                    "[[", ";", "\t", "\n",
                    "sha256:", "\"", "\\", "]]>", "<!DOCTYPE a [", "&#x0;", "\r\n",
                ])
                bytes.insert(contentsOf: piece.utf8, at: random.below(bytes.count + 1))
            }
        }
        return bytes
    }

    @Test("are read safely or refused", arguments: FuzzRun.shards) func answers(shard: Int) async throws {
        try await FuzzRun("answers of sources", usual: 10_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let bytes = Self.mutated(&random)
            return Self.bucket(bytes) ?? Self.registry(bytes) ?? Self.others(bytes)
        }
    }

    private static func bucket(_ bytes: [UInt8]) -> String? {
        _ = BucketRefusal(bytes)
        guard let page = try? BucketPage(bytes) else { return nil }
        for object in page.objects {
            if object.key.isEmpty || object.key.hasSuffix("/") { return "a key '\(object.key)'" }
            if let size = object.size, size < 0 { return "a size \(size)" }
            if let tag = object.entityTag, HeaderField("If-Match", tag).fault != nil {
                return "a tag \(tag.debugDescription)"
            }
            guard let server = try? BucketServer(BucketPlace(parsing: "s3://bucket"), in: [:]) else {
                return "no server"
            }
            if server.object(object.key).urlFault != nil, object.key.utf8.count < 20_000 {
                return "an address of '\(object.key)'"
            }
        }
        return page.next?.isEmpty == true ? "an empty next page" : nil
    }

    private static func registry(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        if let login = try? RegistryLogin([text], of: "https://r.example"), let url = login.tokenURL(for: "a"),
            !url.hasPrefix("https://")
        {
            return "a login at \(url)"
        }
        if let token = try? RegistryToken(bytes), HeaderField("Authorization", "Bearer \(token.text)").fault != nil {
            return "a token"
        }
        if case .helper(let name)? = DockerLogins([bytes]).entry(for: "gcr.io", "a"), name.contains("/") {
            return "a helper \(name)"
        }
        guard let manifest = try? RegistryManifest(bytes, mediaType: nil) else { return nil }
        let reference = try? RegistryReference(parsing: "oci:h.example/a:1")
        guard case .image(let image) = manifest, let reference, let first = image.config ?? image.layers.first else {
            return nil
        }
        for layout in RegistryLayout.allCases {
            for file in layout.files(of: image, first, reference) where file.entry.size < 0 {
                return "a size of \(file.name)"
            }
        }
        return nil
    }

    private static func others(_ bytes: [UInt8]) -> String? {
        _ = try? AWSCredentialFinder.Answer(json: bytes)
        _ = AWSCredentialFinder.words(of: String(decoding: bytes, as: UTF8.self))
        if let release = try? Release(bytes), release.assets.contains(where: { $0.size ?? 0 < 0 }) {
            return "a size of an asset"
        }
        var fault: String?
        try? ENAReport.read(bytes, .run) { files, _ in
            for file in (try? files.get()) ?? [] where file.sources[0].url.urlFault != nil {
                fault = "an address \(file)"
            }
        }
        _ = try? ArchiveItem.read(bytes, item: "item1", base: "https://archive.org/download/item1") { file in
            guard let file = try? file.get() else { return }
            if let name = file.name, let reason = name.listedPathFault { fault = "a name: \(reason)" }
            if file.sources[0].url.urlFault != nil { fault = "an address \(file)" }
        }
        let page = ProgramListing.page((bytes[...], 1), of: "lab").page
        if page.files.contains(where: { $0.sources.isEmpty || $0.name == nil }) {
            fault = "a file of a program without an address"
        }
        return fault
    }

    @Test("words are read safely or refused", arguments: FuzzRun.shards) func words(shard: Int) async throws {
        try await FuzzRun("words of sources", usual: 10_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var text = random.pick([
                "s3://bucket/a/b?versionId=1", "gs://b/k", "az://acc/cont/k",
                "oci:h.example:5000/a/b:tag@sha256:\(StoreAnswers.hex("a"))",
                "ollama:a/b:c", "gh:o/r@v1", "ena:PRJEB1", "ia:item", "lab:x",
            ])
            if random.oneIn(2) {
                var bytes = Array(text.utf8)
                Mutation.apply(&bytes, with: Array("@:/?#%..".utf8), &random)
                text = String(decoding: bytes, as: UTF8.self)
            } else {
                text += NastyText.make(&random)
            }
            guard let found = try? SourceRegistry().find(text, in: [:]) else { return nil }
            if found.place.folderName.isEmpty { return "no folder of \(text.debugDescription)" }
            return found.place.address.flatMap { $0.urlFault }.map { "\($0) of \(text.debugDescription)" }
        }
    }
}
