import FKCore
import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import fk

/// Rows 81 to 85, with the real program.
@Suite("Faults: middleware programs", .timeLimit(.minutes(10)))
struct FaultProgramTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 100_000)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
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

    private func dies(_ file: String) async throws -> Bool {
        let pid = try #require(await eventually { text(file).flatMap { Int32($0.trimmingCharacters(in: .newlines)) } })
        return try await eventually { kill(pid, 0) != 0 ? true : nil } ?? false
    }

    @Test(
        "fault 81: arguments reach the program as they are: no shell; the URL is in its input only",
        arguments: Stage.allCases)
    func noShell(_ stage: Stage) async throws {
        let script = try Program.writeScript(
            "#!/bin/sh\nprintf '<%s>' \"$@\" > args\ncat > input\n", to: "\(sandbox.folder.path)/show")
        try await add(stage.rawValue, "show", [script, "$HOME", "; touch owned", "a b", "`id`", "--json", "", "-b"])
        let url = server.url("/a?x=$(touch%20owned);touch%20owned")
        #expect(try await sandbox.fk("get", "-o", "a", url).status == 0)
        #expect(text("args") == "<$HOME><; touch owned><a b><`id`><--json><><-b>")
        #expect(text("input")?.contains("\"url\":\"\(url)\"") == true)
        #expect(try sandbox.names() == ["a", "args", "input"])
    }

    @Test("fault 82: a program that hangs is ended after its time limit, with its children", arguments: Stage.allCases)
    func hangs(_ stage: Stage) async throws {
        try await add(
            stage, "guard", script: "trap '' TERM; sleep 1000 & echo $! > child; echo $$ > self; wait", "-b", "bad",
            "--time-limit", "1")
        try await expectFailure("did not end within 1 s and was killed")
        #expect(try await dies("child"))
        #expect(try await dies("self"))
    }

    @Test("fault 82: a program that leaves a process behind with its output open", arguments: Stage.allCases)
    func leavesBehind(_ stage: Stage) async throws {
        try await add(stage, "guard", script: "sleep 1000 & echo $! > child; exit 0", "-b", "bad")
        try await expectFailure("left a process behind")
        #expect(try await dies("child"))
    }

    @Test("fault 83: a program that floods its output is ended", arguments: Stage.allCases)
    func floods(_ stage: Stage) async throws {
        try await add(stage, "guard", script: "echo $$ > self; exec cat /dev/zero", "-b", "bad")
        try await expectFailure("wrote more than 1 MiB and was killed")
        #expect(try await dies("self"))
    }

    @Test(
        "fault 83: a flood of errors is drained: only its beginning is the reason, in one line without control characters"
    )
    func floodsErrors() async throws {
        try await add(
            .request, "guard", script: "printf 'no\\033[2J entry\\n' >&2; head -c 30000000 /dev/zero >&2; exit 1", "-b",
            "bad")
        try await expectFailure("refused the request: no\\e[2J entry")
    }

    @Test(
        "fault 84: the environment of a program has six variables, and it inherits no descriptor",
        arguments: Stage.allCases)
    func surroundings(_ stage: Stage) async throws {
        try await add(
            stage, "look",
            script:
                "tr '\\0' '\\n' < /proc/$$/environ | cut -d= -f1 | sort > env; (ls /proc/$$/fd > fds); "
                + "echo $FK_STAGE $FK_TASK_ID > ids")
        let result = try await sandbox.fk("get", server.url("/a"))
        #expect(result.status == 0, "\(result.errors)")
        let id = try #require(try await sandbox.json("info", server.url("/a")).text("id"))
        #expect(text("ids") == "\(stage.rawValue) \(id)\n")
        #if os(Linux)
            #expect(text("env") == "FK_STAGE\nFK_TASK_ID\nHOME\nLANG\nPATH\nTMPDIR\n")
            // In a subshell: the shell itself holds the ends of a pipe, and what a redirection replaces, for an instant.
            #expect(text("fds") == "0\n1\n2\n")
        #endif
    }

    @Test(
        "fault 85: crashes, garbage, missing and unfit programs: the task fails closed", arguments: Stage.allCases,
        0..<6)
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

    @Test("status 75 asks for a retry, at most as often as the task has attempts", arguments: Stage.allCases)
    func retries(_ stage: Stage) async throws {
        try await add(stage, "slow", script: "echo x >> runs; echo not yet >&2; exit 75")
        let result = try await sandbox.fk("get", "--retry", "1", server.url("/a"))
        #expect(result.status == 1 && result.errors.contains("not yet"), "\(result.errors)")
        #expect(text("runs") == "x\nx\n")
        #expect(server.requests("/a").count == (stage == .request ? 0 : 2))
        #expect(!sandbox.exists("a"))
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
        let second = try await sandbox.fk("get", server.url("/a"))
        #expect(second.status == 0, "\(second.errors)")
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
        let second = try await sandbox.fk("get", server.url("/a"))
        #expect(second.status == 0, "\(second.errors)")
        #expect(try sandbox.bytes("moved/a") == body)
        #expect(try sandbox.names() == ["moved", "second"])
        #expect(
            server.requests("/a").count == (links ? 1 : 2), "only a program that removes the old place costs the file")
        #expect(try await sandbox.json("info", server.url("/a")).text("path") == "\(sandbox.files)/moved/a")
    }

    @Test("200 tasks with programs in all three stages; the engine of a second command runs them as well")
    func many() async throws {
        server.routeOthers { .ranged([1, 2, 3], for: $0, etag: "\"v\"") }
        try await add(.request, "key", script: #"echo '{"headers":{"X-Key":"k"}}'"#)
        try await add(.response, "check", script: "exit 0")
        try await add("download", "note", ["/bin/sh", "-c", "cat >> notes"])
        let urls = (0..<200).map { server.url("/many/\($0)") }
        let result = try await sandbox.fk(["get", "-q", "-j", "64", "-d", "many"] + urls)
        #expect(result.status == 0, "\(result.errors)")
        #expect(server.requests.count == 200 && server.requests.allSatisfy { $0["X-Key"] == "k" })
        let notes = text("notes")?.split(separator: "\n") ?? []
        #expect(notes.count { $0.contains("\"state\":\"complete\"") } == 200, "all are told before the command ends")
        #expect(try await sandbox.json("list", "--state", "complete").array.count == 200)
    }

    @Test("a change of the list reaches an engine at work")
    func live() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 50_000, gate)
        let running = try sandbox.start("get", server.url("/slow"))
        _ = try await sandbox.record(server.url("/slow")) { $0.received > 0 }
        try await add(.request, "key", script: #"echo '{"headers":{"X-Key":"k"}}'"#)
        let second = try await sandbox.fk("get", server.url("/a"))
        #expect(second.status == 0, "\(second.errors)")
        #expect(server.requests("/a").map { $0["X-Key"] } == ["k"])
        #expect(try await sandbox.fk("middleware", "remove", "key").status == 0)
        #expect(try await sandbox.fk("get", server.url("/b")).status == 0)
        #expect(server.requests("/b").map { $0["X-Key"] } == [nil])
        gate.open()
        #expect(await running.end().status == 0)
    }

    @Test("fault 78: what a program adds is nowhere but in its request")
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
