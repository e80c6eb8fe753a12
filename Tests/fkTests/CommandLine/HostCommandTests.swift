import TestSupport
import Testing

@testable import fk

@Suite("Policies of hosts on the command line")
final class HostCommandTests: ServedSuite {

    override init() throws {
        try super.init()
        server.routeOthers { _ in .ok(Bytes.pattern(count: 1_000)) }
    }

    @Test("config host sets, lists and removes; fields that are not given stay")
    func changed() async throws {
        #expect(try await sandbox.done("config", "host").output == "")
        #expect(!FileManager.default.fileExists(atPath: sandbox.workPath))
        try await sandbox.done("config", "host", "Export.arXiv.org", "--connections", "1", "--rate", "20/m")
        try await sandbox.done("config", "host", "*.b.example", "--limit-rate", "2M", "--contact", "me@lab.example")
        try await sandbox.done("config", "host", "export.arxiv.org", "--connections", "2")
        let lines = [
            "*.b.example --limit-rate 2097152 --contact me@lab.example", "export.arxiv.org --connections 2 --rate 20/m",
        ]
        #expect(try await sandbox.done("config", "host").output == lines.map { $0 + "\n" }.joined())
        #expect(try await sandbox.done("config", "host", "*.B.example").output == lines[0] + "\n")
        let json = try await sandbox.json("config", "host", "export.arxiv.org")
        let policy = try #require((json.value as? [[String: Any]])?.first)
        #expect(policy["rate"] as? String == "20/m" && policy["connections"] as? Int == 2)
        try await sandbox.done("config", "host", "*.b.example", "--limit-rate", "0")
        try await sandbox.done("config", "host", "export.arxiv.org", "--remove")
        #expect(try await sandbox.done("config", "host").output == "*.b.example --contact me@lab.example\n")
        #expect(try await sandbox.fk("config", "host", "export.arxiv.org", "--remove").status == 4)
    }

