import TestSupport
import Testing

@testable import fk

@Suite("Barrels, end to end") final class BarrelCommandTests: ServedSuite {
    private let bodies = (1...3).map { Bytes.pattern(count: 100_000 * $0, seed: UInt64($0)) }

    override init() throws {
        try super.init()
        for (index, body) in bodies.enumerated() { server.serve("/\(index)", body) }
    }

    private func url(_ index: Int) -> String { server.url("/\(index)") }

    @Test("a run of suspended members alone says that it leaves them out") func suspendedMembers() async throws {
        let (server, sandbox) = (try FaultServer(), try Sandbox())
        server.serve("/s", [1])
        try await sandbox.done("barrel", "create", "set", server.url("/s"))
        try await sandbox.done("suspend", "-b", "set")
        let run = try await sandbox.done("barrel", "run", "set")
        #expect(run.errors.contains("1 suspended file of set is left out: fk resume -b set"), "\(run.errors)")
        #expect(server.requests.isEmpty)
    }

    @Test("Created, filled, run, shown: a barrel is on disk after every command") func life() async throws {
        let created = try await sandbox.fk("barrel", "create", "set", url(0), "-d", "got")
        #expect(created.status == 0 && created.output.contains("fk barrel run set"))
        #expect(server.requests.isEmpty)
        try await sandbox.done("barrel", "add", "set", url(1), url(2), server.url("/gone"))
        var shown = try await sandbox.json("barrel", "show", "set")
        #expect(shown.number("total") == 4 && shown.number("complete") == 0 && shown.isNull("expected"))

        let run = try await sandbox.fk("barrel", "run", "set", "--json")
        #expect(run.status == 1)
        let events = try JSON.lines(run.output)
        #expect(events.last?.text("event") == "summary")
        #expect(events.last?.number("complete") == 3 && events.last?.number("error") == 1)
        let barrel = try #require(events.last { $0.text("event") == "barrel" })
        #expect(
            barrel.keys == [
                "event", "name", "received", "expected", "complete", "error", "total", "isExpectedKnown", "time",
            ])
        #expect(barrel["isExpectedKnown"] as? Bool == false, "nobody knows how long the missing file is")
        #expect(barrel.text("name") == "set" && barrel.number("received") == 600_000 && barrel.number("total") == 4)
        for index in 0...2 { #expect(try sandbox.bytes("got/\(index)") == bodies[index]) }

        shown = try await sandbox.json("barrel", "show", "set")
        #expect(shown.number("complete") == 3 && shown.number("error") == 1)
        #expect(shown.number("received") == 600_000 && shown.number("expected") == 600_000)
        #expect(shown["isExpectedKnown"] as? Bool == false)
        #expect(shown.array("members").map { $0.text("state") } == ["complete", "complete", "complete", "error"])
        #expect(shown.array("members").allSatisfy { $0.array("barrels").count == 1 })
        let list = try await sandbox.json("barrel", "list").array
        #expect(list.count == 1 && list[0].text("name") == "set" && list[0].number("complete") == 3)
        #expect(try await sandbox.fk("barrel", "show", "set").output.contains("set: 3 of 4 complete, 1 failed"))
    }

    @Test("a finished file that was emptied is not complete, wherever files are looked for, and is fetched again")
    func emptied() async throws {
        try await sandbox.done("get", "-b", "set", url(0), url(1))
        try sandbox.put("", "0")
        let missing = try await sandbox.fk("barrel", "missing", "set")
        #expect(missing.status == 1 && missing.output == "\(url(0))\n", "\(missing)")
        let shown = try await sandbox.json("barrel", "show", "set")
        #expect(shown.number("complete") == 1 && shown.number("gone") == 1)
        #expect(shown.array("members").map { $0["gone"] as? Bool } == [true, false])
        #expect(try await sandbox.done("list").output.contains(" gone "))
        #expect(try await sandbox.json("info", url(0))["gone"] as? Bool == true)
        let info = try await sandbox.done("info", url(0))
        #expect(info.output.contains("the file has another length than fk left it with"), "\(info.output)")
        #expect(try await sandbox.done("why", url(0)).output.contains("fk retry"))
        let run = try await sandbox.done("barrel", "run", "set")
        let paths = run.output.split(separator: "\n").sorted().map { $0.split(separator: "/").last }
        #expect(paths == ["0.1", "1"], "what somebody has written stays: \(run)")
        #expect(try sandbox.bytes("0.1") == bodies[0] && sandbox.bytes("0") == [])
        try await sandbox.done("barrel", "missing", "set")
    }

