import TestSupport
import Testing

@testable import fk

/// Buckets, registries, releases and programs as sources, end to end.
@Suite("Buckets, registries, releases, programs") struct SourceAdapterTests {
    /// All files below a folder with their bytes.
    private func tree(_ folder: String) -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for name in FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? [] {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: "\(folder)/\(name)", isDirectory: &isFolder)
            if !isFolder.boolValue {
                files[name] = FileManager.default.contents(atPath: "\(folder)/\(name)").map(Array.init)
            }
        }
        return files
    }

    private func stored(_ sandbox: Sandbox) -> [UInt8] { tree(sandbox.workPath).values.reduce(into: []) { $0 += $1 } }

    // MARK: Buckets

    /// A bucket on a server, which wants signed requests.
    private final class Bucket: Sendable {
        let server: FaultServer
        let objects = Locked<[String: [UInt8]]>([:])
        private let knowsConditions: Bool

        init(isOpen: Bool = false, knowsConditions: Bool = true) throws {
            server = try FaultServer()
            self.knowsConditions = knowsConditions
            server.routeOthers { [weak self] request in
                guard let self, request.path.hasPrefix("/bucket/") else { return .status(404) }
                let isSigned = request["Authorization"]?.hasPrefix("AWS4-HMAC-SHA256 Credential=AKID/") == true
                guard isOpen || isSigned else {
                    return .status(
                        403,
                        body: Array("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>".utf8))
                }
                return answer(request)
            }
        }

        static func tag(_ bytes: [UInt8]) -> String { "\"\(bytes.count)-\(bytes.first ?? 0)\"" }

        private func answer(_ request: FaultRequest) -> FaultResponse {
            let key = String(request.path.dropFirst("/bucket/".count))
            guard key.isEmpty else {
                guard let bytes = objects.withLock({ $0[key] }) else { return .status(404) }
                let tag = Self.tag(bytes)
                if knowsConditions, let wanted = request["If-Match"], wanted != tag { return .status(412) }
                return .ranged(bytes, for: request, etag: tag)
            }
            let prefix =
                request.query.split(separator: "&").first { $0.hasPrefix("prefix=") }?.dropFirst(7).replacing(
                    "%2F", with: "/") ?? ""
            let entries = objects.withLock { $0 }.filter { $0.key.hasPrefix(prefix) }.sorted { $0.key < $1.key }
            let text = entries.map {
                "<Contents><Key>\($0.key)</Key><Size>\($0.value.count)</Size><ETag>\(Self.tag($0.value))</ETag></Contents>"
            }
            return .ok(Array("<ListBucketResult>\(text.joined())</ListBucketResult>".utf8))
        }

        var environment: [String: String] {
            [
                "AWS_ENDPOINT_URL": server.base, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "verysecretkey",
                "HOME": "/nonexistent",
            ]
        }
    }

    @Test("a bucket: every request is signed, no key is stored, and the same command again asks only for the listing")
    func bucket() async throws {
        let bucket = try Bucket()
        let files = ["d/a.bin": Bytes.pattern(count: 3_000_000), "d/sub/b.txt": Array("b".utf8), "other": [1]]
        bucket.objects.withLock { $0 = files }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("get", "-r", "s3://bucket/d", "-d", "out")
        #expect(tree("\(sandbox.files)/out") == ["a.bin": files["d/a.bin"] ?? [], "sub/b.txt": Array("b".utf8)])
        #expect(bucket.server.requests.allSatisfy { $0["Authorization"] != nil })
        #expect(!String(decoding: stored(sandbox), as: UTF8.self).contains("verysecret"))
        let count = bucket.server.requests.count
        try await sandbox.done("get", "-r", "s3://bucket/d", "-d", "out")
        #expect(bucket.server.requests.count == count + 1)
        let dry = try await sandbox.done("get", "-r", "s3://bucket/d", "-d", "out", "--dry-run")
        #expect(dry.output.contains("same 3000000 a.bin") && dry.output.contains("2 same"))
    }

    @Test(
        "an object that has changed since the listing is refused, until the barrel is in step again",
        arguments: [true, false])
    func pinned(knowsConditions: Bool) async throws {
        let bucket = try Bucket(knowsConditions: knowsConditions)
        bucket.objects.withLock { $0 = ["a.bin": [UInt8](repeating: 1, count: 5_000), "b.bin": [2]] }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("barrel", "import", "set", "s3://bucket", "-d", "out")
        bucket.objects.withLock { $0["a.bin"] = [UInt8](repeating: 9, count: 5_000) }
        let run = try await sandbox.fk("barrel", "run", "set")
        #expect(run.status == 1 && run.errors.contains("another entity tag") && run.errors.contains("fk barrel sync"))
        #expect(!sandbox.exists("out/a.bin") && sandbox.exists("out/b.bin"))
        try await sandbox.done("barrel", "sync", "set")
        #expect(try sandbox.bytes("out/a.bin") == [UInt8](repeating: 9, count: 5_000))
        bucket.objects.withLock { $0["b.bin"] = [3] }
        let synced = try await sandbox.done("barrel", "sync", "set")
        #expect(synced.output.contains("changed b.bin"))
        #expect(try sandbox.bytes("out/b.bin") == [3])
    }

    @Test("one object; an open bucket without keys; --anonymous") func single() async throws {
        let bucket = try Bucket(isOpen: true)
        bucket.objects.withLock { $0 = ["d/k.bin": Bytes.pattern(count: 10_000)] }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("get", "s3://bucket/d/k.bin")
        #expect(try sandbox.bytes("k.bin") == Bytes.pattern(count: 10_000))
        #expect(bucket.server.requests.allSatisfy { $0["Authorization"] != nil })
        let count = bucket.server.requests.count
        try await sandbox.done("get", "-r", "s3://bucket/d", "-d", "open", "-b", "open", "--anonymous")
        #expect(bucket.server.requests.dropFirst(count).allSatisfy { $0["Authorization"] == nil })
        #expect(bucket.server.requests.count == count + 2)
        let missing = try await sandbox.fk("get", "s3://bucket/d/none")
        #expect(missing.status == 1 && missing.errors.contains("has no object 'd/none'"))
        let closed = try Bucket()
        let other = try Sandbox(environment: ["AWS_ENDPOINT_URL": closed.server.base, "HOME": "/nonexistent"])
        let refused = try await other.fk("get", "-r", "s3://bucket/")
        #expect(refused.status == 1 && refused.errors.contains("AWS_PROFILE"))
    }

    @Test(
        "another version of a finished object is refused by get -r, is not taken for the one that is there, and sync fetches it"
    )
    func outdated() async throws {
        let bucket = try Bucket()
        bucket.objects.withLock { $0 = ["d/a": [1, 1], "d/b": [2]] }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("get", "-r", "s3://bucket/d")
        bucket.objects.withLock { $0["d/a"] = [7, 7] }
        for words in [["get", "-r", "s3://bucket/d"], ["barrel", "import", "d", "s3://bucket/d"]] {
            let again = try await sandbox.fk(words)
            #expect(again.status == 1 && again.errors.contains("fk barrel sync"), "\(again)")
        }
        #expect(try sandbox.bytes("d/a") == [1, 1])
        #expect(try await sandbox.done("barrel", "sync", "d", "--print", "none").output == "changed a\n")
        #expect(try sandbox.bytes("d/a") == [7, 7])
        try await sandbox.done("get", "-r", "s3://bucket/d")
    }

    @Test("a barrel keeps its server, and the keys of another one are not sent to it") func otherServer() async throws {
        let (bucket, other) = (try Bucket(), try Bucket())
        bucket.objects.withLock { $0 = ["d/a": [1], "d/b": [2]] }
        other.objects.withLock { $0 = ["d/a": [9]] }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("barrel", "import", "d", "s3://bucket/d")
        let count = bucket.server.requests.count
        for endpoint in [other.server.base, ""] {
            let elsewhere = ["AWS_ENDPOINT_URL": endpoint]
            for words in [["get", "-r", "s3://bucket/d"], ["barrel", "sync", "d", "--delete", "--yes"]] {
                let result = try await sandbox.start(words, environment: elsewhere).end()
                #expect(
                    result.status == 2 && result.errors.contains("has its files from \(bucket.server.base)"),
                    "\(result)")
            }
            let fetched = try await sandbox.start(["barrel", "run", "d"], environment: elsewhere).end()
            #expect(fetched.status == 1 && fetched.errors.contains("AWS_ENDPOINT_URL"), "\(fetched)")
        }
        #expect(bucket.server.requests.count == count && other.server.requests.isEmpty)
        try await sandbox.done("retry", "-b", "d")
        try await sandbox.done("barrel", "run", "d")
        #expect(try sandbox.bytes("d/a") == [1])
    }

    @Test("credentials that the server calls expired are asked for again, for the listing and for each file")
    func expired() async throws {
        let server = try FaultServer()
        // The keys that are valid now: those of the second call of the program, then those of the third.
        let valid = Locked(2)
        server.routeOthers { request in
            let number = valid.withLock { number in
                if request.path == "/bucket/b", number == 2 { number = 3 }
                return number
            }
            guard request["Authorization"]?.contains("Credential=AKID\(number)/") == true else {
                return .status(
                    400, body: Array("<Error><Code>ExpiredToken</Code><Message>It has expired.</Message></Error>".utf8))
            }
            if request.path != "/bucket/" { return .ok(Array(request.path.utf8)) }
            let keys = ["a", "b", "c"].map { "<Contents><Key>\($0)</Key><Size>9</Size></Contents>" }.joined()
            return .ok(Array("<ListBucketResult>\(keys)</ListBucketResult>".utf8))
        }
        let home = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: "\(home.path)/.aws", withIntermediateDirectories: true)
        try """
        #!/bin/sh
        echo x >> \(home.path)/calls
        n=$(wc -l < \(home.path)/calls)
        echo '{"Version": 1, "AccessKeyId": "AKID'$n'", "SecretAccessKey": "s", "Expiration": "2099-01-01T00:00:00Z"}'
        """.write(toFile: "\(home.path)/keys", atomically: true, encoding: .utf8)
        chmod("\(home.path)/keys", 0o700)
        try "[default]\ncredential_process = \(home.path)/keys\n".write(
            toFile: "\(home.path)/.aws/config", atomically: true, encoding: .utf8)
        let sandbox = try Sandbox(environment: [
            "AWS_ENDPOINT_URL": server.base, "HOME": home.path, "AWS_EC2_METADATA_DISABLED": "true",
        ])
        try await sandbox.done("get", "-r", "-j", "1", "s3://bucket/", "-d", "out")
        for name in ["a", "b", "c"] { #expect(try sandbox.bytes("out/\(name)") == Array("/bucket/\(name)".utf8)) }
        // A request that was on its way with the old keys may ask once more.
        #expect(
            ["x\nx\nx\n", "x\nx\nx\nx\n"].contains(try String(contentsOfFile: "\(home.path)/calls", encoding: .utf8)))
    }

    @Test("an object that has changed is fetched by the same command, and the options of one file are about it")
    func changedObject() async throws {
        let bucket = try Bucket()
        bucket.objects.withLock { $0 = ["a": [1, 1]] }
        let sandbox = try Sandbox(environment: bucket.environment)
        try await sandbox.done("get", "s3://bucket/a", "-b", "set")
        bucket.objects.withLock { $0["a"] = [7, 7] }
        try await sandbox.done("get", "s3://bucket/a", "-b", "set")
        #expect(try sandbox.bytes("a") == [7, 7] && sandbox.names() == ["a"], "in the current folder, as a URL")
        #expect(try await sandbox.json("info", "s3://bucket/a").text("url") == bucket.server.url("/bucket/a"))
        #expect(try await sandbox.fk("info", "s3://bucket/b").status == 4)
        let named = ["get", "s3://bucket/a", "-d", "sub", "-o", "b"]
        try FileManager.default.createDirectory(
            atPath: "\(sandbox.files)/sub", withIntermediateDirectories: true)
        try sandbox.put("theirs", "sub/b")
        #expect(try await sandbox.fk(named).status == 1)
        #expect(try sandbox.bytes("sub/b") == Array("theirs".utf8))
        let digest = "md5=" + String(repeating: "0", count: 32)
        let wrong = try await sandbox.fk(named + ["--overwrite", "--checksum", digest])
        #expect(wrong.status == 1)
        #expect(try sandbox.bytes("sub/b") == Array("theirs".utf8))
        try await sandbox.done(named + ["--overwrite", "--checksum", "none"])
        #expect(try sandbox.bytes("sub/b") == [7, 7])
        let folder = try await sandbox.fk("get", "s3://bucket/d/")
        #expect(folder.errors.contains("give -r for all of its objects"), "\(folder)")
    }

    @Test("one of several objects that is missing leaves the others alone") func oneMissing() async throws {
        let bucket = try Bucket()
        bucket.objects.withLock { $0 = ["a": [1], "b": [2]] }
        let sandbox = try Sandbox(environment: bucket.environment)
        let result = try await sandbox.fk("get", "s3://bucket/a", "s3://bucket/none", "s3://bucket/b")
        #expect(result.status == 1 && result.errors.contains("has no object 'none'"), "\(result)")
        #expect(try sandbox.bytes("a") == [1] && sandbox.bytes("b") == [2])
    }

    @Test("a release of another tag, whose files have other addresses, is another version of each file")
    func movedNames() async throws {
        let server = try FaultServer()
        let tag = Locked(1)
        server.routeOthers { [base = server.base] request in
            let now = tag.withLock(\.self)
            if request.path.hasPrefix("/dl/") {
                // An earlier release stays.
                return .ok(Array((request.path.hasSuffix("/a") ? request.path : "b").utf8))
            }
            guard request.path.hasPrefix("/repos/o/r/releases") else { return .status(404) }
            // b is the same file at another address.
            let assets = ["a", "b"].map { name in
                let path = "/dl/v\(now)/\(name)"
                let digest = Digester(.sha256)
                Array((name == "a" ? path : "b").utf8).withUnsafeBytes { digest.update($0) }
                return """
                    {"id": \(now), "name": "\(name)", "size": \(name == "a" ? path.utf8.count : 1), "state": "uploaded",
                     "digest": "sha256:\(digest.hex())", "browser_download_url": "\(base)\(path)"}
                    """
            }
            return .ok(
                Array(
                    "{\"id\": \(now), \"tag_name\": \"v\(now)\", \"assets\": [\(assets.joined(separator: ","))]}".utf8),
                headers: ["Content-Type": "application/json"])
        }
        let sandbox = try Sandbox(environment: ["GITHUB_API_URL": server.base, "HOME": "/nonexistent"])
        try await sandbox.done("get", "-r", "gh:o/r")
        for version in 2...3 {
            tag.withLock { $0 = version }
            let again = try await sandbox.fk("get", "-r", "gh:o/r")
            #expect(again.status == 2 && again.errors.contains("fk barrel sync"), "\(again)")
            let dry = try await sandbox.done("barrel", "sync", "r", "--dry-run")
            #expect(dry.output.contains("0 new, 1 changed") && dry.output.contains("1 same"), "\(dry)")
            #expect(try await sandbox.done("barrel", "sync", "r", "--print", "none").output == "changed a\n")
            #expect(String(decoding: try sandbox.bytes("r/a"), as: UTF8.self) == "/dl/v\(version)/a")
            #expect(String(decoding: try sandbox.bytes("r/b"), as: UTF8.self) == "b")
            // In step: nothing is asked for, and the lists have the address of these bytes.
            let count = server.requests.count
            #expect(try await sandbox.done("barrel", "sync", "r").output == "")
            try await sandbox.done("get", "-r", "gh:o/r")
            #expect(server.requests.dropFirst(count).allSatisfy { !$0.path.hasPrefix("/dl/") })
            let lock = try await sandbox.done("barrel", "export", "r", "--format", "lock").output
            #expect(lock.contains("/dl/v\(version)/a") && lock.contains("/dl/v\(version)/b"), "\(lock)")
        }
    }

    private static let moto = """
        import http.client, sys, boto3
        from moto.server import ThreadedMotoServer
        server = ThreadedMotoServer(port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1", aws_access_key_id="A",
                          aws_secret_access_key="B")
        s3.create_bucket(Bucket="many")
        # Signing each request with boto3 takes longer than all the rest.
        signed = "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        for i in range(1050):
            link = http.client.HTTPConnection("127.0.0.1", port)
            link.request("PUT", f"/many/data/k{i:05}", str(i), {"Authorization": signed})
            assert link.getresponse().status == 200
            link.close()
        s3.create_bucket(Bucket="odd")
        for key in ["a b", "p+q", "q?x=1", "h#i", "100%", "50%25", "s;c", "ü", "amp&lt<", "d/", "d/sub/f", "../evil", "t\\tx"]:
            s3.put_object(Bucket="odd", Key=key, Body=b"" if key.endswith("/") else key.encode())
        print(port, flush=True)
        sys.stdin.read()
        """

    @Test(
        "S3 as moto has it: 1,050 keys over two pages, and odd keys",
        .enabled("moto is not installed here") { MotoServer.isInstalled })
    func moto() async throws {
        let moto = try MotoServer(Self.moto)
        let sandbox = try Sandbox(environment: [
            "AWS_ENDPOINT_URL": "http://127.0.0.1:\(moto.port)", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B",
            "HOME": "/nonexistent",
        ])
        try await sandbox.done("get", "-r", "s3://many/data", "-d", "many", "-q")
        let many = tree("\(sandbox.files)/many")
        #expect(many.count == 1_050 && many["k01049"] == Array("1049".utf8))
        let odd = try await sandbox.fk("get", "-r", "s3://odd", "-d", "odd", "-q")
        #expect(odd.status == 1 && odd.errors.contains("'..'"))
        let names = ["a b", "p+q", "q?x=1", "h#i", "100%", "50%25", "s;c", "ü", "amp&lt<", "d/sub/f", "t\tx"]
        #expect(tree("\(sandbox.files)/odd") == Dictionary(uniqueKeysWithValues: names.map { ($0, Array($0.utf8)) }))
    }

    // MARK: Registries

    /// A registry that wants a token, and sends its blobs from another server.
    private final class Registry: Sendable {
        let server: FaultServer
        let storage: FaultServer
        private let tokens = Locked(0)

        /// - Parameter login: what the server of the tokens wants as `Authorization`; nil for nothing.
        init(_ manifest: String, blobs: [[UInt8]], usesOfToken: Int = .max, login: String? = nil) throws {
            server = try FaultServer()
            storage = try FaultServer()
            let uses = Locked<[String: Int]>([:])
            let (base, blobBase) = (server.base, storage.base)
            server.routeOthers { [tokens] request in
                if request.path == "/token" {
                    guard login == nil || request["Authorization"] == login else { return .status(401) }
                    let number = tokens.withLock { count in
                        count += 1
                        return count
                    }
                    return .ok(Array("{\"token\":\"regtoken\(number)\",\"expires_in\":300}".utf8))
                }
                let token = request["Authorization"] ?? ""
                let isKnown = token == "Bearer regtoken\(tokens.withLock { $0 })"
                let isFresh = uses.withLock { uses in
                    uses[token, default: 0] += 1
                    return uses[token, default: 0] <= usesOfToken
                }
                guard isKnown, isFresh else {
                    return .status(401, headers: ["WWW-Authenticate": "Bearer realm=\"\(base)/token\",service=\"r\""])
                }
                if request.path.contains("/blobs/") {
                    return .redirect(to: "\(blobBase)\(request.path)?sig=x", status: 307)
                }
                return .ok(
                    Array(manifest.utf8), headers: ["Content-Type": "application/vnd.oci.image.manifest.v1+json"])
            }
            for blob in blobs { add(blob) }
        }

        func add(_ blob: [UInt8]) {
            let digester = Digester(.sha256)
            blob.withUnsafeBytes { digester.update($0) }
            storage.route("/v2/o/r/blobs/sha256:\(digester.hex())") { .ranged(blob, for: $0, etag: nil) }
        }

        var name: String { String(server.base.dropFirst("http://".count)) }

        static func entry(_ bytes: [UInt8], title: String? = nil) -> String {
            let digester = Digester(.sha256)
            bytes.withUnsafeBytes { digester.update($0) }
            let notes = title.map { ",\"annotations\":{\"org.opencontainers.image.title\":\"\($0)\"}" } ?? ""
            return
                "{\"mediaType\":\"application/octet-stream\",\"digest\":\"sha256:\(digester.hex())\",\"size\":\(bytes.count)\(notes)}"
        }
    }

    private static let blob = Bytes.pattern(count: 2_000_000)

    private static func manifest() -> String {
        "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":\(Registry.entry([0x7b, 0x7d])),"
            + "\"layers\":[\(Registry.entry(blob, title: "sub/model.bin"))]}"
    }

    @Test(
        "an artifact: its title, a token that ends, blobs on another server without the token", arguments: [Int.max, 1])
    func artifact(usesOfToken: Int) async throws {
        let registry = try Registry(Self.manifest(), blobs: [[0x7b, 0x7d], Self.blob], usesOfToken: usesOfToken)
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        try await sandbox.done("get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "out")
        #expect(tree("\(sandbox.files)/out") == ["sub/model.bin": Self.blob])
        #expect(
            registry.storage.requests.count >= 1 && registry.storage.requests.allSatisfy { $0["Authorization"] == nil })
        #expect(!String(decoding: stored(sandbox), as: UTF8.self).contains("regtoken"))
    }

    @Test("--user of a registry that wants tokens goes to the server of the tokens") func user() async throws {
        let registry = try Registry(Self.manifest(), blobs: [[0x7b, 0x7d], Self.blob], login: "Basic dTpw")
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        try await sandbox.done("get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "out", "--user", "u:p")
        #expect(tree("\(sandbox.files)/out") == ["sub/model.bin": Self.blob])
        #expect(registry.storage.requests.allSatisfy { $0["Authorization"] == nil })
        let wrong = try await sandbox.fk(
            "get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "other", "-b", "other", "--user", "u:q")
        #expect(wrong.status == 1 && wrong.errors.contains("refuses the login for o/r"), "\(wrong.errors)")
    }

    @Test("a damaged blob is an error, and gets no name") func damaged() async throws {
        let registry = try Registry(Self.manifest(), blobs: [[0x7b, 0x7d]])
        let digester = Digester(.sha256)
        Self.blob.withUnsafeBytes { digester.update($0) }
        var wrong = Self.blob
        wrong[1_000_000] ^= 1
        registry.storage.route("/v2/o/r/blobs/sha256:\(digester.hex())") { [wrong] in .ranged(wrong, for: $0, etag: nil)
        }
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        let result = try await sandbox.fk("get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "out", "--retry", "0")
        #expect(result.status == 1 && !sandbox.exists("out/sub/model.bin"))
    }

    @Test("--layout oci: the index names an image when its last blob is there") func layoutIndex() async throws {
        let registry = try Registry(Self.manifest(), blobs: [[0x7b, 0x7d]])
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        try FileManager.default.createDirectory(
            atPath: "\(sandbox.files)/out", withIntermediateDirectories: true)
        let old = "{\"schemaVersion\":2,\"manifests\":[]}"
        try sandbox.put(old, "out/index.json")
        let words = [
            "get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "out", "--layout", "oci", "--retry", "0",
        ]
        #expect(try await sandbox.fk(words).status == 1, "a blob is missing")
        #expect(try sandbox.bytes("out/index.json") == Array(old.utf8))
        registry.add(Self.blob)
        try await sandbox.done("barrel", "retry", "r")
        try await sandbox.done("barrel", "run", "r")
        let new = String(decoding: try sandbox.bytes("out/index.json"), as: UTF8.self)
        #expect(new.contains("\"org.opencontainers.image.ref.name\":\"v1\"") && new.contains("image.manifest.v1+json"))
    }

    @Test("--layout oci: blobs, manifest and index; a dry run writes nothing") func layout() async throws {
        let registry = try Registry(Self.manifest(), blobs: [[0x7b, 0x7d], Self.blob])
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        let words = ["get", "-r", "oci:\(registry.name)/o/r:v1", "-d", "out", "--layout", "oci"]
        let dry = try await sandbox.done(words + ["--dry-run"])
        #expect(dry.output.contains("3 new") && !sandbox.exists("out"))
        try await sandbox.done(words)
        let files = tree("\(sandbox.files)/out")
        #expect(files.count == 5 && files["oci-layout"] == Array("{\"imageLayoutVersion\":\"1.0.0\"}\n".utf8))
        #expect(
            String(decoding: files["index.json"] ?? [], as: UTF8.self).contains(
                "\"org.opencontainers.image.ref.name\":\"v1\""))
        #expect(files.values.contains(Array(Self.manifest().utf8)) && files.values.contains(Self.blob))
        let wrong = try await sandbox.fk("get", "-r", "s3://bucket", "--layout", "oci")
        #expect(wrong.status == 2 && wrong.errors.contains("--layout oci is about an artifact"))
    }

    @Test(
        "an image of a real registry for two platforms, as skopeo reads it back",
        .enabled("docker-registry and skopeo are not installed here") {
            Program.find("docker-registry") != nil && Program.find("skopeo") != nil && Program.find("python3") != nil
        })
    func realRegistry() async throws {
        let registry = try DockerRegistry()
        let sandbox = try Sandbox(environment: ["HOME": "/nonexistent"])
        for platform in ["linux/amd64", "linux/arm64"] {
            let processor = String(platform.dropFirst(6))
            try await sandbox.done(
                "get", "-r", "oci:127.0.0.1:\(registry.port)/team/hello:1", "-d", processor, "-b", processor,
                "--platform", platform, "--layout",
                "oci", "-q")
            let shown = try Program.run("skopeo", ["inspect", "oci:\(sandbox.files)/\(processor):1"])
            #expect(shown.contains("\"Architecture\": \"\(processor)\""))
            try Program.run(
                "skopeo", ["copy", "oci:\(sandbox.files)/\(processor):1", "dir:\(sandbox.files)/copied-\(processor)"])
        }
        let other = try await sandbox.fk(
            "get", "-r", "oci:127.0.0.1:\(registry.port)/team/hello:1", "-d", "x", "-b", "x", "--platform",
            "linux/s390x")
        #expect(other.status != 0 && other.errors.contains("linux/amd64, linux/arm64"))
    }

    // MARK: Releases

    @Test("a release with digests; a private one by its token, which goes to the API alone") func release() async throws
    {
        let (api, storage) = (try FaultServer(), try FaultServer())
        let bytes = Bytes.pattern(count: 50_000)
        let digester = Digester(.sha256)
        bytes.withUnsafeBytes { digester.update($0) }
        let hex = digester.hex()
        let base = api.base
        api.routeOthers { request in
            guard request["Authorization"] == "Bearer releasetoken" else { return .status(404) }
            switch request.path {
            case "/repos/o/r": return .ok(Array(#"{"private":true}"#.utf8))
            case "/repos/o/r/releases/latest":
                return .ok(
                    Array(
                        """
                        {"tag_name":"v1","prerelease":false,"assets":[{"name":"a.bin","state":"uploaded","size":50000,\
                        "digest":"sha256:\(hex)","url":"\(base)/repos/o/r/releases/assets/1","browser_download_url":"\(base)/dl/a.bin"}]}
                        """.utf8))
            default:
                return request["Accept"] == "application/octet-stream"
                    ? .redirect(to: "\(storage.base)/a.bin") : .status(415)
            }
        }
        storage.route("/a.bin") { .ranged(bytes, for: $0, etag: nil) }
        let sandbox = try Sandbox(environment: ["GITHUB_API_URL": api.base, "GH_TOKEN": "releasetoken"])
        try await sandbox.done("get", "-r", "gh:o/r")
        #expect(try sandbox.bytes("r/a.bin") == bytes)
        #expect(storage.requests.allSatisfy { $0["Authorization"] == nil })
        #expect(!String(decoding: stored(sandbox), as: UTF8.self).contains("releasetoken"))
        let without = try Sandbox(environment: ["GITHUB_API_URL": api.base])
        let refused = try await without.fk("get", "-r", "gh:o/r@v1")
        #expect(refused.status == 1 && refused.errors.contains("gh:o/r@v1") && refused.errors.contains("GH_TOKEN"))
    }

    // MARK: Programs

    @Test(
        "a signal ends a program that lists, with its children, and fk says how to go on", arguments: [SIGINT, SIGTERM])
    func stoppedListing(signal: Int32) async throws {
        let sandbox = try Sandbox()
        // Its writers are the program and its child.
        let pipe = "\(sandbox.files)/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let end = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(end) }
        _ = try Program.writeScript(
            "#!/bin/sh\nexec 3> pipe\necho x >&3\nsleep 1000\n", to: "\(sandbox.files)/list.sh")
        try await sandbox.done("source", "add", "lab", "./list.sh")
        let running = try sandbox.start("get", "-r", "lab:x")
        var bytes: UInt16 = 0
        let hasBegun = try await eventually { read(end, &bytes, 2) == 2 ? true : nil }
        #expect(hasBegun == true)
        running.signal(signal)
        let result = await running.end()
        #expect(result.status == 128 + signal && result.errors.contains("Go on with the same command"), "\(result)")
        let hasEnded = try await eventually { read(end, &bytes, 2) == 0 ? true : nil }
        #expect(hasEnded == true)
    }

    @Test("a file whose address has changed is its member, finished or not, whatever asks first") func movedAddress()
        async throws
    {
        let server = try FaultServer()
        server.routeOthers { .ok(Array($0.path.utf8)) }
        let sandbox = try Sandbox()
        func list(_ version: Int) throws {
            _ = try Program.writeScript(
                "#!/bin/sh\necho '{\"url\":\"\(server.base)/v\(version)/f\",\"name\":\"f\",\"version\":\"\(version)\"}'\n",
                to: "\(sandbox.files)/list.sh")
        }
        try list(1)
        try await sandbox.done("source", "add", "lab", "./list.sh")
        let loose = try await sandbox.fk("get", "lab:x")
        #expect(loose.status == 2 && loose.errors.contains("lab:x stands for several files"), "\(loose)")
        try await sandbox.done("get", "-r", "lab:x", "-b", "done", "-d", "done")
        try await sandbox.done("barrel", "import", "waits", "lab:x", "-d", "waits")
        try list(2)
        let again = try await sandbox.done("get", "-r", "lab:x", "-b", "done", "-d", "done")
        #expect(again.errors.contains("another version at the source now"), "\(again)")
        #expect(try sandbox.bytes("done/f") == Array("/v1/f".utf8))
        try await sandbox.done("get", "-r", "lab:x", "-b", "waits", "-d", "waits")
        #expect(try sandbox.bytes("waits/f") == Array("/v2/f".utf8))
        for name in ["done", "waits"] {
            try await sandbox.done("barrel", "sync", name, "--delete", "--yes", "--max-delete", "100%")
            #expect(try sandbox.bytes("\(name)/f") == Array("/v2/f".utf8))
            #expect(try await sandbox.done("barrel", "show", name).output.contains("1 of 1 complete"))
            #expect(try await sandbox.done("barrel", "sync", name).output == "")
        }
        // One that was never started, by sync.
        try await sandbox.done("barrel", "import", "late", "lab:x", "-d", "late")
        try list(3)
        try await sandbox.done("barrel", "sync", "late")
        #expect(try sandbox.bytes("late/f") == Array("/v3/f".utf8))
    }

    @Test("a program's files get a plain header field, and it is said that a login goes to none of them")
    func programLogin() async throws {
        let server = try FaultServer()
        server.route("/a.bin") { .ranged(Array("bytes".utf8), for: $0, etag: nil) }
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.files, withIntermediateDirectories: true)
        _ = try Program.writeScript(
            "#!/bin/sh\necho '{\"url\":\"\(server.base)/a.bin\"}'\n", to: "\(sandbox.files)/list.sh")
        try await sandbox.done("source", "add", "lab", "./list.sh")
        let result = try await sandbox.done("get", "-r", "lab:run", "-H", "X-Foo: bar", "--user", "a:b")
        #expect(
            result.errors.contains("sent to none of them: a login or header field (--user, -H)."), "\(result.errors)")
        #expect(!server.requests.isEmpty)
        #expect(server.requests.allSatisfy { $0["X-Foo"] == "bar" && $0["Authorization"] == nil })
    }

    @Test("fk source: add, list, test, fetch, remove") func program() async throws {
        let server = try FaultServer()
        server.route("/a.bin") { .ranged(Array("bytes".utf8), for: $0, etag: nil) }
        let sandbox = try Sandbox()
        try FileManager.default.createDirectory(atPath: sandbox.files, withIntermediateDirectories: true)
        _ = try Program.writeScript(
            "#!/bin/sh\necho '{\"url\":\"\(server.base)/a.bin\",\"name\":\"x/a.bin\",\"size\":5}'\necho '{\"version\":\"7\"}'\n",
            to: "\(sandbox.files)/list.sh")
        #expect(try await sandbox.fk("source", "list").errors.contains("No source programs"))
        #expect(try await sandbox.done("source", "add", "lab", "./list.sh", "--", "-v").output == "lab added\n")
        #expect(
            try await sandbox.done("source", "add", "lab", "./list.sh", "--", "-v").output == "lab is there already\n")
        let list = try await sandbox.json("source", "list").array
        #expect(list.map { $0.text("scheme") } == ["lab"] && list[0]["trusted"] as? Bool == true)
        #expect(list[0]["program"] as? [String] == ["\(sandbox.files)/list.sh", "-v"])
        let test = try await sandbox.done("source", "test", "lab:run")
        #expect(test.output == "5 x/a.bin \(server.base)/a.bin\n" && test.errors.contains("1 file, 5 B, version 7"))
        #expect(server.requests.isEmpty)
        try await sandbox.done("get", "-r", "lab:run")
        #expect(try sandbox.bytes("run/x/a.bin") == Array("bytes".utf8))
        let unknown = try await sandbox.fk("get", "-r", "other:run")
        #expect(unknown.status == 2 && unknown.errors.contains("lab, ") && unknown.errors.contains("s3"))
        let taken = try await sandbox.fk("source", "add", "s3", "./list.sh")
        #expect(taken.status == 2 && taken.errors.contains("has a source already"))
        #expect(try await sandbox.done("source", "remove", "lab").output == "lab removed\n")
        #expect(try await sandbox.fk("source", "remove", "lab").status == 4)
    }
}

