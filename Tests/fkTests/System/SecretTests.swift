import TestSupport
import Testing

@testable import fk

/// A canary in every place where a secret may stand appears nowhere but in
/// the first request and in files of mode 0600.
@Suite("Secrets")
struct SecretTests {
    private let sandbox: Sandbox
    private let first: FaultServer
    private let second: FaultServer
    private let body = Bytes.pattern(count: 300_000)

    init() throws {
        sandbox = try Sandbox()
        first = try FaultServer()
        second = try FaultServer()
    }

    /// All of them begin with the same word, which is in no other test.
    private let canary = "canary-\(UUID().uuidString)"
    private var words: [String] {
        [
            "-H", "X-Api-Key: \(canary)-header", "-H", "Authorization: Bearer \(canary)-token", "-H",
            "Cookie: session=\(canary)-cookie",
        ]
    }
    private func url(_ path: String) -> String {
        "http://user:\(canary)-password@127.0.0.1:\(first.port)\(path)?sig=\(canary)-query&x=1"
    }

    private func expectSilent(_ text: String, _ what: String) {
        #expect(!text.contains(canary), "\(what): \(text.prefix(2_000))")
        // The login as the Authorization field would have it.
        let login = Data("user:\(canary)-password".utf8).base64EncodedString()
        #expect(!text.contains(login), "\(what)")
    }

    /// What stands in a file, read as Latin-1, so that nothing is passed over.
    private func text(_ path: String) -> String {
        String(decoding: (FileManager.default.contents(atPath: path) ?? Data()).map { UInt16($0) }, as: UTF16.self)
    }

    /// Asks everything that `fk` can be asked.
    private func expectSilentQueries(_ url: String) async throws {
        for words in [
            ["list"], ["list", "--json"], ["info", url], ["info", url, "--json"], ["why", url], ["why", url, "--json"],
            ["barrel", "list"], ["barrel", "show", "set"], ["barrel", "show", "set", "--json"], ["config", "show"],
        ] {
            let result = try await sandbox.fk(words)
            expectSilent(result.output + result.errors, "\(words.prefix(2))")
        }
    }

    /// Nothing in the files but in the task's own record and barrel, which nobody else can read.
    private func expectSilentFiles(_ id: String) throws {
        let entries = try #require(FileManager.default.enumerator(atPath: sandbox.folder.path))
        for case let name as String in entries {
            expectSilent(name, "a file's name")
            guard entries.fileAttributes?[.type] as? FileAttributeType == .typeRegular else { continue }
            let content = text("\(sandbox.folder.path)/\(name)")
            if name.contains(id) || name.hasSuffix(".barrel") {
                #expect(entries.fileAttributes?[.posixPermissions] as? Int == 0o600, "\(name)")
            } else {
                expectSilent(content, name)
            }
        }
    }

    @Test("secrets of a download that is redirected are nowhere but at its first origin")
    func redirected() async throws {
        let body = body
        first.route("/a") { [url = second.url("/b")] _ in .redirect(to: url) }
        second.route("/b") { .ranged(body, for: $0, etag: "\"1\"") }
        first.route("/other") { _ in .ok(body) }
        for mode in [["--json"], ["--no-progress"], ["-q"]] {
            let result = try await sandbox.done(["get", url("/a"), "-b", "set", "--overwrite"] + words + mode)
            expectSilent(result.output + result.errors, "get \(mode)")
        }
        try await sandbox.fk("get", first.url("/other"))
        #expect(first.requests("/a").allSatisfy { $0.target.contains(canary) && $0["X-Api-Key"] != nil })
        #expect(first.requests("/a").count >= 1 && second.requests.count >= 1)
        for request in second.requests + first.requests("/other") {
            expectSilent("\(request.target) \(request.headers)", "a request to \(request.path)")
        }
        try await expectSilentQueries(url("/a"))
        let id = try #require(sandbox.reader.records(url: url("/a")).first).id
        try expectSilentFiles(id.hex)
        #expect(try await sandbox.fk("info", id.hex, "--raw").output.contains(canary), "asked for, it is shown")
    }

