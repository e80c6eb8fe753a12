import TestSupport
import Testing

@testable import fk

/// Repositories of a Hugging Face hub, with the hub's own client as the oracle.
@Suite("Hub, end to end") struct HubCommandTests {
    private static let files: [FakeHub.File] = [
        .init(".gitattributes", Array("*.bin filter=lfs\n".utf8)), .init("README.md", Array("# Model\n".utf8)),
        .init("config.json", Array("{}".utf8)),
        .init("model.safetensors", Bytes.pattern(count: 600_000), isLarge: true),
        .init("sub/part 1.safetensors", Bytes.pattern(count: 70_000, seed: 2), isLarge: true),
        .init("sub/deep/notes-ü.txt", Array("notes".utf8)), .init("empty.txt", []),
    ]

    private func sandbox(_ hub: FakeHub, _ more: [String: String] = [:]) throws -> Sandbox {
        try Sandbox(environment: ["HF_ENDPOINT": hub.endpoint, "HF_HOME": "/nowhere"].merging(more) { $1 })
    }

    /// All files below a folder with their bytes, without the records of the hub's client.
    private func tree(_ folder: String) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        let names = FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []
        for name in names where !name.hasPrefix(".cache") {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: "\(folder)/\(name)", isDirectory: &isFolder)
            if !isFolder.boolValue {
                files[name] = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
            }
        }
        return files
    }

    @Test(
        "The same files as the hub's own client makes, for the same patterns",
        .enabled(if: PythonModule.hub.isInstalled, "see .ci/needs"),
        arguments: [
            ([], []), (["*.safetensors"], []), ([], ["*.safetensors", "*.md"]), (["sub/"], []), (["*"], ["sub/*"]),
            (["[!.]*"], ["*[0-9].*"]), (["*.txt", "config.json"], ["empty*"]),
        ] as [([String], [String])])
    func oracle(include: [String], exclude: [String]) async throws {
        for repository in ["owner/repo", "datasets/owner/repo"] {
            let hub = try FakeHub(Self.files, repository: repository)
            let sandbox = try sandbox(hub)
            let patterns = include.flatMap { ["--include", $0] } + exclude.flatMap { ["--exclude", $0] }
            let words = ["barrel", "import", "model", "hf:\(repository)", "-d", "ours"] + patterns
            try await sandbox.done(words)
            try await sandbox.done("barrel", "run", "model")
            let theirs = try await HubOracle.run(
                HubOracle.script, [repository] + include.map { "+\($0)" } + exclude.map { "-\($0)" },
                environment: [
                    "HF_ENDPOINT": hub.endpoint, "HF_HOME": "\(sandbox.folder.path)/hf", "HF_HUB_DISABLE_XET": "1",
                ], in: sandbox.files)
            #expect(theirs.status == 0, "\(theirs.errors.suffix(600))")
            let ours = try tree("\(sandbox.files)/ours")
            #expect(ours == (try tree("\(sandbox.files)/theirs")) && !ours.isEmpty)
            let shown = try await sandbox.json("barrel", "show", "model")
            #expect(shown.text("origin") == "hf:\(repository)" && shown.text("commit") == FakeHub.commit)
        }
    }

    @Test(
        "--layout hub: the hub's own client finds the files offline",
        .enabled(if: PythonModule.hub.isInstalled, "see .ci/needs"),
        arguments: ["owner/repo", "datasets/owner/repo"])
    func layout(repository: String) async throws {
        let hub = try FakeHub(Self.files + [.init("copy.json", Array("{}".utf8))], repository: repository)
        let sandbox = try sandbox(hub)
        let words = ["barrel", "import", "model", "hf:\(repository)", "-d", "cache", "--layout", "hub"]
        try await sandbox.done(words)
        func offline(_ script: String) async throws -> FKProgram.Output {
            try await HubOracle.run(
                script, [repository],
                environment: ["HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": "\(sandbox.files)/cache"], in: sandbox.files)
        }
        #expect(try await offline(HubOracle.file).output == "absent\n", "before the bytes are there")
        try await sandbox.done("barrel", "run", "model")
        #expect(try await offline(HubOracle.file).output == "{}\n")
        let theirs = try await offline(HubOracle.snapshot)
        #expect(theirs.status == 0, "\(theirs.errors.suffix(600))")
        let snapshot = theirs.output.trimmingCharacters(in: .newlines)
        for file in Self.files + [.init("copy.json", Array("{}".utf8))] {
            #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(snapshot)/\(file.path)"))) == file.bytes)
        }
        // The same commit again changes nothing, a reference to an earlier one moves, and what is none is not replaced.
        try await sandbox.done(words)
        let kind = repository.hasPrefix("datasets/") ? "datasets" : "models"
        let reference = "cache/\(kind)--owner--repo/refs/main"
        try sandbox.put(String(repeating: "b", count: 40), reference)
        try await sandbox.done(words)
        #expect(try sandbox.bytes(reference) == Array(FakeHub.commit.utf8))
        try sandbox.put("another", reference)
        let other = try await sandbox.fk(words)
        #expect(other.status == 1 && other.errors.contains("refs/main names no commit"), "\(other)")
        #expect(try sandbox.bytes(reference) == Array("another".utf8))
    }

    @Test("--layout hub: a blob that another commit has fetched is the file") func sharedBlob() async throws {
        let hub = try FakeHub(Self.files)
        let sandbox = try sandbox(hub)
        let words = ["barrel", "import", "model", "hf:owner/repo", "-d", "cache", "--layout", "hub"]
        try await sandbox.done(words)
        try await sandbox.done("barrel", "run", "model")
        // The files stay and belong to no task, like those of another commit.
        try await sandbox.done("forget", "--all")
        try await sandbox.done(words)
        try await sandbox.done("barrel", "run", "model")
        try await sandbox.done("barrel", "missing", "model")
        withExtendedLifetime(hub) {}
    }

    @Test("The token goes to the hub alone, and stays nowhere") func token() async throws {
        let hub = try FakeHub(Self.files, token: "hf_secret123")
        let without = try await sandbox(hub).fk("barrel", "import", "model", "hf:owner/repo")
        #expect(without.status == 1 && without.errors.contains("HF_TOKEN"), "\(without)")
        let sandbox = try sandbox(hub, ["HF_TOKEN": "hf_secret123"])
        try await sandbox.done("barrel", "import", "model", "hf:owner/repo")
        try await sandbox.done("barrel", "run", "model")
        #expect(hub.tokensAtStorage.isEmpty && !hub.storage.requests.isEmpty)
        for (_, bytes) in try tree(sandbox.folder.path) {
            #expect(bytes.firstRange(of: Array("hf_secret123".utf8)) == nil)
        }
        // Another process runs the downloads: the command with the token says at once that the other has none.
        let (gate, server) = (Gate(), try FaultServer())
        server.serve("/f", Bytes.pattern(count: 400_000), stallingAt: 300_000, gate)
        let run = try sandbox.start(["get", server.url("/f")], environment: ["HF_TOKEN": ""])
        #expect(try await sandbox.record(server.url("/f")) { $0.received > 0 } != nil)
        let told = try await sandbox.fk("barrel", "import", "other", "hf:owner/repo", "-d", "other")
        #expect(
            told.errors.contains("uses the credentials of its own environment, not this HF_TOKEN."), "\(told.errors)")
        #expect(!told.errors.contains("hf_secret123"))
        gate.open()
        _ = await run.end()
        // The members have the digests of the hub: LFS has SHA-256, others git's id.
        let sums = try await sandbox.json("barrel", "show", "model").array("members").compactMap { $0.text("checksum") }
        #expect(sums.count { $0.hasPrefix("sha-256=") } == 2 && sums.count { $0.hasPrefix("git-blob-sha-1=") } == 5)
    }

    @Test("A link that expires is asked for anew at every attempt, and the bytes stay") func expiringLinks()
        async throws
    {
        let hub = try FakeHub(Self.files, usesOfLink: 1)
        let file = Self.files[3]
        let sha = Bytes.sha256(file.bytes)
        let uses = Observed<[String]>([])
        hub.storage.route("/lfs/\(sha)") { request in
            let isFirst = uses.update { uses in
                defer { uses.append(request.query) }
                return !uses.contains(request.query)
            }
            guard isFirst else { return .status(403, body: Array("Request has expired".utf8)) }
            let answer = FaultResponse.ranged(file.bytes, for: request, etag: "\"v\"")
            return request["Range"] == nil ? answer.cut(at: 200_000) : answer
        }
        let sandbox = try sandbox(hub)
        try await sandbox.done("barrel", "import", "m", "hf:owner/repo@main", "--include", "model.*")
        try await sandbox.done("barrel", "run", "m", "-x", "1")
        #expect(try sandbox.bytes("m/model.safetensors") == file.bytes)
        let ranges = hub.storage.requests("/lfs/\(sha)").compactMap { $0["Range"] }
        #expect(!ranges.isEmpty && Set(uses.value).count == uses.value.count)
    }

    @Test("Bytes with another digest get no name: neither of LFS nor of git") func damaged() async throws {
        let hub = try FakeHub(Self.files)
        hub.storage.route("/lfs/\(Bytes.sha256(Self.files[3].bytes))") { _ in
            .ok(Bytes.pattern(count: 600_000, seed: 9))
        }
        hub.server.route("/owner/repo/resolve/\(FakeHub.commit)/config.json") { _ in .ok(Array("[]".utf8)) }
        let sandbox = try sandbox(hub)
        _ = try await sandbox.fk(
            "barrel", "import", "m", "hf:owner/repo", "--include", "model.*", "--include", "config.json", "--include",
            "*.md")
        let run = try await sandbox.fk("barrel", "run", "m")
        #expect(run.status == 1 && run.errors.contains("sha-256 is") && run.errors.contains("git-blob-sha-1 is"))
        #expect(
            !sandbox.exists("m/model.safetensors") && !sandbox.exists("m/config.json") && sandbox.exists("m/README.md"))
    }

    @Test("The same commit is imported again without a change; another one is refused; a lock pins it") func again()
        async throws
    {
        let hub = try FakeHub(Self.files)
        let sandbox = try sandbox(hub)
        try await sandbox.done("barrel", "import", "m", "hf:owner/repo")
        let again = try await sandbox.fk("barrel", "import", "m", "hf:owner/repo")
        #expect(again.status == 0 && again.output.contains("0 added, 7 known already"))
        hub.server.route("/api/models/owner/repo/revision/main") { _ in
            .ok(Array("{\"sha\":\"\(String(repeating: "f", count: 40))\"}".utf8))
        }
        hub.server.route("/api/models/owner/repo/tree/\(String(repeating: "f", count: 40))") { _ in
            .ok(
                Array(
                    "[{\"type\":\"file\",\"path\":\"x\",\"size\":1,\"oid\":\"\(String(repeating: "1", count: 40))\"}]"
                        .utf8))
        }
        let other = try await sandbox.fk("barrel", "import", "m", "hf:owner/repo")
        #expect(other.status == 2 && other.errors.contains(FakeHub.commit), "\(other)")
        try await sandbox.done("barrel", "run", "m")
        let lock = try await sandbox.fk("barrel", "export", "m", "--format", "lock").output
        #expect(
            lock.hasPrefix(
                "{\"fk-lock\":1,\"barrel\":\"m\",\"origin\":\"hf:owner/repo\",\"commit\":\"\(FakeHub.commit)\"}"))
        #expect(lock.split(separator: "\n").count == 8 && lock.contains("\"sha-256\""))
    }

    @Test("A hub that pages for ever, in a circle, or to another host is a clear error")
    func endless() async throws {
        let pages = Observed(0)
        for (next, reason) in [
            ("self", "names only files of earlier pages"), ("empty", "its pages have no files any more"),
            ("http://127.0.0.2:1/x", "at another host"),
        ] {
            let server = try FaultServer()
            server.route("/api/models/o/r/revision/main") { _ in .ok(Array("{\"sha\":\"\(FakeHub.commit)\"}".utf8)) }
            let file = "{\"type\":\"file\",\"path\":\"x\",\"size\":1,\"oid\":\"\(String(repeating: "1", count: 40))\"}"
            server.route("/api/models/o/r/tree/\(FakeHub.commit)") { request in
                pages.update { $0 += 1 }
                let target = next.hasPrefix("http") ? next : "\(server.base)\(request.path)?cursor=\(request.index)"
                return .ok(Array((next == "empty" ? "[]" : "[\(file)]").utf8)).adding(
                    "Link", "<\(target)>; rel=\"next\"")
            }
            let sandbox = try Sandbox(environment: ["HF_ENDPOINT": server.base, "HF_HOME": "/nowhere"])
            let result = try await sandbox.fk("barrel", "import", "m", "hf:o/r")
            #expect(result.status == 1 && result.errors.contains(reason), "\(result)")
        }
        #expect(pages.value < 300)
    }
}

