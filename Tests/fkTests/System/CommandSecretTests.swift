import TestSupport
import Testing

@testable import fk

/// Every way in which a command gives a secret, and every way in which a server leads it elsewhere.
@Suite("Secrets of a command", .timeLimit(.minutes(20)))
struct CommandSecretTests {
    enum Kind: String, CaseIterable, Sendable { case headers, user, netrc, cookies, signature }
    enum Way: String, CaseIterable, Sendable { case redirect, mirror, metalink, list, checksum, relink }

    private static let canary = "canary0123456789"
    private static let body: [UInt8] = [1, 2, 3]
    private static let digest = Digester.hex(Digester.bytes(of: "\u{1}\u{2}\u{3}", .sha256))

    private let sandbox: Sandbox
    private let own: FaultServer
    private let other: FaultServer

    init() throws {
        let home = try TemporaryFolder()
        let logins = ["127.0.0.1", "localhost"].map { "machine \($0) login me password \(Self.canary)\n" }.joined()
        let netrc = try home.write(logins, ".netrc")
        #expect(chmod(netrc, 0o600) == 0)
        sandbox = try Sandbox(environment: [
            "HOME": home.path, "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": Self.canary,
            "AWS_SESSION_TOKEN": Self.canary,
        ])
        own = try FaultServer()
        other = try FaultServer()
        self.home = home
    }
    private let home: TemporaryFolder

    private func words(_ kind: Kind) throws -> [String] {
        switch kind {
        case .headers:
            return [
                "-H", "Authorization: Bearer \(Self.canary)", "-H", "Cookie: s=\(Self.canary)", "-H",
                "X-Api-Key: \(Self.canary)",
            ]
        case .user: return ["--user", "me:\(Self.canary)"]
        case .netrc: return ["--netrc"]
        case .cookies:
            let lines = ["127.0.0.1", "localhost"].map { "\($0)\tFALSE\t/\tFALSE\t0\ts\t\(Self.canary)" }
            try sandbox.put(lines.joined(separator: "\n"), "cookies.txt")
            return ["--cookies", "cookies.txt"]
        case .signature: return ["--aws-sigv4", "aws:amz:eu-west-1:s3"]
        }
    }

    private static func hasSecret(_ request: FaultRequest) -> Bool {
        ["Authorization", "Cookie", "X-Api-Key", "x-amz-security-token", "x-amz-date"].contains { request[$0] != nil }
    }

