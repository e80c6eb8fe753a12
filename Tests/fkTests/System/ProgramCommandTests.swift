import TestSupport
import Testing

@testable import fk

@Suite("Middleware programs")
final class ProgramCommandTests: ServedSuite {
    private let body = Bytes.pattern(count: 100_000)

    override init() throws {
        try super.init()
        for name in ["a", "b", "c"] { server.serve("/\(name)", body) }
    }

    enum Stage: String, CaseIterable { case request, response }

    private func add(
        _ stage: String, _ name: String, _ words: [String], _ options: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let result = try await sandbox.fk(
            ["middleware", "add", "--stage", stage, "--name", name] + options + ["--"] + words)
        #expect(result.status == 0, "\(result.errors)", sourceLocation: sourceLocation)
    }

    /// Adds a shell script.
    private func add(_ stage: Stage, _ name: String, script: String, _ options: String...) async throws {
        try await add(stage.rawValue, name, ["/bin/sh", "-c", script], options)
    }

    private func text(_ name: String) -> String? {
        try? String(contentsOfFile: "\(sandbox.files)/\(name)", encoding: .utf8)
    }

    /// The member of a barrel with a bad program fails with the program's name; a file outside of it arrives.
    private func expectFailure(
        _ what: String, seconds: Double = 20, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let began = ContinuousClock.now
        let failed = try await sandbox.fk("get", "-b", "bad", server.url("/a"))
        #expect(failed.status == 1, sourceLocation: sourceLocation)
        #expect(
            failed.errors.contains("The middleware program guard "), "\(failed.errors)", sourceLocation: sourceLocation)
        #expect(failed.errors.contains(what), "\(failed.errors)", sourceLocation: sourceLocation)
        #expect(ContinuousClock.now - began < .seconds(seconds), sourceLocation: sourceLocation)
        #expect(!sandbox.exists("a"), "it fails closed", sourceLocation: sourceLocation)
        let why = try await sandbox.fk("why", server.url("/a"))
        #expect(why.output.contains("The middleware program guard "), sourceLocation: sourceLocation)
        let info = try await sandbox.json("info", server.url("/a"))
        #expect(info.text("state") == "error", sourceLocation: sourceLocation)
        let other = try await sandbox.fk("get", server.url("/b"))
        #expect(other.status == 0, "\(other.errors)", sourceLocation: sourceLocation)
        #expect(try sandbox.bytes("b") == body, sourceLocation: sourceLocation)
    }

    @Test("arguments reach the program as they are: no shell; the URL is in its input only", arguments: Stage.allCases)
    func noShell(_ stage: Stage) async throws {
        let script = try Program.writeScript(
            "#!/bin/sh\nprintf '<%s>' \"$@\" > args\ncat > input\n", to: "\(sandbox.folder.path)/show")
        try await add(stage.rawValue, "show", [script, "$HOME", "; touch owned", "a b", "`id`", "--json", "", "-b"])
        let url = server.url("/a?x=$(touch%20owned);touch%20owned")
        try await sandbox.done("get", "-o", "a", url)
        #expect(text("args") == "<$HOME><; touch owned><a b><`id`><--json><><-b>")
        #expect(text("input")?.contains("\"url\":\"\(url)\"") == true)
        #expect(try sandbox.names() == ["a", "args", "input"])
    }

    @Test("crashes, garbage, missing and unfit programs: the task fails closed", arguments: Stage.allCases, 0..<6)
    func unfit(_ stage: Stage, _ number: Int) async throws {
        let script = try Program.writeScript(
            ["#!/bin/sh\n", "no program", "#!/no/such\n"][number % 3], to: "\(sandbox.folder.path)/guard",
            mode: number == 4 ? 0o755 : 0o644)
        switch number {
        case 0: try await add(stage, "guard", script: "kill -ABRT $$", "-b", "bad")
        case 1: try await add(stage, "guard", script: "echo garbage", "-b", "bad")
        case 2: try await add(stage, "guard", script: #"printf '{"pth": "/x"}'"#, "-b", "bad")
        case 3, 4: try await add(stage.rawValue, "guard", [script], ["-b", "bad"])
        default:
            let result = try await sandbox.fk(
                "middleware", "add", "--stage", stage.rawValue, "--name", "guard", "-b", "bad", "--", "/no/such/program"
            )
            #expect(result.status == 0 && result.errors.contains("there is no program /no/such/program"))
        }
        try await expectFailure(
            [
                "was ended by signal 6", "wrote 8 bytes that are not a JSON object", "wrote the unknown member \"pth\"",
                "is not executable", "is neither a program nor a script", "there is no program /no/such/program",
            ][number])
    }

    @Test(
        "fk is killed while a program runs: the next run asks the program again, and nothing is lost",
        arguments: Stage.allCases)
    func killed(_ stage: Stage) async throws {
        try await add(stage, "hang", script: "echo x >> runs; test -e second && exit 0; touch second; sleep 3")
        let first = try sandbox.start("get", server.url("/a"))
        #expect(try await eventually { text("second") } != nil)
        first.kill()
        _ = await first.end()
        try await sandbox.done("get", server.url("/a"))
        #expect(try sandbox.bytes("a") == body)
        #expect(text("runs") == "x\nx\n")
        #expect(server.requests("/a").count == 1, "a finished file is not fetched again")
        #expect(try sandbox.names() == ["a", "runs", "second"])
    }

    @Test("fk is killed after a program has moved the file: the next run finds it", arguments: [true, false])
    func killedAfterMove(_ links: Bool) async throws {
        let move =
            links
            ? "ln \"$p\" moved/a 2>/dev/null || test \"$p\" -ef moved/a || exit 1"
            : "test -e \"$p\" && mv \"$p\" moved/a"
        try await add(
            .response, "move",
            script: #"""
                p=$(sed 's/.*"path":"\([^"]*\)".*/\1/'); mkdir -p moved; \#(move)
                test -e second || { touch second; sleep 3; }
                printf '{"path":"%s/moved/a"}' "$PWD"
                """#)
        let first = try sandbox.start("get", server.url("/a"))
        #expect(try await eventually { text("second") } != nil)
        first.kill()
        _ = await first.end()
        try await sandbox.done("get", server.url("/a"))
        #expect(try sandbox.bytes("moved/a") == body)
        #expect(try sandbox.names() == ["moved", "second"])
        #expect(
            server.requests("/a").count == (links ? 1 : 2), "only a program that removes the old place costs the file")
        #expect(try await sandbox.json("info", server.url("/a")).text("path") == "\(sandbox.files)/moved/a")
    }

    @Test("a change of the list reaches an engine at work")
    func live() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 50_000, gate)
        let running = try sandbox.start("get", server.url("/slow"))
        _ = try await sandbox.record(server.url("/slow")) { $0.received > 0 }
        try await add(.request, "key", script: #"echo '{"headers":{"X-Key":"k"}}'"#)
        try await sandbox.done("get", server.url("/a"))
        #expect(server.requests("/a").map { $0["X-Key"] } == ["k"])
        try await sandbox.done("middleware", "remove", "key")
        try await sandbox.done("get", server.url("/b"))
        #expect(server.requests("/b").map { $0["X-Key"] } == [nil])
        gate.open()
        #expect(await running.end().status == 0)
    }

    @Test("what a program adds is nowhere but in its request")
    func secrets() async throws {
        server.route("/signed") { request in
            request.target.contains("sig=canary7")
                ? .ranged(Bytes.pattern(count: 9_000), for: request, etag: "\"1\"") : .status(404)
        }
        server.route("/refused") { .status(403, body: Array("no \($0["X-Key"] ?? "")".utf8)) }
        try await add(
            .request, "sign",
            script:
                #"u=$(sed 's/.*"url":"\([^"]*\)".*/\1/'); printf '{"url":"%s?sig=canary7","headers":{"X-Key":"canary8"}}' "$u""#
        )
        var shown = try await sandbox.fk("get", server.url("/signed"), server.url("/refused"), "--retry", "1").errors
        #expect(try sandbox.bytes("signed").count == 9_000)
        #expect(server.requests("/refused").allSatisfy { $0["X-Key"] == "canary8" })
        try await add(.request, "talk", script: "cat >&2; exit 1", "--priority", "200")
        shown += try await sandbox.fk("get", server.url("/c")).errors
        for words in [
            ["list", "--json"], ["why", server.url("/c")], ["why", server.url("/refused"), "--json"],
            ["middleware", "test", "sign", server.url("/a")],
        ] {
            shown += try await sandbox.fk(words).output
        }
        #expect(shown.contains("talk refused the request"))
        #expect(!shown.contains("canary7") && !shown.contains("canary8"), "\(shown)")
        let entries = try #require(FileManager.default.enumerator(atPath: sandbox.workPath))
        for case let name as String in entries where name != "middlewares" {
            let content = FileManager.default.contents(atPath: "\(sandbox.workPath)/\(name)") ?? Data()
            #expect(content.range(of: Data("canary".utf8)) == nil, "\(name)")
        }
    }
}