/// The hub's own client, which says what the files should be.
private enum HubOracle {
    /// `snapshot_download` into the folder `theirs`; patterns begin with `+` or `-`.
    static let script = """
        import sys
        from huggingface_hub import snapshot_download
        name = sys.argv[1]
        allow = [a[1:] for a in sys.argv[2:] if a[0] == "+"] or None
        ignore = [a[1:] for a in sys.argv[2:] if a[0] == "-"] or None
        kind = "dataset" if name.startswith("datasets/") else "model"
        snapshot_download(name.removeprefix("datasets/"), repo_type=kind, local_dir="theirs",
                          allow_patterns=allow, ignore_patterns=ignore, token=False)
        """

    /// `hf_hub_download` of a file in the cache.
    static let file = """
        import sys
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError
        name = sys.argv[1]
        kind = "dataset" if name.startswith("datasets/") else "model"
        try:
            print(open(hf_hub_download(name.removeprefix("datasets/"), "config.json", repo_type=kind)).read())
        except LocalEntryNotFoundError:
            print("absent")
        """

    /// `snapshot_download` of the cache; prints its folder.
    static let snapshot = """
        import sys
        from huggingface_hub import snapshot_download
        name = sys.argv[1]
        kind = "dataset" if name.startswith("datasets/") else "model"
        print(snapshot_download(name.removeprefix("datasets/"), repo_type=kind, local_files_only=True))
        """

    /// Runs a script with `huggingface_hub`.
    static func run(
        _ script: String, _ arguments: [String], environment: [String: String], in folder: String
    ) async throws -> FKProgram.Output {
        let own = PythonModule.hub.environment.merging(["HF_HUB_DISABLE_TELEMETRY": "1"]) { $1 }
        return try await FKProgram.run(
            try #require(Tool.path("python3")), ["-c", script] + arguments,
            environment: own.merging(environment) { $1 }, folder: folder)
    }
}