    @Test("get -b puts files into the barrel's folder, unless -d is given") func folder() async throws {
        try await sandbox.done("barrel", "create", "set", "-d", "two")
        try await sandbox.done("get", "-b", "set", url(0))
        try await sandbox.done("get", "-b", "set", "-d", "three", url(1))
        #expect(try sandbox.bytes("two/0") == bodies[0] && sandbox.bytes("three/1") == bodies[1])
        #expect(try sandbox.names() == ["three", "two"])
        try await sandbox.done("get", "-b", "made", url(2))
        #expect(try sandbox.bytes("2") == bodies[2], "a barrel that get makes has no folder")
    }

    @Test("the command that is offered for a barrel whose name begins with a dash has dashes before it")
    func dashedName() async throws {
        let created = try await sandbox.done("barrel", "create", "--", "-x", url(0))
        #expect(created.output.contains("fetch with: fk barrel run -- -x\n"), "\(created.output)")
        #expect(try await sandbox.done("barrel", "run", "--", "-x").status == 0)
    }

    @Test("barrel add of a URL that a list has brought into the barrel under the same name is known already")
    func addedAgain() async throws {
        try sandbox.put("\(url(0))\n  out=0\n\(url(1))\n  out=other\n", "list")
        try await sandbox.done("barrel", "import", "set", "list", "-d", "got")
        #expect(try await sandbox.done("barrel", "add", "set", url(0)).output.contains("0 added, 1 known already"))
        #expect(try await sandbox.done("barrel", "add", "set", url(1)).output.contains("1 added"), "another name")
        try await sandbox.done("barrel", "run", "set")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.files)/got").sorted() == ["0", "1", "other"])
    }

    @Test("barrel list names a barrel that cannot be read, and lists the others") func unreadable() async throws {
        for name in ["good", "bad"] { try await sandbox.done("barrel", "create", name, url(0)) }
        try Data("garbage".utf8).write(to: URL(fileURLWithPath: "\(sandbox.workPath)/barrels/bad.barrel"))
        for words in [["barrel", "list"], ["barrel", "list", "--json"]] {
            let list = try await sandbox.fk(words)
            #expect(list.status == 1 && list.errors.contains("bad.barrel") && list.output.contains("good"), "\(list)")
        }
        try FileManager.default.removeItem(atPath: "\(sandbox.workPath)/barrels/good.barrel")
        #expect(try await !sandbox.fk("barrel", "list").errors.contains("No barrels"))
    }

    @Test("barrel trash and forget keep what another barrel has too, and name it", arguments: ["trash", "forget"])
    func shared(verb: String) async throws {
        try await sandbox.done("barrel", "create", "old", url(0), url(1), "-d", "got")
        try await sandbox.done("barrel", "create", "new", url(0), url(2), "-d", "got")
        try await sandbox.done("barrel", "run", "old", "new")
        let first = try await sandbox.done("barrel", verb, "old", "-y")
        #expect(
            first.errors.contains("0 stays: the barrel new has it too.") && first.output.contains(url(1)), "\(first)")
        #expect(!first.output.contains(url(0)))
        #expect(sandbox.exists("got/0") && sandbox.exists("got/1") == (verb == "forget"))
        #expect(try await sandbox.done("barrel", "show", "new").output.contains("2 of 2 complete"))
        #expect(try await sandbox.json("barrel", "show", "old").number("total") == 0)
        try await sandbox.done("barrel", verb, "new", "-y")
        #expect(sandbox.exists("got/0") == (verb == "forget"))
    }

    @Test("barrel watch says that no process runs the downloads") func watchIdle() async throws {
        try await sandbox.done("barrel", "create", "set", server.url("/a"))
        let watch = try sandbox.start("barrel", "watch", "set")
        #expect(try await watch.says("No process runs the downloads. Start them with: fk barrel run set\n"))
        watch.signal(SIGINT)
        #expect(await watch.end().status == 130)
    }

    @Test("get -b puts files into a barrel, and barrel watch tells how it stands") func watch() async throws {
        #expect(try await sandbox.fk("get", url(0), server.url("/gone"), "-b", "set").status == 1)
        let watched = try await sandbox.fk("barrel", "watch", "set", "--json")
        #expect(watched.status == 1)
        let events = try JSON.lines(watched.output)
        #expect(events.last?.text("event") == "summary")
        #expect(events.last?.number("complete") == 1 && events.last?.number("error") == 1)
    }

    @Test(
        "publish: refused until every member is complete, then the files appear together; a killed one leaves nothing")
    func publish() async throws {
        try await sandbox.done("barrel", "create", "set", url(0), url(1), "-d", "got")
        let early = try await sandbox.fk("barrel", "publish", "set", "pub/model")
        #expect(
            early.status == 1 && early.errors.contains("2 of 2 members") && early.errors.contains("fk barrel run set"))
        try await sandbox.done("barrel", "run", "set")
        let first = try await sandbox.json("barrel", "publish", "set", "pub/model")
        #expect(first["changed"] as? Bool == true && first.number("files") == 2)
        for index in 0...1 { #expect(try sandbox.bytes("pub/model/\(index)") == bodies[index]) }
        #expect(try await sandbox.done("barrel", "publish", "set", "pub/model").output.contains("already"))
        try await sandbox.done("barrel", "add", "set", url(2))
        try await sandbox.done("barrel", "run", "set")
        // What a killed publish has left goes with the next one.
        let folder = "\(sandbox.files)/pub"
        let record = try String(contentsOfFile: "\(sandbox.workPath)/sets/set.set", encoding: .utf8)
        let token = try #require(record.split(separator: "\"").drop { $0 != "token" }.dropFirst(2).first)
        try FileManager.default.createDirectory(
            atPath: "\(folder)/.\(token).1.fkset/inner", withIntermediateDirectories: true)
        let pending = record.replacingOccurrences(of: "\"pending\":[]", with: "\"pending\":[\"\(folder)/model\"]")
        try #require(pending != record)
        try Data(pending.utf8).write(to: URL(fileURLWithPath: "\(sandbox.workPath)/sets/set.set"))
        chmod("\(sandbox.workPath)/sets/set.set", 0o600)
        let second = try await sandbox.json("barrel", "publish", "set", "pub/model", "--durability", "power")
        #expect(second.number("reused") == 2 && second.text("version") != first.text("version"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["model"])
        let refused = try await sandbox.fk("barrel", "publish", "set", "got")
        #expect(refused.status == 1 && refused.errors.contains("choose another folder"))
    }

    @Test("publish names the files that have other names now, and the folder that it no longer knows; it follows links")
    func publishNotes() async throws {
        try await sandbox.done("get", "-b", "set", "-d", "got/en", url(0))
        try await sandbox.done("barrel", "publish", "set", "pub")
        try await sandbox.done("get", "-b", "set", "-d", "got/de", url(1))
        let renamed = try await sandbox.done("barrel", "publish", "set", "pub")
        #expect(renamed.errors.contains("0 is now en/0, because the files' common folder is now \(sandbox.files)/got."))
        let moved = try await sandbox.done("barrel", "publish", "set", "other")
        #expect(moved.errors.contains("set was published to \(sandbox.files)/pub before."), "\(moved.errors)")
        try FileManager.default.createSymbolicLink(
            atPath: "\(sandbox.files)/link", withDestinationPath: "\(sandbox.files)/other")
        let linked = try await sandbox.done("barrel", "publish", "set", "link")
        #expect(linked.output.hasPrefix("\(sandbox.files)/other has version "), "\(linked.output)")
    }

    @Test(
        "publish refuses a folder on which another one of the same file system is mounted",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func bindMount() async throws {
        try await sandbox.done("get", "-b", "set", url(0))
        let folder = "\(sandbox.files)/pub"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        try Program.run("mount", ["--bind", folder, folder])
        defer { _ = try? Program.run("umount", ["-l", folder]) }
        let result = try await sandbox.fk("barrel", "publish", "set", "pub")
        #expect(result.status != 0 && result.errors.contains("is mounted there"), "\(result.errors)")
        #expect(try sandbox.names() == ["0", "pub"])
    }
}