    @Test("a server that quotes the request in its refusal does not bring secrets into errors")
    func echoed() async throws {
        first.route("/a") { request in
            let fields = request.headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
            return .status(403, body: Array("No: \(request.target)\n\(fields)".utf8))
        }
        first.route("/late") { request in
            let padding = String(repeating: "x ", count: 240)
            return .status(403, body: Array("\(padding)\(request["X-Api-Key"] ?? "")".utf8))
        }
        for path in ["/a", "/late"] {
            let result = try await sandbox.fk(["get", url(path), "-b", "set", "--retry", "0"] + words)
            #expect(result.status == 1)
            expectSilent(result.output + result.errors, "get")
            expectSilent(try await sandbox.fk("get", url(path), "--json", "--retry", "0").output, "get --json")
            try await expectSilentQueries(url(path))
        }
    }

    #if os(Linux)
        @Test("secrets are in no command line and no environment of another process")
        func processes() async throws {
            let gate = Gate()
            first.serve("/a", body, stallingAt: 100_000, gate)
            let result = try await sandbox.done(["get", "--detach", url("/a"), "-b", "set"] + words)
            expectSilent(result.output + result.errors, "get --detach")
            let waiting = first
            await waiting.waitForRequests(1)
            for pid in try FileManager.default.contentsOfDirectory(atPath: "/proc") where Int(pid) != nil {
                expectSilent(text("/proc/\(pid)/cmdline"), "the command line of \(pid)")
                expectSilent(text("/proc/\(pid)/environ"), "the environment of \(pid)")
            }
            try await expectSilentQueries(url("/a"))
            gate.open()
            let id = try #require(try await sandbox.record(url("/a")) { $0.state == .complete }).id
            try expectSilentFiles(id.hex)
        }
    #endif

    @Test(".netrc counts only when asked for, and never for the host of a redirect", arguments: [true, false])
    func netrc(_ isAsked: Bool) async throws {
        let body = body
        let elsewhere = "http://localhost:\(second.port)/b"
        first.route("/a") { _ in .redirect(to: elsewhere) }
        second.route("/b") { _ in .ok(body) }
        let home = try TemporaryFolder()
        let netrc = try home.write(
            "machine 127.0.0.1 login me password \(canary)\nmachine localhost login me password \(canary)\n",
            ".netrc")
        #expect(chmod(netrc, 0o600) == 0)
        let words = ["get", first.url("/a"), "-d", sandbox.files] + (isAsked ? ["--netrc"] : [])
        let environment = ["HOME": home.path, "FK_WORK_PATH": sandbox.workPath]
        let result = try await FKProgram.run(words, environment: environment)
        #expect(result.status == 0, "\(result.errors)")
        #expect((first.requests[0]["Authorization"] != nil) == isAsked)
        #expect(second.requests[0]["Authorization"] == nil)
    }

    @Test("--netrc without a file that can be read names it, and sends no request")
    func noNetrc() async throws {
        let home = try TemporaryFolder()
        let result = try await FKProgram.run(
            ["get", first.url("/a"), "-d", sandbox.files, "--netrc"],
            environment: ["HOME": home.path, "FK_WORK_PATH": sandbox.workPath])
        #expect(result.status == 2)
        #expect(result.errors.contains(home.path + "/.netrc cannot be read"))
        #expect(first.requests.isEmpty)
    }

    @Test("work path 0700 and 0600, a finished file the umask's mode", arguments: ["000", "022", "077"])
    func modes(_ umask: String) async throws {
        first.route("/a") { [body] _ in .ok(body) }
        first.route("/gone") { _ in .status(404) }
        for words in [
            ["get", first.url("/a"), first.url("/gone"), "-b", "set", "-d", sandbox.files],
            ["config", "set", "jobs", "2"], ["suspend", first.url("/gone")], ["barrel", "create", "empty"],
        ] {
            let arguments = ["-c", "umask \(umask); exec \"$0\" \"$@\"", FKProgram.path] + words
            let environment = ["FK_WORK_PATH": sandbox.workPath]
            _ = try await FKProgram.run("/bin/sh", arguments, environment: environment)
        }
        let manager = FileManager.default
        func mode(_ path: String) throws -> Int {
            try #require(try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
        }
        #expect(try mode(sandbox.workPath) == 0o700)
        let entries = try #require(manager.enumerator(atPath: sandbox.workPath))
        var files = 0
        for case let name as String in entries {
            let isFolder = entries.fileAttributes?[.type] as? FileAttributeType == .typeDirectory
            #expect(entries.fileAttributes?[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(name)")
            if !isFolder { files += 1 }
        }
        #expect(files >= 5)
        #expect(try mode("\(sandbox.files)/a") == 0o666 & ~(Int(umask, radix: 8) ?? 0))
    }
}
