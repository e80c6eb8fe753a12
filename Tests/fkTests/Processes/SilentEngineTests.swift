import TestSupport
import Testing

@testable import fk

/// The process that runs the downloads is stopped.
@Suite("An engine that is stopped")
struct SilentEngineTests {
    @Test("who waits behind a stopped engine says so and what to do, and goes on when it is continued or killed")
    func stopped() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        let body = Bytes.pattern(count: 2_000_000)
        for name in ["a", "b"] { server.serve("/\(name)", body, stallingAt: 500_000, gate) }
        let engine = try sandbox.start("get", server.url("/a"), "-b", "set")
        #expect(try await sandbox.record(server.url("/a")) { $0.received == 500_000 } != nil)
        engine.signal(SIGSTOP)
        let followers = [
            try sandbox.start("get", server.url("/b"), "-q"), try sandbox.start("run"),
            try sandbox.start("watch", "--json"),
            try sandbox.start("barrel", "watch", "set", "--json"),
        ]
        let asker = try sandbox.start("suspend", server.url("/a"))
        for waiting in followers + [asker] {
            #expect(try await waiting.says("has shown no sign of life"), "\(waiting.errors)")
            #expect(waiting.errors.contains("kill -CONT \(engine.pid)"))
        }
        // The one that asks gives up and takes its request back; those that follow stay.
        let refused = await asker.end()
        #expect(refused.status != 0 && refused.errors.contains("withdrawn"), "\(refused.errors)")
        engine.signal(SIGCONT)
        #expect(try await followers[1].says("runs the downloads again"))
        #expect(try sandbox.reader.records(url: server.url("/a")).first?.state == .action)
        engine.signal(SIGSTOP)
        engine.kill()
        gate.open()
        let end = await followers[0].end()
        #expect(end.status == 0, "\(end.errors)")
        #expect(await followers[1].end().status == 0)
        #expect(try sandbox.bytes("a") == body)
        #expect(try sandbox.bytes("b") == body)
        followers[2].signal(SIGINT)
        for watcher in followers[2...] { _ = await watcher.end() }
    }

    @Test("a command that asks once says at once that the engine is stopped, and shows no rate")
    func asked() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        let gate = Gate()
        server.serve("/a", Bytes.pattern(count: 2_000_000), stallingAt: 500_000, gate)
        let engine = try sandbox.start("get", server.url("/a"), "-b", "set")
        #expect(try await sandbox.record(server.url("/a")) { $0.received == 500_000 } != nil)
        #expect(try await sandbox.fk("list").errors == "")
        #expect(EngineLock.silentHolder(WorkPath(sandbox.workPath)) == nil)
        engine.signal(SIGSTOP)
        _ = try await eventually { EngineLock.silentHolder(WorkPath(sandbox.workPath)) }
        for words in [
            ["list"], ["info", server.url("/a")], ["why", server.url("/a")], ["watch"], ["metrics"],
            ["barrel", "list"],
        ] {
            let asked = try await sandbox.fk(words)
            #expect(
                asked.status == 0 && asked.errors.contains("has shown no sign of life"), "\(words): \(asked.errors)")
            #expect(asked.errors.contains("kill -CONT \(engine.pid)"))
            #expect(!asked.output.contains("/s"), "\(words): \(asked.output)")
        }
        #expect(try await sandbox.fk("why", server.url("/a")).output.contains("shows no sign of life"))
        let document = try JSON(try await sandbox.fk("info", server.url("/a"), "--json").output)
        #expect((document["bytesPerSecond"] as? NSNumber)?.intValue ?? 0 == 0)
        engine.signal(SIGCONT)
        gate.open()
        #expect(await engine.end().status == 0)
    }
}
