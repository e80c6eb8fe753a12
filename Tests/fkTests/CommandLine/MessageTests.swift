import TestSupport
import Testing

@testable import fk

@Suite("What a command says")
final class MessageTests: ServedSuite {

    override init() throws {
        try super.init()
        server.routeOthers { _ in .ok([1, 2, 3]) }
    }

    // MARK: Options that are checked when they are read

    @Test(
        "A proxy that cannot be one is refused before anything is asked, without its password",
        arguments: ["foo:bar", "http://", "foo:99999", "ftp://p:1", "http://u:hidden@p:bar", ":1", "a b:1"])
    func badProxy(proxy: String) async throws {
        for words in [["get", server.url("/a"), "--proxy", proxy], ["config", "set", "proxy", proxy]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains("proxy"), "\(result.errors)")
            #expect(!result.errors.contains("hidden"))
        }
        #expect(server.requests.isEmpty)
    }

    @Test("A proxy that is dead is named")
    func deadProxy() async throws {
        // A port that was free a moment ago.
        let port = try { try FaultServer().port }()
        let result = try await sandbox.fk(
            "get", "http://h.invalid/a", "--retry", "0", "--proxy", "http://u:hidden@127.0.0.1:\(port)")
        #expect(result.status == 1 && result.errors.contains("proxy 127.0.0.1:\(port)"), "\(result.errors)")
        #expect(!result.errors.contains("hidden"))
        let other = try await sandbox.fk(
            "get", "http://h.invalid/b", "--retry", "0", "--proxy", "http://no-such-proxy.invalid:1")
        #expect(other.status == 1 && other.errors.contains("no-such-proxy.invalid"), "\(other.errors)")
    }

    @Test(
        "A file of authorities that cannot be one is refused before anything is asked",
        arguments: ["missing.pem", "empty.pem", "text.pem", "folder", ""])
    func badAuthorities(name: String) async throws {
        try sandbox.put("", "empty.pem")
        try sandbox.put("not a certificate", "text.pem")
        try FileManager.default.createDirectory(
            atPath: "\(sandbox.files)/folder", withIntermediateDirectories: false)
        for words in [["get", server.url("/a"), "--cacert", name], ["barrel", "create", "b", "--cacert", name]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains("--cacert: "), "\(result.errors)")
            if !name.isEmpty { #expect(result.errors.contains(name)) }
        }
        if !name.isEmpty { #expect(try await sandbox.fk("config", "set", "cacert", name).status == 2) }
        #expect(server.requests.isEmpty)
    }

    @Test(
        "An empty list says so and ends with 2",
        arguments: [
            ["get", "-i", "-"], ["barrel", "create", "b", "-i", "-"], ["barrel", "import", "b", "-"],
        ], ["", "\n\n", "# only a comment\n", "\u{feff}"])
    func emptyList(words: [String], list: String) async throws {
        let result = try await sandbox.start(words, input: list).end()
        #expect(result.status == 2 && result.errors.contains("standard input: the list is empty"), "\(result.errors)")
    }

    // MARK: Deleting

    @Test("What is not there is told before anybody is asked")
    func notThere() async throws {
        for words in [
            ["barrel", "trash", "nonesuch"], ["trash", "http://h.example/nothing"], ["trash", "abcdef"],
            ["barrel", "delete", "nonesuch"],
        ] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 4, "\(words): \(result.errors)")
            #expect(!result.errors.contains("Forget") && !result.errors.contains("--yes"), "\(result.errors)")
        }
        try await sandbox.fk("get", server.url("/a"), "-b", "b")
        for words in [["trash", server.url("/a")], ["barrel", "trash", "b"], ["trash", "--all"]] {
            let result = try await sandbox.fk(words)
            #expect(result.status == 2 && result.errors.contains("pass --yes"), "\(words): \(result.errors)")
            #expect(sandbox.exists("a"))
        }
    }

    @Test(
        "On a terminal barrel delete asks, unless -y is given; its tasks are kept and counted", .needsPseudoTerminal,
        arguments: [0, 1, 2])
    func deleteBarrel(count: Int) async throws {
        for index in 0..<count { try await sandbox.fk("get", server.url("/\(index)"), "-b", "b") }
        if count == 0 { try await sandbox.fk("barrel", "create", "b") }
        let environment = ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm"]
        let terminal = try PseudoTerminal(columns: 200)
        let asked = try await offPool {
            try terminal.run(FKProgram.path, ["barrel", "delete", "b"], environment: environment) { text in
                if text.contains("[y/N]") { terminal.type("n\n") }
            }
        }
        #expect(asked.raw.contains("Forget barrel b?") && asked.status == 1, "\(asked.raw)")
        #expect(asked.raw.contains(["0 tasks are", "1 task is", "2 tasks are"][count]), "\(asked.raw)")
        let told = try await sandbox.done("barrel", "delete", "-y", "b")
        let words = ["it had no tasks", "its task was kept", "its 2 tasks were kept"]
        #expect(told.output.contains(words[count]), "\(told.output)")
        #expect(try await sandbox.json("list").array.count == count)
    }

    // MARK: What is shown

    @Test("Messages of the library name options here, and its settings there")
    func options() async throws {
        try sandbox.put("mine", "x")
        let url = server.url("/x")
        let result = try await sandbox.fk("get", url, "-o", "x")
        #expect(result.errors.contains("use --overwrite, --rename or --skip"), "\(result.errors)")
        let stored = try #require(sandbox.reader.records(url: url).first?.error)
        #expect(stored.remedy == .chooseExisting && stored.description.contains("`existing`"))
        #expect(!stored.description.contains("--"))
        for words in [["why", url], ["info", url], ["info", url, "--json"]] {
            let text = try await sandbox.fk(words).output
            #expect(text.contains("--overwrite") && !text.contains("`existing`"), "\(words): \(text)")
        }
        let large = try await sandbox.fk("get", server.url("/y"), "--max-size", "1")
        #expect(large.status == 1 && !large.errors.contains("maxSize"), "\(large.errors)")
    }

    @Test("A server that says nothing to plain HTTP may speak TLS")
    func plainToTLS() async throws {
        server.route("/a") { _ in .raw([.close]) }
        let result = try await sandbox.fk("get", "--retry", "0", server.url("/a"))
        #expect(result.errors.contains("If it speaks TLS at this port, write https://."), "\(result.errors)")
        let tls = try await sandbox.fk("get", "--retry", "0", server.url("/a").replacing("http:", with: "https:"))
        #expect(tls.errors.contains("If it speaks plain HTTP, write http://."), "\(tls.errors)")
    }

    @Test("A login that is missing names the options that give one")
    func login() async throws {
        server.route("/a") { _ in .status(401) }
        server.route("/b") { _ in .status(407) }
        let site = try await sandbox.fk("get", "--retry", "0", server.url("/a"))
        #expect(site.status == 1 && site.errors.contains("401: it wants a login (--user or --netrc)."), "\(site)")
        let wrong = try await sandbox.fk("get", "--retry", "0", "--user", "me:wrong", server.url("/a"))
        #expect(wrong.errors.contains("401: it refuses the login (--user or --netrc)."), "\(wrong)")
        let proxy = try await sandbox.fk("get", "--retry", "0", server.url("/b"))
        #expect(proxy.errors.contains("407: the proxy wants a login (--proxy http://NAME:PASSWORD@HOST:PORT)."))
    }

    @Test("A file whose task cannot be recorded is named by its URL and counted")
    func unrecorded() async throws {
        try await sandbox.done("get", server.url("/first"))
        // Where folders for info files belong there are files.
        let tasks = sandbox.workPath + "/tasks"
        try FileManager.default.removeItem(atPath: tasks)
        try FileManager.default.createDirectory(atPath: tasks, withIntermediateDirectories: false)
        for number in 0..<256 {
            let name = (number < 16 ? "0" : "") + String(number, radix: 16)
            try Data().write(to: URL(fileURLWithPath: "\(tasks)/\(name)"))
        }
        let result = try await sandbox.fk("get", server.url("/bad?token=hidden"))
        #expect(result.status == 1 && result.errors.contains("0 of 0 complete, 1 not added"), "\(result.errors)")
        #expect(result.errors.contains("✗ \(server.url("/bad"))") && !result.errors.contains("hidden"))
        #expect(try sandbox.names().contains("bad") == false)
        let json = try await sandbox.fk("get", "--json", server.url("/bad?token=hidden"))
        let events = try JSON.lines(json.output)
        let failed = try #require(events.first)
        #expect(json.status == 1 && !json.output.contains("hidden"), "\(json)")
        #expect(failed.text("event") == "state" && failed.text("state") == "error" && failed["error"] != nil)
        #expect(failed.text("url")?.hasPrefix(server.url("/bad")) == true)
        #expect(events.last?.text("event") == "summary" && events.last?.number("error") == 1)
        // Nothing runs in the background for it.
        let detached = try await sandbox.fk("get", "--detach", "--json", server.url("/bad"))
        #expect(detached.status == 1)
        #expect(try JSON(detached.output).array.count == 1)
    }
}