/// A mock of AWS in a process of its own. The script prints the port.
private final class MotoServer: Sendable {
    static let isInstalled: Bool = {
        guard let python = Program.find("python3") else { return false }
        return (try? ChildProcess([python, "-c", "import moto.server, boto3"]).end()) == 0
    }()

    let port: Int
    private let child: ChildProcess
    private let input: Int32

    init(_ script: String) throws {
        let python = try #require(Program.find("python3"))
        let (read, write) = try Self.pipe()
        let (inputRead, inputWrite) = try Self.pipe()
        defer { for end in [read, inputRead] { close(end) } }
        child = try ChildProcess(
            [python, "-c", script], input: .descriptor(inputRead), output: .descriptor(write), errors: .null)
        close(write)
        input = inputWrite
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while Foundation.read(read, &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        port = try #require(Int(String(decoding: line, as: UTF8.self)))
    }

    private static func pipe() throws -> (Int32, Int32) {
        var ends: [Int32] = [0, 0]
        try #require(Foundation.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    deinit {
        kill(child.pid, SIGKILL)
        close(input)
        child.end()
    }
}

/// Docker's registry in a process of its own, with the image `team/hello:1` for two platforms.
private final class DockerRegistry: Sendable {
    let port: Int
    private let child: ChildProcess
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        let script = """
            import gzip, hashlib, io, json, os, socket, sys, tarfile
            root = sys.argv[1]
            os.makedirs(root + "/blobs/sha256")
            def put(data):
                name = hashlib.sha256(data).hexdigest()
                open(f"{root}/blobs/sha256/{name}", "wb").write(data)
                return {"digest": "sha256:" + name, "size": len(data)}
            kind = "application/vnd.oci.image."
            entries = []
            for processor in ["amd64", "arm64"]:
                text = f"hello {processor}\\n".encode() * 50000
                tar = io.BytesIO()
                with tarfile.open(fileobj=tar, mode="w") as file:
                    info = tarfile.TarInfo("hello"); info.size = len(text)
                    file.addfile(info, io.BytesIO(text))
                plain = tar.getvalue()
                layer = put(gzip.compress(plain, mtime=0)) | {"mediaType": kind + "layer.v1.tar+gzip"}
                config = put(json.dumps({"architecture": processor, "os": "linux", "config": {}, "rootfs": {
                    "type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]}}).encode())
                manifest = put(json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "layers": [layer],
                    "config": config | {"mediaType": kind + "config.v1+json"}}).encode())
                entries.append(manifest | {"mediaType": kind + "manifest.v1+json", "platform": {"architecture": processor, "os": "linux"}})
            index = put(json.dumps({"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": entries}).encode())
            index |= {"mediaType": kind + "index.v1+json", "annotations": {"org.opencontainers.image.ref.name": "1"}}
            open(root + "/oci-layout", "w").write('{"imageLayoutVersion": "1.0.0"}')
            open(root + "/index.json", "w").write(json.dumps({"schemaVersion": 2, "manifests": [index]}))
            free = socket.socket(); free.bind(("127.0.0.1", 0)); port = free.getsockname()[1]; free.close()
            open(root + "/port", "w").write(str(port))
            """
        let layout = folder.file("layout").path
        try Program.run("python3", ["-c", script, layout])
        port = try #require(Int(String(decoding: try folder.read("layout/port"), as: UTF8.self)))
        try folder.write(
            Array(
                """
                version: 0.1
                storage:
                  filesystem:
                    rootdirectory: \(folder.file("storage").path)
                http:
                  addr: 127.0.0.1:\(port)

                """.utf8), to: "config.yml")
        let registry = try #require(Program.find("docker-registry"))
        child = try ChildProcess([registry, "serve", folder.file("config.yml").path])
        // skopeo tries again until the registry answers.
        try Program.run(
            "skopeo",
            [
                "copy", "--all", "--dest-tls-verify=false", "--retry-times", "8", "oci:\(layout):1",
                "docker://127.0.0.1:\(port)/team/hello:1",
            ])
    }

    deinit {
        kill(child.pid, SIGKILL)
        child.end()
    }
}
