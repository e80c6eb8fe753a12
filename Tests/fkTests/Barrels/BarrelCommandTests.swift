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
}