    @Test(
        "no kind of secret goes where a server, a list, a mirror or a new address leads", arguments: Way.allCases,
        Kind.allCases)
    func ways(_ way: Way, _ kind: Kind) async throws {
        let elsewhere = "http://localhost:\(other.port)"
        other.route("/a") { _ in .ok(Self.body) }
        other.route("/sums") { _ in .ok(Array("\(Self.digest)  a\n".utf8)) }
        let secrets = try words(kind)
        switch way {
        case .redirect:
            own.route("/a") { _ in .redirect(to: elsewhere + "/a") }
            try await sandbox.done(["get", own.url("/a")] + secrets)
        case .mirror:
            own.route("/a") { _ in .status(404) }
            try await sandbox.done(["get", own.url("/a"), "--mirror", elsewhere + "/a"] + secrets)
        case .metalink:
            own.route("/a") { _ in
                .ok(
                    Array(
                        """
                        <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a"><size>3</size>
                        <url>\(elsewhere)/a</url></file></metalink>
                        """.utf8), headers: ["Content-Type": "application/metalink4+xml"])
            }
            try await sandbox.done(["get", "--metalink", own.url("/a")] + secrets)
        case .list:
            own.route("/list") { _ in .ok(Array("\(elsewhere)/a\n".utf8), headers: ["Content-Type": "text/plain"]) }
            try await sandbox.done(["barrel", "create", "b"] + secrets)
            try await sandbox.done(["barrel", "import", "b", own.url("/list")])
            try await sandbox.done(["barrel", "run", "b"])
        case .checksum:
            own.route("/a") { _ in .ok(Self.body) }
            try await sandbox.done(["get", own.url("/a"), "--checksum", "@\(elsewhere)/sums"] + secrets)
        case .relink:
            own.route("/a") { _ in .status(404) }
            #expect(try await sandbox.fk(["get", own.url("/a")] + secrets).status == 1)
            let relinked = try await sandbox.done("relink", "a", elsewhere + "/a")
            #expect((relinked.output + relinked.errors).contains("this origin does not receive"))
            try await sandbox.done("run")
        }
        #expect(!other.requests.isEmpty && !own.requests.isEmpty)
        // A cookie of the file has a domain of its own, and the owner has named the place of the list of digests.
        let isOwnWord = kind == .cookies && way == .redirect || kind == .netrc && way == .checksum
        for request in other.requests where !isOwnWord { #expect(!Self.hasSecret(request), "\(request.headers)") }
        if way != .list { #expect(own.requests.allSatisfy(Self.hasSecret)) }
    }

    @Test(
        "--aws-sigv4 signs all that is asked of the file's server: probes, lists of digests, signatures, refreshes, repairs"
    )
    func signed() async throws {
        let files = URL(fileURLWithPath: sandbox.files)
        try sandbox.put("\u{1}\u{2}\u{3}", "signed")
        try Program.run("minisign", ["-G", "-W", "-p", "k.pub", "-s", "k.sec"], in: files)
        try Program.run("minisign", ["-S", "-s", "k.sec", "-m", "signed", "-x", "sig"], in: files)
        let signature = try sandbox.bytes("sig")
        own.route("/a") { _ in .ok(Self.body, headers: ["ETag": "\"1\""]) }
        own.route("/a.sha256") { _ in .ok(Array("\(Self.digest)  a\n".utf8)) }
        own.route("/s") { _ in .ok(Self.body) }
        own.route("/s.minisig") { _ in .ok(signature) }
        let sign = ["--aws-sigv4", "aws:amz:eu-west-1:s3"]
        try await sandbox.done(["get", own.url("/a"), "-b", "b", "--metalink", "--checksum", "auto"] + sign)
        try await sandbox.done(["get", own.url("/s"), "--signed-by", "k.pub"] + sign)
        try await sandbox.done(["barrel", "refresh", "b"])
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/a")
        try await sandbox.fk("verify", "a", "--repair")
        #expect(try sandbox.bytes("a") == Self.body)
        let paths = own.requests.map(\.path)
        #expect(
            paths.count { $0 == "/a" } >= 4 && paths.contains("/a.sha256") && paths.contains("/s.minisig"), "\(paths)")
        for request in own.requests {
            #expect(request["Authorization"]?.contains("AKID/") == true, "\(request.path)")
            #expect(request["x-amz-security-token"] == Self.canary)
        }
    }

    @Test(
        "a password is in no message, log or answer, also where it cannot be parsed",
        arguments: [
            ["get", "http://u:HERE#x@127.0.0.1:9/a"], ["get", "http://u:HERE/x@127.0.0.1:9/a"],
            ["get", "http://u:HERE?x@127.0.0.1:9/a"], ["get", "http://u:c@/HERE@127.0.0.1:9/a"],
            ["barrel", "import", "b", "sftp://u:c@d#HERE@127.0.0.1:9/a"],
            ["get", "u:HERE@127.0.0.1:9/a"],
            ["get", "http://u:12345/HERE@h.example/a"],
            ["get", "--proxy", "http://u:HERE@x@127.0.0.1:9", "http://h.invalid/a"],
            ["get", "--proxy=u:HERE/x@127.0.0.1:9", "http://h.invalid/a"],
            ["get", "http://u:HERE@127.0.0.1:9/a", "--retry", "0"], ["get", "u:HERE@h"],
            ["relink", "x", "http://u:HERE#@h/"],
            ["barrel", "import", "b", "http://u:HERE@127.0.0.1:9/list", "--retry"],
            ["config", "set", "proxy", "http://u:HERE@x@h:1"], ["get", "-H", "X-Api-Key HERE", "http://h/"],
            ["get", "--mirror", "u:HERE@h/a", "http://h/a"], ["get", "--doh-url", "http://u:HERE@h", "http://h/a"],
            ["list", "u:HERE@h/a"], ["info", "http://u:HERE/x@h/a"],
        ])
    func masked(_ words: [String]) async throws {
        let words = words.map { $0.replacing("HERE", with: Self.canary) }
        let log = words.first == "get" ? ["--log", "log"] : []
        var texts = [try await sandbox.fk(words + log)]
        #expect(texts[0].status != 0 || words.first == "list")
        for query in [["list"], ["list", "--json"], ["why"], ["info", "--json"], ["metrics"], ["config", "show"]] {
            texts.append(try await sandbox.fk(query))
        }
        for text in texts {
            #expect(!(text.output + text.errors).contains(Self.canary), "\(text)")
        }
        if sandbox.exists("log") {
            #expect(!String(decoding: try sandbox.bytes("log"), as: UTF8.self).contains(Self.canary))
        }
    }

    @Test("a proxy with a raw '@' of the environment fails at once, by name, without its password")
    func proxy() async throws {
        let process = try sandbox.start(
            ["get", "http://h.invalid/a", "--json"],
            environment: ["http_proxy": "http://name:p@\(Self.canary)@127.0.0.1:9"])
        let result = await process.end()
        #expect(result.status == 1 && result.output.contains("%40"), "\(result)")
        let queries = try await [
            sandbox.fk("why", "a"), sandbox.fk("list", "--json"), sandbox.fk("info", "a", "--json"),
        ]
        for text in queries + [result] { #expect(!(text.output + text.errors).contains(Self.canary), "\(text)") }
        #expect(try sandbox.reader.records(url: "http://h.invalid/a").first?.attempts == 1)
    }

    @Test("a server that brings a secret into a redirect or an entity tag does not bring it into answers")
    func quoted() async throws {
        let secret = "X-Api-Key"
        own.route("/gone") { .redirect(to: "/no/\($0[secret] ?? "none")") }
        own.route("/there") { .redirect(to: "/yes/\($0[secret] ?? "none")?k=\($0[secret] ?? "none")") }
        let tag = "\"\(Self.canary)\""
        own.route("/yes/\(Self.canary)") { _ in
            .ok(Self.body, headers: ["ETag": tag, "Content-Type": "text/\(Self.canary)"])
        }
        let options = ["-b", "b", "-H", "\(secret): \(Self.canary)", "--retry", "0"]
        #expect(try await sandbox.fk(["get", own.url("/gone")] + options).status == 1)
        try await sandbox.done(["get", own.url("/there")] + options)
        #expect(own.requests.contains { $0.path == "/no/\(Self.canary)" })
        for query in [
            ["why", "gone"], ["why", "gone", "--json"], ["info", "gone"], ["list", "--json"],
            ["info", "there", "--json"],
            ["provenance", "-b", "b"], ["barrel", "export", "b", "--format", "lock"],
        ] {
            let result = try await sandbox.fk(query)
            #expect(!(result.output + result.errors).contains(Self.canary), "\(query)")
        }
    }

    @Test("a list that quotes a secret in its refusal does not bring it into messages")
    func echoed() async throws {
        own.route("/list") { .status(403, body: Array("no: \($0["Authorization"] ?? "none")".utf8)) }
        own.route("/a") { .status(403, body: Array("no: \($0["X-Api-Key"] ?? "none")".utf8)) }
        let secrets = try words(.headers)
        for words in [
            ["get", own.url("/a"), "--checksum", "@\(own.url("/list"))"], ["get", own.url("/a"), "--metalink"],
        ] {
            let result = try await sandbox.fk(words + secrets)
            #expect(result.status != 0 && !(result.output + result.errors).contains(Self.canary), "\(result.errors)")
        }
    }
}
