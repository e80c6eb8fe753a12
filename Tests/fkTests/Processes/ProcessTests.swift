import TestSupport
import Testing

@testable import fk

@Suite("Several processes on one work path") final class ProcessTests: ServedSuite {
    private let body = Bytes.pattern(count: 2_000_000)
    private let gate = Gate()

    override init() throws {
        try super.init()
        for name in ["a", "b", "c"] { server.serve("/\(name)", body, stallingAt: 500_000, gate) }
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    /// Starts `fk get` and returns once each of the files has its first 500,000 bytes.
    private func startStalled(_ names: String..., options: [String] = []) async throws -> RunningFK {
        let running = try sandbox.start(["get"] + names.map(url) + options)
        for name in names { #expect(try await sandbox.record(url(name)) { $0.received == 500_000 } != nil) }
        return running
    }

    @Test(
        "Verbs of another process act on one of several running tasks",
        arguments: [
            ("suspend", "suspend"), ("toggle", "suspend"), ("cancel", "cancel"), ("trash", nil),
        ] as [(String, String?)])
    func verbs(verb: String, state: String?) async throws {
        let own = Gate()
        server.serve("/a", body, stallingAt: 500_000, own)
        let running = try await startStalled("a", "b")
        try await sandbox.done([verb, url("a")] + (verb == "trash" ? ["-y"] : []))
        #expect(try sandbox.reader.records(url: url("a")).first?.state.rawValue == state)
        #expect(try sandbox.reader.records(url: url("b")).first?.state == .action)
        own.open()
        if state == "suspend" {
            try await sandbox.done(verb == "toggle" ? verb : "resume", url("a"))
            #expect(try await sandbox.record(url("a")) { $0.state == .complete } != nil)
        }
        gate.open()
        let end = await running.end()
        #expect(end.status == (state == "suspend" ? 0 : 1), "\(end.errors)")
        #expect(try sandbox.bytes("b") == body)
        #expect(try sandbox.names() == (state == "suspend" ? ["a", "b"] : ["b"]))
    }

    @Test("-j of a second command gives its own files slots, and the first command's files none")
    func jobs() async throws {
        let running = try sandbox.start("get", url("a"), url("b"), "-j", "1", "-x", "1")
        #expect(try await sandbox.record(url("a")) { $0.received == 500_000 } != nil)
        let other = try sandbox.start("get", url("c"), "-j", "2", "-x", "1")
        #expect(try await sandbox.record(url("c")) { $0.received == 500_000 } != nil)
        let run = try sandbox.start("run", "-j", "8")
        #expect(try await run.says("of this command count if it takes over"))
        #expect(server.requests.map(\.path) == ["/a", "/c"])
        let limits = try await sandbox.json("limit")
        #expect(limits.array("commands").map { $0.number("jobs") } == [1, 2])
        #expect(limits.array("commands").map { $0.number("tasks") } == [2, 1])
        gate.open()
        #expect(await running.end().status == 0)
        #expect(await other.end().status == 0)
        #expect(await run.end().status == 0)
    }

    @Test("--limit-rate of a second command, and a configured one, hold its own files alone")
    func rate() async throws {
        let running = try await startStalled("a")
        let large = Bytes.pattern(count: 30_000_000)
        server.route("/large") { _ in .ok(large) }
        try await sandbox.done("config", "set", "limit-rate", "100K")
        let other = try sandbox.start("get", server.url("/large"))
        #expect(try await sandbox.record(server.url("/large")) { $0.received > 0 } != nil)
        gate.open()
        #expect(await running.end().status == 0)
        #expect(try sandbox.bytes("a") == body)
        let record = try #require(try await sandbox.record(server.url("/large")))
        #expect(record.state != .complete && record.received < 10_000_000)
        other.signal(SIGINT)
        _ = await other.end()
    }

    @Test("fk limit takes daily windows, and lists them") func dailyLimit() async throws {
        try await sandbox.done("limit", "2M")
        try await sandbox.done("limit", "500K", "--daily", "00:00-12:00", "--daily", "12:00-24:00")
        let limits = try await sandbox.json("limit")
        #expect(limits.number("rate") == 500 << 10)
        let text = try await sandbox.done("limit").output
        #expect(text.contains(", daily 00:00-12:00") && text.contains("daily 12:00-24:00"), "\(text)")
        #expect(text.contains("all tasks, at other times: at most 2.0 MiB/s"))
        try await sandbox.done("limit", "none")
        #expect(try await sandbox.done("limit").output == "all tasks: no limit\n")
        for words in [
            ["--daily", "08:00-09:00"], ["1M", "--daily", "8-9"], ["1M", "-b", "b", "--daily", "08:00-09:00"],
        ] {
            #expect(try await sandbox.fk(["limit"] + words).status == 2, "\(words)")
        }
    }

    @Test("fk limit lifts and sets what runs, and lasts") func limit() async throws {
        let large = Bytes.pattern(count: 30_000_000)
        server.route("/large") { _ in .ok(large) }
        #expect(try await sandbox.fk("limit", "-b", "none").status == 4)
        try await sandbox.done("limit", "1")
        #expect(try await sandbox.json("limit").number("rate") == 1)
        let running = try sandbox.start("get", server.url("/large"), "--json")
        await server.waitForRequests(1)
        try await sandbox.done("limit", "none")
        #expect(await running.end().status == 0)
        #expect(try sandbox.bytes("large") == large)
        #expect(try await sandbox.json("limit").isNull("rate"))
        #expect(try await sandbox.fk("limit", "2M", "-b", "b").status == 4)
        try await sandbox.done("barrel", "create", "b")
        try await sandbox.done("limit", "2M", "-b", "b")
        #expect(try await sandbox.json("limit", "-b", "b").number("rate") == 2 << 20)
        #expect(try await sandbox.fk("limit").output.contains("barrel b: at most 2.0 MiB/s"))
        for wrong in ["-1", "1Q", "fast"] {
            let result = try await sandbox.fk("limit", "--", wrong)
            #expect(result.status == 2 && result.errors.contains(wrong))
        }
    }

    @Test("A second fk get hands its files over, follows them, and list shows live bytes") func handOver() async throws
    {
        let engine = try await startStalled("a")
        let follower = try sandbox.start("get", url("b"), "--json")
        #expect(try await sandbox.record(url("b")) { $0.received == 500_000 } != nil)
        let list = try await sandbox.json("list").array
        #expect(list.map { $0.number("received") } == [500_000, 500_000])
        #expect(list.allSatisfy { $0.text("state") == "action" })
        gate.open()
        #expect(await engine.end().status == 0)
        let end = await follower.end()
        #expect(end.status == 0)
        let events = try JSON.lines(end.output)
        #expect(events.contains { $0.text("event") == "state" && $0.text("state") == "complete" })
        #expect(events.filter { $0["url"] != nil }.allSatisfy { $0.text("url") == url("b") }, "only its own")
        #expect(events.last?.number("complete") == 1)
        #expect(try sandbox.bytes("b") == body)
    }

    @Test("The engine is killed: the one that waits takes over and completes its own") func takeOver() async throws {
        let engine = try await startStalled("a")
        let follower = try sandbox.start("get", url("b"))
        #expect(try await sandbox.record(url("b")) { $0.received == 500_000 } != nil)
        engine.kill()
        #expect(await engine.end().status == 137)
        gate.open()
        let end = await follower.end()
        #expect(end.status == 0, "\(end.errors)")
        #expect(end.errors.contains("this one continues with its own 1 file.\n"))
        #expect(try sandbox.bytes("b") == body)
        try await sandbox.done("run")
        #expect(try sandbox.bytes("a") == body)
        #expect(server.requests.dropFirst(2).map { $0["Range"] } == ["bytes=500000-", "bytes=500000-"])
    }

    @Test("The engine is killed and another process takes over: a third one asks it for its own files") func handOn()
        async throws
    {
        let own = Gate()
        server.serve("/c", body, stallingAt: 500_000, own)
        let engine = try sandbox.start("get", url("a"), "-j", "1", "-x", "1")
        #expect(try await sandbox.record(url("a")) { $0.received == 500_000 } != nil)
        let second = try sandbox.start("get", url("b"), "-x", "1")
        let third = try sandbox.start("get", url("c"), "-x", "1")
        for name in ["b", "c"] { #expect(try await sandbox.record(url(name)) { $0.received == 500_000 } != nil) }
        // Only the second one can take over.
        third.signal(SIGSTOP)
        engine.kill()
        #expect(await engine.end().status == 137)
        #expect(try await second.says("this one continues with its own 1 file."))
        third.signal(SIGCONT)
        own.open()
        let end = await third.end()
        #expect(end.status == 0 && end.errors.contains("Process \(second.pid) runs the downloads"), "\(end.errors)")
        #expect(try sandbox.bytes("c") == body && !sandbox.exists("b"))
        gate.open()
        #expect(await second.end().status == 0)
    }

    @Test("fk run that waits behind a killed engine completes everything") func runTakesOver() async throws {
        let engine = try await startStalled("a", "b")
        let run = try sandbox.start("run")
        #expect(try await run.says("following it"))
        engine.kill()
        gate.open()
        #expect(await run.end().status == 0)
        #expect(try sandbox.bytes("a") == body)
        #expect(try sandbox.bytes("b") == body)
    }

    @Test("The engine ends in peace while another one waits: that one goes on") func peacefulEnd() async throws {
        let engine = try await startStalled("a")
        let follower = try sandbox.start("get", url("b"))
        #expect(try await sandbox.record(url("b")) { $0.received == 500_000 } != nil)
        engine.signal(SIGTERM)
        #expect(await engine.end().status == 143)
        gate.open()
        #expect(await follower.end().status == 0)
        #expect(try sandbox.bytes("b") == body)
    }

    @Test("Ctrl-C in a follower leaves the other process at work") func stopFollowing() async throws {
        let engine = try await startStalled("a")
        let follower = try sandbox.start("get", url("b"))
        #expect(try await sandbox.record(url("b")) { $0.received == 500_000 } != nil)
        follower.signal(SIGINT)
        let end = await follower.end()
        #expect(end.status == 130)
        #expect(end.errors.contains("continues with these files") && end.errors.contains("fk watch"), "\(end.errors)")
        gate.open()
        #expect(await engine.end().status == 0)
        #expect(try await sandbox.record(url("b")) { $0.state != .action } != nil)
    }

    @Test("--detach returns at once; watch shows what goes on in the background") func detach() async throws {
        let started = try await sandbox.fk("get", "--detach", url("a"), "-b", "set")
        #expect(started.status == 0 && started.output.contains("fk watch"))
        #expect(try await sandbox.record(url("a")) { $0.received == 500_000 } != nil)
        let watch = try sandbox.start("watch", "--json")
        let barrel = try sandbox.start("barrel", "watch", "set")
        #expect(try await eventually { watch.output.contains("\"received\":500000") ? true : nil } != nil)
        gate.open()
        #expect(await barrel.end().status == 0)
        #expect(try await eventually { watch.output.contains("\"complete\"") ? true : nil } != nil)
        watch.signal(SIGINT)
        let end = await watch.end()
        #expect(end.status == 130)
        #expect(try JSON.lines(end.output).last?.text("event") == "summary")
        #expect(try sandbox.bytes("a") == body)
        #expect(
            try await eventually { EngineLock.isHeld(WorkPath(sandbox.workPath)) ? nil : true } != nil,
            "the background process ends when there is nothing left to do")
    }

    @Test("Eight at once, each with a file of its own") func eight() async throws {
        gate.open()
        for index in 0..<8 { server.serve("/f\(index)", Bytes.pattern(count: 50_000, seed: UInt64(index))) }
        let running = try (0..<8).map { try sandbox.start("get", server.url("/f\($0)")) }
        for (index, process) in running.enumerated() {
            let end = await process.end()
            #expect(end.status == 0, "\(end.errors)")
            #expect(!end.errors.contains("already"), "\(end.errors)")
            #expect(try sandbox.bytes("f\(index)") == Bytes.pattern(count: 50_000, seed: UInt64(index)))
        }
        #expect(try sandbox.reader.records().map(\.state) == Array(repeating: .complete, count: 8))
    }
}
