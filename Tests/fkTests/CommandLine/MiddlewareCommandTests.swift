import TestSupport
import Testing

@testable import fk

@Suite("fk middleware")
struct MiddlewareCommandTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func add(_ words: String...) async throws -> FKProgram.Output {
        try await sandbox.fk(["middleware", "add"] + words)
    }

    @Test("add, list, remove; the program's path is made absolute, a name is looked up later")
    func list() async throws {
        let empty = try await sandbox.fk("middleware", "list")
        #expect(empty.status == 0 && empty.output == "" && empty.errors == "No middleware programs.\n")
        #expect(try await sandbox.json("middleware", "list").array.isEmpty)
        let first = try await add("--stage", "request", "--name", "sign", "--", "cat", "-u", "a b")
        #expect(first.status == 0 && first.output == "sign added to the request chain\n" && first.errors == "")
        let second = try await add(
            "--stage=response", "--name=check", "--priority=5", "--barrel=books", "--time-limit=2.5", "./check", "--",
            "--strict")
        #expect(second.status == 0 && second.errors.contains("there is no program \(sandbox.files)/check"))
        #expect(second.errors.contains("there is no barrel named \"books\""), "\(second.errors)")
        let list = try await sandbox.json("middleware", "list").array
        #expect(list.map { $0.text("name") } == ["sign", "check"])
        #expect(list[0]["program"] as? [String] == ["cat", "-u", "a b"] && list[0].isNull("barrel"))
        #expect(list[1]["program"] as? [String] == ["\(sandbox.files)/check", "--strict"])
        #expect(
            list[1].number("priority") == 5 && list[1].text("barrel") == "books" && list[1].text("stage") == "response")
        #expect(list[1]["timeLimit"] as? Double == 2.5 && list[1].text("directory") == sandbox.files)
        let table = try await sandbox.fk("middleware", "list").output
        #expect(table.contains("NAME") && table.contains("cat -u 'a b'"))
        let again = try await add("--stage", "request", "--name", "sign", "--", "cat", "-u", "a b")
        #expect(again.status == 0 && again.output == "sign is there already\n")
        let other = try await add("--stage", "response", "--name", "sign", "--", "cat")
        #expect(other.status == 2 && other.errors.contains("There is a middleware program named sign already"))
        #expect(try await sandbox.fk("middleware", "remove", "sign").output == "sign removed\n")
        let missing = try await sandbox.fk("middleware", "remove", "sign")
        #expect(missing.status == 4 && missing.errors.contains("There is no middleware program named \"sign\""))
        let mode =
            try FileManager.default.attributesOfItem(atPath: "\(sandbox.workPath)/middlewares")[.posixPermissions]
            as? Int
        #expect(mode == 0o600)
    }

    @Test("a bad command line is refused with what is wrong, and writes nothing")
    func usage() async throws {
        let cases: [([String], String)] = [
            (["--stage", "request", "--", "cat"], "--name is missing"),
            (["--name", "a", "--", "cat"], "--stage is missing"),
            (["--stage", "requests", "--name", "a", "--", "cat"], "Did you mean 'request'?"),
            (["--stage", "request", "--name", "a"], "<program> is missing"),
            (["--stage", "request", "--name", "a/b", "--", "cat"], "a name of 1 to 64 bytes"),
            (["--stage", "request", "--name", "", "--", "cat"], "a name of 1 to 64 bytes"),
            (["--stage", "request", "--name", "a", "--priority", "0", "--", "cat"], "--priority: '0' is not allowed"),
            (
                ["--stage", "request", "--name", "a", "--time-limit", "0", "--", "cat"],
                "--time-limit: '0' is not allowed"
            ),
            (["--stage", "request", "--name", "a", "--time-limit", "4000", "--", "cat"], "--time-limit: '4000'"),
            (["--stage", "request", "--name", "a", "-b", "", "--", "cat"], "name"),
            (["--stage", "request", "--name", "a", "--", ""], "needs a program"),
        ]
        for (words, message) in cases {
            let result = try await sandbox.fk(["middleware", "add"] + words)
            #expect(result.status == 2, "\(words)")
            #expect(result.errors.contains(message), "\(words): \(result.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: sandbox.workPath))
        #expect(try await sandbox.fk("middleware").status == 2)
        #expect(try await sandbox.fk("middleware", "test", "a").status == 2)
        #expect(try await sandbox.fk("middleware", "test", "a", "http://h/a").status == 4)
        #expect(try await sandbox.fk("middleware", "test", "a", "ftp://h/a").status == 2)
    }

    @Test("test shows what a program would do, changes nothing, and hides values")
    func test() async throws {
        let server = try FaultServer()
        server.serve("/a", Bytes.pattern(count: 5_000))
        try await sandbox.done("get", server.url("/a"))
        let url = server.url("/a")
        _ = try await add(
            "--stage", "request", "--name", "sign", "--", "sh", "-c",
            #"echo '{"url": "http://h/?token=canary", "headers": {"X-Key": "canary", "X-Old": null}}'"#)
        let sign = try await sandbox.done("middleware", "test", "sign", url)
        #expect(
            sign.output
                == "sign accepts\n  url: http://h/?token=***\n  header X-Key: 6 characters\n  header X-Old: removed\n")
        let json = try await sandbox.json("middleware", "test", "sign", url)
        #expect(json.text("result") == "accept" && json.text("url") == "http://h/?token=***" && json.isNull("path"))
        #expect((json["headers", "X-Key"] as? NSNumber)?.intValue == 6 && json["headers", "X-Old"] is NSNull)
        // The real file stays where it is: the program gets a copy.
        _ = try await add(
            "--stage", "response", "--name", "drop", "--", "sh", "-c",
            #"p=$(sed 's/.*"path":"\([^"]*\)".*/\1/'); wc -c < "$p" >&2; rm "$p"; exit 1"#)
        let drop = try await sandbox.fk("middleware", "test", "drop", url)
        #expect(drop.status == 1 && drop.output == "drop refuses: 5000\n")
        #expect(try sandbox.bytes("a").count == 5_000)
        let unknown = try await sandbox.fk("middleware", "test", "drop", "http://h.example/none")
        #expect(unknown.output == "drop refuses: 0\n" && unknown.errors.contains("the program gets an empty one"))
        _ = try await add("--stage", "download", "--name", "wait", "--time-limit", "1", "--", "sleep", "100")
        let wait = try await sandbox.fk("middleware", "test", "wait", url)
        #expect(wait.status == 1 && wait.output == "wait did not end within 1 s and was killed\n")
        _ = try await add("--stage", "download", "--name", "busy", "--", "sh", "-c", "exit 75")
        #expect(
            try await sandbox.json("middleware", "test", "sign", url).keys == [
                "name", "stage", "result", "reason", "url", "headers", "path",
            ])
        let busy = try await sandbox.fk("middleware", "test", "busy", url)
        #expect(busy.status == 1 && busy.output == "busy asks for a retry: exit status 75\n")
    }

    @Test("a damaged list: every command that would download names the file; queries about tasks work")
    func damaged() async throws {
        _ = try await add("--stage", "request", "--name", "sign", "--", "cat")
        let path = "\(sandbox.workPath)/middlewares"
        try Data("{ damaged".utf8).write(to: URL(fileURLWithPath: path))
        for words in [
            ["get", "http://127.0.0.1:9/a"], ["run"], ["middleware", "list"], ["middleware", "remove", "sign"],
        ] {
            let result = try await sandbox.fk(words)
            #expect(result.status != 0, "\(words)")
            #expect(result.errors.contains(path), "\(words): \(result.errors)")
        }
        try await sandbox.done("list")
        try FileManager.default.removeItem(atPath: path)
        try await sandbox.done("middleware", "list")
    }

    @Test("programs of a copied work path do not start unasked: their tasks fail until they are trusted or added again")
    func copied() async throws {
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1]) }
        let words = ["--stage", "response", "--name", "mark", "--", "touch", "\(sandbox.files)/ran"]
        #expect(try await sandbox.fk(["middleware", "add"] + words).status == 0)
        let copy = "\(sandbox.workPath)-copy"
        try Program.run("cp", ["-a", sandbox.workPath, copy], in: URL(fileURLWithPath: sandbox.files))
        defer { try? FileManager.default.removeItem(atPath: copy) }
        func fk(_ words: String...) async throws -> FKProgram.Output {
            try await sandbox.fk(words + ["--work-path", copy])
        }
        let failed = try await fk("get", server.url("/a"))
        #expect(failed.status == 1 && failed.errors.contains("fk middleware trust"), "\(failed.errors)")
        #expect(server.requests.isEmpty && !FileManager.default.fileExists(atPath: "\(sandbox.files)/ran"))
        let list = try await fk("middleware", "list")
        #expect(
            list.errors.contains("mark is not run") && list.errors.contains("fk middleware trust"), "\(list.errors)")
        #expect(try await fk("middleware", "list", "--json").output.contains("\"trusted\": false"))
        #expect(try await fk("middleware", "trust").output == "may run now: mark\n")
        #expect(try await fk("middleware", "list", "--json").output.contains("\"trusted\": true"))
        #expect(try await fk("get", server.url("/a")).status == 0)
        #expect(FileManager.default.fileExists(atPath: "\(sandbox.files)/ran"))
        #expect(try await sandbox.json("middleware", "list").array.first?["trusted"] as? Bool == true)
    }
}