    @Test("config host takes a mirror and statuses, which why names") func mirror() async throws {
        server.route("/m/f.bin") { _ in .ok(Bytes.pattern(count: 1_000)) }
        let base = "\(server.base)/m"
        try await sandbox.done(
            "config", "host", "localhost", "--mirror", base + "/", "--retry-status", "404", "--retry-status", "403")
        #expect(
            try await sandbox.done("config", "host").output
                == "localhost --mirror \(base) --retry-status 403 --retry-status 404\n")
        // Nothing listens at this port.
        try await sandbox.done("get", "--user", "me:pw", "http://localhost:1/f.bin?token=x&v=1")
        #expect(server.requests.map(\.path) == ["/m/f.bin?v=1"] || server.requests.map(\.path) == ["/m/f.bin"])
        #expect(server.requests[0]["Authorization"] == nil)
        let why = try await sandbox.done("why", "f.bin")
        #expect(
            why.output.contains("requests to localhost:1 go to \(base), by the policy of localhost"), "\(why.output)")
        try await sandbox.done("config", "host", "127.0.0.1", "--retry-status", "404")
        server.route("/gone") { _ in .status(404) }
        #expect(try await sandbox.fk("get", "--retry", "1", server.url("/gone")).status == 1)
        #expect(server.requests("/gone").count == 2)
        #expect(
            try await sandbox.done("why", "gone").output.contains("the policy of 127.0.0.1 says that 404 is retried"))
        try await sandbox.done("config", "host", "localhost", "--mirror", "none", "--retry-status", "0")
        #expect(try await sandbox.done("config", "host").output == "127.0.0.1 --retry-status 404\n")
        for words in [
            ["--mirror", "x"], ["--retry-status", "200"], ["--retry-status", "0", "--retry-status", "404"],
        ] {
            #expect(try await sandbox.fk(["config", "host", "h.example"] + words).status == 2, "\(words)")
        }
    }

    @Test("lists are fetched from the mirror of their host") func mirroredList() async throws {
        server.route("/m/list.txt") { _ in .ok(Array("http://localhost:1/d/x\n".utf8)) }
        try await sandbox.done("config", "host", "localhost", "--mirror", "\(server.base)/m")
        try await sandbox.done("barrel", "import", "set", "http://localhost:1/list.txt", "-d", ".")
        #expect(server.requests.map(\.path) == ["/m/list.txt"])
        #expect(try await sandbox.done("list").output.contains("x"))
    }

    @Test("requests of one command, of the next and of one beside it share a host's turns; why names the policy")
    func shared() async throws {
        try await sandbox.done("config", "host", "127.0.0.1", "--rate", "1/h", "--contact", "me@lab.example")
        try await sandbox.done("get", server.url("/a"))
        let engine = try sandbox.start("get", server.url("/b"))
        #expect(try await sandbox.record(server.url("/b")) { $0.waiting != nil || $0.state == .idle } != nil)
        let follower = try sandbox.start("get", server.url("/c"))
        let says = "127.0.0.1: 1 request an hour"
        for path in ["/b", "/c"] {
            let isSaid = try await eventually { [sandbox, server] in
                try await sandbox.fk("why", server.url(path)).output.contains(says) ? true : nil
            }
            #expect(isSaid == true)
        }
        #expect(server.requests.map(\.path) == ["/a"])
        try await sandbox.done("config", "host", "127.0.0.1", "--rate", "1000/s")
        #expect(await engine.end().status == 0)
        #expect(await follower.end().status == 0)
        // The second command takes over with its file, which the first one may have begun.
        let paths = server.requests.map(\.path)
        #expect(Set(paths) == ["/a", "/b", "/c"] && paths.count { $0 == "/b" } == 1, "\(paths)")
        #expect(server.requests.allSatisfy { $0["User-Agent"]?.hasSuffix(" (me@lab.example)") == true })
    }

    @Test("a command's own limits of hosts hold its files, and its contact has precedence")
    func ofCommand() async throws {
        try await sandbox.done("config", "host", "127.0.0.1", "--contact", "me@lab.example")
        let url = "https://lab.example/bot"
        let slow = try sandbox.start(
            "get", "--rate", "1/h", "--per-host", "1", "--contact", url, server.url("/a"), server.url("/b"))
        await server.waitForRequests(1)
        #expect(server.requests[0]["User-Agent"]?.hasSuffix(" (\(url))") == true)
        try await sandbox.done("get", server.url("/c"), server.url("/d"))
        let paths = server.requests.map(\.path)
        #expect(paths.count == 3 && Set(paths.dropFirst()) == ["/c", "/d"])
        #expect(try await sandbox.fk("why", "b").output.contains("--rate 1/h"))
        slow.signal(SIGTERM)
        #expect(await slow.end().status == 143)
    }

    @Test("refresh keeps a host's contact as well") func refreshed() async throws {
        try await sandbox.done("barrel", "create", "set", server.url("/a"), "-d", ".")
        try await sandbox.done("barrel", "run", "set")
        try await sandbox.done("config", "host", "127.0.0.1", "--contact", "me@lab.example")
        try await sandbox.fk("barrel", "refresh", "set")
        #expect(server.requests.count > 1)
        #expect(server.requests.dropFirst().allSatisfy { $0["User-Agent"]?.hasSuffix(" (me@lab.example)") == true })
    }

    /// Command lines that ask for a document before any file, and the path of that request.
    private static let asking: [(words: [String], path: String)] = [
        (["get", "--checksum", "@BASE/list", "BASE/file"], "/list"),
        (["get", "--checksum", "auto", "BASE/file"], "/file.sha256"),
        (["get", "--metalink", "BASE/file"], "/file"), (["get", "--signed-by", "KEY", "BASE/file"], "/file.minisig"),
        (["barrel", "import", "set", "BASE/record"], "/record"),
        (["barrel", "import", "set", "zenodo:1"], "/api/records/1"),
        (["barrel", "import", "set", "hf:a/b"], "/api/models/a/b/revision/main"),
    ]

    @Test("lists, records, signatures, digests and hubs wait for a host's turns, and count", arguments: asking)
    func documents(_ line: [String], _ path: String) async throws {
        let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
        let words = line.map { $0.replacing("BASE", with: server.base).replacing("KEY", with: key) }
        try await sandbox.done(
            "config", "host", "127.0.0.1", "--rate", "1/h", "--connections", "1", "--contact", "me@lab.example")
        let environment = ["FK_ZENODO_ENDPOINT": server.base, "HF_ENDPOINT": server.base]
        _ = try sandbox.start(words, environment: environment)
        await server.waitForRequests(1)
        _ = try sandbox.start("get", server.url("/other"))
        let isSaid = try await eventually { [sandbox, server] in
            try await sandbox.fk("why", server.url("/other")).output.contains("1 request an hour") ? true : nil
        }
        #expect(isSaid == true)
        #expect(server.requests.map(\.path) == [path])
        #expect(server.requests[0]["User-Agent"]?.hasSuffix(" (me@lab.example)") == true)
    }

    /// The queues of the server's host.
    private func turns() throws -> String {
        let name = try #require(
            FileManager.default.contentsOfDirectory(atPath: "\(sandbox.workPath)/turns").first { !$0.contains("~") })
        return try String(contentsOfFile: "\(sandbox.workPath)/turns/\(name)", encoding: .utf8)
    }

    @Test("a process that is killed with a host's only connection, or before its turn, holds nobody back")
    func killed() async throws {
        let gate = Gate()
        server.route("/held") { _ in .ok(Bytes.pattern(count: 1_000)).stalling(at: 10, until: gate) }
        try await sandbox.done("barrel", "create", "set", server.url("/a"), "-d", ".")
        try await sandbox.done("barrel", "run", "set")
        try await sandbox.done("config", "host", "127.0.0.1", "--rate", "1/s", "--connections", "1")
        let holder = try sandbox.start("get", server.url("/held"))
        await server.waitForRequests(2)
        let waiting = try sandbox.start("barrel", "refresh", "set")
        let other = try sandbox.start("barrel", "refresh", "set")
        let isQueued = try await eventually { (try? turns().components(separatedBy: "until").count) == 3 ? true : nil }
        #expect(isQueued == true)
        waiting.kill()
        holder.kill()
        #expect(await other.end().status == 0)
        #expect(server.requests("/a").count > 1)
        gate.open()
    }

    @Test("an engine, a refresh and the requests for digests beside each other keep one rate")
    func together() async throws {
        try await sandbox.done(
            ["barrel", "create", "set", "-d", "."] + (0..<5).map { server.url("/old/\($0)") })
        try await sandbox.done("barrel", "run", "set")
        try await sandbox.done("config", "host", "127.0.0.1", "--rate", "10/s")
        let before = server.requests.count
        let clock = ContinuousClock()
        let began = clock.now
        let commands = [
            try sandbox.start(["get"] + (0..<5).map { server.url("/new/\($0)") }),
            try sandbox.start("barrel", "refresh", "set"),
            try sandbox.start("get", "--checksum", "auto", server.url("/sum")),
        ]
        for command in commands { _ = await command.end() }
        // Ten files, and four lists that are none. The time has no upper bound.
        let count = server.requests.count - before
        #expect(count >= 14)
        #expect(began.duration(to: clock.now) > .milliseconds(100 * (count - 1)))
    }
}
