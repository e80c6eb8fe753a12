import TestSupport
import Testing

@testable import FKManifests

@Suite("Registries: references, manifests, logins") struct RegistryTests {
    @Test("references") func references() throws {
        let tagged = try RegistryReference(parsing: "oci:ghcr.io/owner/repo:v1.0")
        #expect(tagged.registry == "ghcr.io" && tagged.repository == "owner/repo" && tagged.version == "v1.0")
        #expect(tagged.base == "https://ghcr.io")
        let local = try RegistryReference(parsing: "oci:127.0.0.1:5000/a/b")
        #expect(
            local.tag == "latest" && local.base == "http://127.0.0.1:5000"
                && local.description == "oci:127.0.0.1:5000/a/b:latest")
        let pinned = try RegistryReference(parsing: "oci://localhost/a@sha256:\(StoreAnswers.hex("a"))")
        #expect(pinned.tag == nil && pinned.version.hasPrefix("sha256:a") && pinned.base == "http://localhost")
        let docker = try RegistryReference(parsing: "oci:docker.io/debian:12")
        #expect(docker.repository == "library/debian" && docker.base == "https://registry-1.docker.io")
        #expect(try RegistryReference(parsing: "ollama:llama3").repository == "library/llama3")
        #expect(try RegistryReference(parsing: "ollama:user/m:7b").description == "ollama:user/m:7b")
        #expect(try RegistryReference(parsing: "ollama:h.example/user/m").registry == "h.example")
        for text in [
            "oci:repo", "oci:owner/repo", "oci:h.example", "oci:h.example/", "oci:h.example/a//b",
            "oci:h.example/a:b:c",
            "oci:h.example/a@sha256:xyz", "oci:h.example/a@sha256:\(StoreAnswers.hex("A"))", "oci:h.example/../b",
            "oci:h.example/a b",
            "oci:user:pw@h.example/a", "oci:h.example/-a", "ollama:", "ollama:a/b/c/d:",
            "oci:h.example/a:" + String(repeating: "t", count: 129),
        ] {
            #expect(throws: DownloadError.self, "\(text)") { try RegistryReference(parsing: text) }
        }
    }

    @Test("manifests, and their files under each layout") func files() throws {
        guard case .image(let image) = try RegistryManifest(Array(StoreAnswers.artifact.utf8), mediaType: nil) else {
            Issue.record("no image")
            return
        }
        let checksum = try #require(RegistryReference.checksum("sha256:\(StoreAnswers.hex("f"))"))
        let manifest = RegistryManifest.Descriptor(
            mediaType: image.mediaType, digest: "sha256:\(StoreAnswers.hex("f"))", checksum: checksum, size: 700)
        let reference = try RegistryReference(parsing: "oci:h.example/a:1")
        func names(_ layout: RegistryLayout, _ image: RegistryManifest.Image, _ reference: RegistryReference)
            -> [String]
        {
            layout.files(of: image, manifest, reference).map(\.name)
        }
        #expect(names(.files, image, reference) == ["sub/model.bin", "data.tar.gz"])
        #expect(names(.oci, image, reference) == ["a", "b", "c", "f"].map { "blobs/sha256/\(StoreAnswers.hex($0))" })
        guard case .image(let model) = try RegistryManifest(Array(StoreAnswers.ollama.utf8), mediaType: nil) else {
            Issue.record("no model")
            return
        }
        let ollama = try RegistryReference(parsing: "ollama:m")
        #expect(
            names(.files, model, ollama) == [
                "model.gguf", "license.txt", "license-2.txt", "params.json", "config.json",
            ])
        #expect(names(.ollama, model, ollama).last == "manifests/registry.ollama.ai/library/m/latest")
        #expect(names(.ollama, model, ollama).first == "blobs/sha256-\(StoreAnswers.hex("a"))")
        // Without titles, each file once under its digest.
        #expect(names(.files, model, reference) == ["a", "b", "c", "d", "e"].map(StoreAnswers.hex))
    }

    @Test("the entry of an index for a platform") func platforms() throws {
        guard case .index(let entries) = try RegistryManifest(Array(StoreAnswers.index.utf8), mediaType: nil) else {
            Issue.record("no index")
            return
        }
        for (text, digit) in [
            ("linux/amd64", "1"), ("linux/x86_64", "1"), ("linux/arm64", "2"), ("LINUX/aarch64/v8", "2"),
            ("linux/arm", "3"),
            ("linux/arm/v7", "3"),
        ] {
            let platform = try #require(RegistryManifest.Platform(parsing: text))
            #expect(try RegistryManifest.choose(entries, for: platform).digest == "sha256:\(StoreAnswers.hex(digit))")
        }
        let other = try #require(RegistryManifest.Platform(parsing: "linux/s390x"))
        let fault = #expect(throws: AnswerFault.self) { try RegistryManifest.choose(entries, for: other) }
        #expect(fault?.reason.contains("linux/amd64, linux/arm64/v8, linux/arm/v7") == true)
        #expect(RegistryManifest.Platform(parsing: "linux") == nil && RegistryManifest.Platform(parsing: "a//b") == nil)
    }

    @Test(
        "what is no manifest is refused",
        arguments: [
            "", "[]", "{}", "{\"schemaVersion\":1}", "{\"schemaVersion\":2}", "{\"schemaVersion\":2,\"layers\":[{}]}",
            "{\"schemaVersion\":2,\"layers\":[{\"digest\":\"sha256:..\",\"size\":1}]}",
            "{\"schemaVersion\":2,\"layers\":[{\"digest\":\"sha256:\(StoreAnswers.hex("a"))\",\"size\":-1}]}",
            "{\"schemaVersion\":2,\"layers\":[],\"manifests\":[]}", "{\"schemaVersion\":2,\"layers\":{}}",
            String(repeating: "[", count: 1_000),
        ])
    func refused(text: String) {
        #expect(throws: AnswerFault.self) { try RegistryManifest(Array(text.utf8), mediaType: nil) }
    }

    @Test(
        "challenges",
        arguments: [
            ([#"Bearer realm="https://a/t",service="s, \"x\"",scope="repository:a:pull""#], ["bearer"], #"s, "x""#),
            ([#"Basic realm="x", Bearer realm=r , service = s"#], ["basic", "bearer"], "s"),
            (["Negotiate"], ["negotiate"], nil),
            ([#"Bearer realm="unclosed"#], ["bearer"], nil), (["", ",,,", "=,"], [], nil),
            (["Basic a=b", "Bearer service=q"], ["basic", "bearer"], "q"),
        ] as [([String], [String], String?)])
    func challenges(values: [String], schemes: [String], service: String?) {
        let found = AuthChallenge.parse(values)
        #expect(found.map(\.scheme) == schemes && found.last?.parameters["service"] == service)
    }

    @Test("where a login may be sent") func logins() throws {
        let token = try RegistryLogin([#"Bearer realm="https://a.example/t?x=1",service="s""#], of: "https://r.example")
        #expect(
            token.tokenURL(for: "o/r") == "https://a.example/t?x=1&service=s&scope=repository%3Ao%2Fr%3Apull")
        #expect(try RegistryLogin(["Basic realm=x"], of: "https://r.example") == .basic)
        // A password does not leave without TLS, unless the registry has none either.
        for text in ["http://a.example/t", "ftp://a/t", "nonsense", "https://u:p@a.example/t"] {
            #expect(throws: AnswerFault.self, "\(text)") {
                try RegistryLogin(["Bearer realm=\"\(text)\""], of: "https://r.example")
            }
        }
        #expect(try RegistryLogin([#"Bearer realm="http://127.0.0.1:1/t""#], of: "http://127.0.0.1:2") != .none)
        #expect(throws: AnswerFault.self) { try RegistryLogin(["Negotiate"], of: "https://r.example") }
    }

    @Test("tokens") func tokens() throws {
        let token = try RegistryToken(Array(#"{"access_token":"abc","expires_in":300}"#.utf8))
        #expect(token.text == "abc" && token.seconds == 300)
        #expect(try RegistryToken(Array(#"{"token":"t"}"#.utf8)).seconds == 60)
        for text in ["", "{}", #"{"token":""}"#, #"{"token":"a b"}"#, #"{"token":5}"#] {
            #expect(throws: AnswerFault.self, "\(text)") { try RegistryToken(Array(text.utf8)) }
        }
    }

    @Test("a request for a token takes the proxy of the task whose chain runs") func proxy() async throws {
        let proxy = try FaultServer()
        proxy.routeOthers { _ in .ok(Array("{}".utf8)) }
        var options = TransportOptions()
        (options.proxy, options.insecure, options.netrc) = (proxy.base, true, true)
        let connection = TaskOptions(connectionOf: options)
        #expect(connection.insecure == true && connection.netrc == nil)
        let field = try await ConnectionOptions.$ofChain.withValue(connection) {
            try await RegistryTokens().field("http://registry.invalid", "o/r", in: [:])
        }
        #expect(field == nil && proxy.requests.count == 1)
    }

    /// A folder of Docker's client with the login `me:pw` for a registry, as an environment.
    static func saved(_ registry: String, in folder: TemporaryFolder) throws -> [String: String] {
        let auth = Data("me:pw".utf8).base64EncodedString()
        try folder.write(Array(#"{"auths":{"\#(registry)":{"auth":"\#(auth)"}}}"#.utf8), to: "config.json")
        return ["DOCKER_CONFIG": folder.path, "HOME": "/nonexistent"]
    }

    private static func challenge(_ base: String) -> String { #"Bearer realm="\#(base)/token""# }

    @Test("a server that the registry redirects to gets no login by its challenge") func foreignChallenge() async throws
    {
        let (registry, other) = (try FaultServer(), try FaultServer())
        let challenge = Self.challenge(other.base)
        registry.routeOthers { _ in .redirect(to: "\(other.base)/v2/", status: 307) }
        other.routeOthers { request in
            request.path == "/token"
                ? .ok(Array(#"{"token":"t"}"#.utf8)) : .status(401, headers: ["WWW-Authenticate": challenge])
        }
        let folder = try TemporaryFolder()
        let environment = try Self.saved(String(registry.base.dropFirst("http://".count)), in: folder)
        #expect(try await RegistryTokens().field(registry.base, "o/r", in: environment) == nil)
        #expect(other.requests.map(\.path) == ["/v2/"] && other.requests.allSatisfy { $0["Authorization"] == nil })
    }

    @Test(
        "a task's token is the one that the refusal of its blob asks for, although /v2/ answers anybody, and by the owner's login",
        arguments: [nil, "Basic bWU6cHc="] as [String?])
    func refusedBlob(login: String?) async throws {
        let registry = try FaultServer()
        registry.routeOthers { request in
            guard request.path == "/token" else { return .ok([]) }
            return request["Authorization"] == login ? .ok(Array(#"{"token":"t5"}"#.utf8)) : .status(401)
        }
        let text = "\(registry.base)/v2/o/r/blobs/sha256:\(StoreAnswers.hex("a"))"
        let url = try #require(URL(string: text))
        let task = TaskContext(id: TaskDescription(url: text).id, originalURL: url)
        let middleware = RegistryMiddleware(["HOME": "/nonexistent"])
        func field() async throws -> String? {
            var request = URLRequest(url: url)
            request.setValue(login, forHTTPHeaderField: "Authorization")
            return try await middleware.process(request, for: task).value(forHTTPHeaderField: "Authorization")
        }
        #expect(try await field() == login)
        let refusal = HTTPURLResponse(
            url: url, statusCode: 401, httpVersion: nil,
            headerFields: ["WWW-Authenticate": Self.challenge(registry.base)])
        let failure = AttemptFailure(
            task: task, error: DownloadError(.httpStatus, "", status: 401), response: refusal)
        #expect(await middleware.decide(failure) == .renewed)
        #expect(try await field() == "Bearer t5")
    }

    @Test("saved logins of Docker, Podman and Skopeo") func dockerLogins() {
        let auth = Data("me:p:w".utf8).base64EncodedString()
        let document = """
            {"auths":{"https://index.docker.io/v1/":{"auth":"\(auth)"},"ghcr.io":{"username":"u","password":"p"},
            "quay.io/team":{"auth":"\(auth)"},"empty.example":{},"bad.example":{"auth":"!"}},
            "credHelpers":{"gcr.io":"gcloud","evil.example":"../x"},"credsStore":"desktop"}
            """
        let logins = DockerLogins([Array(document.utf8)])
        #expect(logins.entry(for: "docker.io", "library/debian") == .login(user: "me", password: "p:w"))
        #expect(logins.entry(for: "ghcr.io", "a/b") == .login(user: "u", password: "p"))
        #expect(logins.entry(for: "quay.io", "team/x") == .login(user: "me", password: "p:w"))
        #expect(logins.entry(for: "quay.io", "other/x") == .helper("desktop"))
        #expect(
            logins.entry(for: "gcr.io", "a") == .helper("gcloud")
                && logins.entry(for: "evil.example", "a") == .helper("desktop"))
        let none = DockerLogins([Array("{}".utf8), Array("nonsense".utf8)])
        #expect(none.entry(for: "ghcr.io", "a") == nil)
        #expect(
            DockerLogins.login(ofHelper: Array(#"{"ServerURL":"x","Username":"u","Secret":"s"}"#.utf8))
                == .login(user: "u", password: "s"))
        #expect(DockerLogins.login(ofHelper: Array("credentials not found".utf8)) == nil)
    }

    @Test("the index of an image layout keeps other manifests") func index() throws {
        let entry = RegistryManifestEntry(mediaType: "m", digest: "sha256:1", size: 3, tag: "a")
        let first = try #require(entry.index(joining: nil))
        let other = RegistryManifestEntry(mediaType: "m", digest: "sha256:2", size: 4, tag: "b")
        let both = try #require(other.index(joining: first))
        #expect(
            String(decoding: both, as: UTF8.self).contains("sha256:1")
                && String(decoding: both, as: UTF8.self).contains("sha256:2"))
        let moved = RegistryManifestEntry(mediaType: "m", digest: "sha256:3", size: 4, tag: "a")
        let text = String(decoding: try #require(moved.index(joining: both)), as: UTF8.self)
        #expect(!text.contains("sha256:1") && text.contains("sha256:2") && text.contains("sha256:3"))
        #expect(
            entry.index(joining: Array("[]".utf8)) == nil
                && entry.index(joining: Array("{\"manifests\":[1]}".utf8)) == nil)
    }

    @Test("only tasks of an artifact or a bucket that the owner has named get its tokens") func scopes() throws {
        let text = "https://h.example/v2/a/blobs/sha256:\(StoreAnswers.hex("a"))"
        let listed = TaskContext(id: TaskDescription(url: text).id, originalURL: try #require(URL(string: text)))
        var named = listed
        named.attributes[SourcePage.Orders.tokenAttribute] = "oci"
        let scope = RegistryMiddleware([:]).scope
        #expect(scope.includes(named) && !scope.includes(listed))
        let google = try #require(BucketMiddleware.all(["GOOGLE_OAUTH_ACCESS_TOKEN": "t"]).first?.scope)
        #expect(!google.includes(named) && !google.includes(listed))
        named.attributes[SourcePage.Orders.tokenAttribute] = "gs"
        #expect(google.includes(named) && !scope.includes(named))
        #expect(BucketMiddleware.all([:]).isEmpty)
    }

    @Test("addresses of blobs and manifests") func paths() {
        let hex = StoreAnswers.hex("a")
        #expect(RegistryPath("https://h:1/v2/a/b/blobs/sha256:\(hex)")?.repository == "a/b")
        #expect(RegistryPath("https://h/v2/a/manifests/latest")?.isManifest == true)
        for url in [
            "https://h/v2/a/blobs/x", "https://h/v2/blobs/sha256:\(hex)", "https://h/v1/a/blobs/sha256:\(hex)",
            "https://h/v2/a/blobs/sha256:\(hex)?x",
        ] {
            #expect(RegistryPath(url) == nil, "\(url)")
        }
    }
}

@Suite("Registries: listings over requests") struct RegistryListingTests {
    private static func digest(_ text: String) -> String {
        let digester = Digester(.sha256)
        Array(text.utf8).withUnsafeBytes { digester.update($0) }
        return "sha256:" + digester.hex()
    }

    @Test("a tag is resolved to its manifest, and the token goes to the registry alone") func token() async throws {
        let listing = try await AdapterBench.list("oci:r1.example/o/r:v1") { url, login in
            if url.hasPrefix("https://auth.example/token") { return .init(200, #"{"token":"tok1","expires_in":300}"#) }
            guard login == "Bearer tok1" else {
                return .init(
                    401, "",
                    [HeaderField("WWW-Authenticate", #"Bearer realm="https://auth.example/token",service="r1""#)])
            }
            return .init(200, StoreAnswers.artifact)
        }
        #expect(listing.error == nil && listing.names == ["sub/model.bin", "data.tar.gz"])
        #expect(listing.version == Self.digest(StoreAnswers.artifact))
        #expect(listing.files[0].digests.map(\.hex) == [StoreAnswers.hex("b")] && listing.files[0].size == 3_000_000)
        #expect(
            listing.files[0].sources.map(\.url) == ["https://r1.example/v2/o/r/blobs/sha256:\(StoreAnswers.hex("b"))"])
        #expect(listing.asked.map(\.login) == [nil, nil, "Bearer tok1"])
    }

    @Test("a saved login goes to the server of the tokens") func login() async throws {
        let folder = try TemporaryFolder()
        let auth = Data("me:pw".utf8).base64EncodedString()
        try folder.write(Array(#"{"auths":{"r2.example":{"auth":"\#(auth)"}}}"#.utf8), to: "config.json")
        let listing = try await AdapterBench.list("oci:r2.example/o/r:v1", in: ["DOCKER_CONFIG": folder.path]) {
            url, login in
            if url.hasPrefix("https://auth.example/") {
                return login == "Basic \(auth)" ? .init(200, #"{"token":"t2"}"#) : .init(401)
            }
            return login == "Bearer t2"
                ? .init(200, StoreAnswers.artifact)
                : .init(401, "", [HeaderField("WWW-Authenticate", #"Bearer realm="https://auth.example/t""#)])
        }
        #expect(listing.files.count == 2, "\(String(describing: listing.error))")
        // The owner's login goes there too, and not one of another kind.
        for (given, isTaken) in [("Basic \(auth)", true), ("Bearer x", false)] {
            var options = TaskOptions()
            options.headers = [HeaderField("Authorization", given)]
            let own = try await AdapterBench.list("oci:r8.example/o/\(isTaken ? "a" : "b"):v1", options) { url, login in
                if url.hasPrefix("https://auth.example/") {
                    return login == "Basic \(auth)" ? .init(200, #"{"token":"t8"}"#) : .init(401)
                }
                return login == "Bearer t8"
                    ? .init(200, StoreAnswers.artifact)
                    : .init(401, "", [HeaderField("WWW-Authenticate", #"Bearer realm="https://auth.example/t""#)])
            }
            #expect((own.error == nil) == isTaken && own.asked.count == (isTaken ? 3 : 1))
        }
        // A server that is never content is asked twice.
        let refused = try await AdapterBench.list("oci:r3.example/o/r:v1") { url, _ in
            url.hasPrefix("https://auth.example/")
                ? .init(200, #"{"token":"t3"}"#)
                : .init(401, "", [HeaderField("WWW-Authenticate", #"Bearer realm="https://auth.example/t""#)])
        }
        #expect(refused.error?.status == 401 && refused.asked.count == 3)
    }

    @Test("the challenge of a server that the registry redirects to gets no login, and is no challenge of the registry")
    func foreignChallenge() async throws {
        let folder = try TemporaryFolder()
        let environment = try RegistryTests.saved("r9.example", in: folder)
        let listing = try await AdapterBench.list("oci:r9.example/o/r:v1", in: environment) { url, _ in
            .init(
                401, "", [HeaderField("WWW-Authenticate", #"Bearer realm="https://other.example/token""#)],
                from: url.replacing("r9.example", with: "other.example"))
        }
        #expect(listing.error?.message.contains("redirects to other.example") == true)
        #expect(listing.asked.count == 1 && listing.asked[0].login == nil)
    }

    @Test("why a saved login is not known is said", arguments: ["Basic", "Bearer"])
    func unreadableLogin(scheme: String) async throws {
        let folder = try TemporaryFolder()
        try folder.write(Array("{bad".utf8), to: "config.json")
        let listing = try await AdapterBench.list(
            "oci:r10.example/o/\(scheme.lowercased()):v1", in: ["DOCKER_CONFIG": folder.path]
        ) { _, _ in .init(401, "", [HeaderField("WWW-Authenticate", #"\#(scheme) realm="https://auth.example/t""#)]) }
        #expect(listing.error?.message.contains("config.json is no JSON") == true)
    }

    @Test("a manifest that is not the one of its digest is refused, of a reference, an index and a server's own word")
    func wrong() async throws {
        let pinned = try await AdapterBench.list("oci:r4.example/a@sha256:\(StoreAnswers.hex("a"))") { _, _ in
            .init(200, StoreAnswers.artifact)
        }
        #expect(pinned.error?.code == .checksumMismatch)
        let index = try await AdapterBench.list("oci:r4.example/a:1") {
            $0.platform = "linux/amd64"
        } _: { url, _ in
            .init(200, url.hasSuffix("/1") ? StoreAnswers.index : StoreAnswers.artifact)
        }
        #expect(index.error?.code == .checksumMismatch)
        let said = try await AdapterBench.list("oci:r4.example/a:1") { _, _ in
            .init(200, StoreAnswers.artifact, [HeaderField("Docker-Content-Digest", "sha256:\(StoreAnswers.hex("0"))")])
        }
        #expect(said.error?.code == .checksumMismatch)
        let right = try await AdapterBench.list("oci:r4.example/a@\(Self.digest(StoreAnswers.artifact))") { _, _ in
            .init(200, StoreAnswers.artifact)
        }
        #expect(right.files.count == 2)
    }

    @Test("an index that has no such platform, a missing artifact, a page in place of a manifest") func refusals()
        async throws
    {
        let platform = try await AdapterBench.list("oci:r5.example/a:1") {
            $0.platform = "windows/amd64"
        } _: { _, _ in
            .init(200, StoreAnswers.index)
        }
        #expect(platform.error?.code == .notFound && platform.error?.message.contains("linux/amd64") == true)
        let wrong = try await AdapterBench.list("oci:r5.example/a:1") {
            $0.platform = "linux"
        } _: { _, _ in
            .init()
        }
        #expect(wrong.error?.code == .invalidArgument && wrong.asked.isEmpty)
        let missing = try await AdapterBench.list("oci:r5.example/a:1") { _, _ in
            .init(404, #"{"errors":[{"code":"X","message":"gone"}]}"#)
        }
        #expect(missing.error?.status == 404 && missing.error?.underlying == "gone")
        let page = try await AdapterBench.list("oci:r5.example/a:1") { _, _ in .init(200, "<html>") }
        #expect(page.error?.code == .protocolViolation)
    }

    @Test("layouts of a listing") func layouts() async throws {
        let oci = try await AdapterBench.list("oci:r6.example/a:1") {
            $0.layout = .oci
        } _: { _, _ in
            .init(200, StoreAnswers.artifact)
        }
        #expect(oci.names.count == 4 && oci.orders?.manifest?.tag == "1")
        #expect(
            oci.files.last?.sources.first?.url
                == "https://r6.example/v2/a/manifests/\(Self.digest(StoreAnswers.artifact))")
        let ollama = try await AdapterBench.list("ollama:m", in: ["FK_OLLAMA_ENDPOINT": "https://o.example"]) {
            $0.layout = .ollama
        } _: { _, _ in
            .init(200, StoreAnswers.ollama)
        }
        #expect(ollama.files.last?.sources.first?.url == "https://o.example/v2/library/m/manifests/latest")
    }
}
