import TestSupport
import Testing

@testable import fk

/// What is known not to fit is not begun.
@Suite(
    "No room for a file of known length",
    .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
final class FreeSpaceTests: ServedSuite {
    private let disk: TinyDisk
    private let body = Bytes.pattern(count: 800_000)
    private let small = Bytes.pattern(count: 10_000)

    override init() throws {
        disk = try TinyDisk(kilobytes: 1_024)
        try super.init()
        for name in ["a", "b"] { server.serve("/\(name)", body) }
        server.serve("/small", small)
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    private func get(_ words: String...) async throws -> FKProgram.Output {
        try await sandbox.fk(["get", "-d", disk.path] + words)
    }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: disk.path).filter { $0 != "filler" }.sorted() }
    }

    @Test(
        "a file that is longer than the free space is an error before its first byte; with room it arrives",
        arguments: ["a", "small"])
    func tooLong(name: String) async throws {
        try disk.fill(name == "a" ? 400_000 : .max)
        let result = try await get(url(name), "--min-free", "0")
        #expect(result.status == 1)
        for text in [disk.path, "are needed", "are free"] { #expect(result.errors.contains(text), "\(result.errors)") }
        let info = try await sandbox.json("info", url(name))
        #expect(info.text("state") == "error" && info["error", "code"] as? String == "no-space")
        #expect(try names == [])
        #expect(server.requests("/\(name)").count == 1, "it is not tried again by itself")
        try disk.clear()
        #expect(try await get(url(name), "--min-free", "0").status == 0)
        #expect(try disk.bytes(name) == (name == "a" ? body : small))
    }

    @Test("64 MiB stay free unless less is asked for", arguments: ["a", "small"])
    func defaultFree(name: String) async throws {
        let refused = try await get(url(name))
        #expect(refused.status == 1 && refused.errors.contains("64.0 MiB"), "\(refused.errors)")
        #expect(try names == [])
        // Just as much as is asked for: one byte decides.
        let left = 1_048_576 - body.count
        #expect(try await get(url("a"), "--min-free", "\(left + 1)").status == 1)
        #expect(try await get(url("a"), "--min-free", "\(left)").status == 0)
        #expect(try disk.bytes("a") == body)
    }

    @Test("a barrel's tasks, a run and the saved setting have the option too")
    func barrels() async throws {
        let words = ["barrel", "create", "set", url("a"), "-d", disk.path]
        try await sandbox.done(words)
        #expect(try await sandbox.fk("barrel", "run", "set").status == 1)
        try await sandbox.done("barrel", "retry", "set")
        try await sandbox.done("barrel", "run", "set", "--min-free", "0")
        #expect(try disk.bytes("a") == body)
        let own = ["barrel", "create", "own", url("small"), "-d", disk.path, "--min-free", "1K"]
        try await sandbox.done(own)
        try await sandbox.done("run")
        #expect(try disk.bytes("small") == small)
        try await sandbox.done("config", "set", "min-free", "0")
        #expect(try await get(url("small"), "-o", "again").status == 0)
        #expect(try await get(url("a"), "--min-free", "-1").status == 2)
    }

    @Test("two files that fit only one by one: one arrives, of the other no byte is fetched")
    func together() async throws {
        let gate = Gate()
        for name in ["a", "b"] { server.serve("/\(name)", body, stallingAt: 300_000, gate) }
        let running = try sandbox.start(["get", url("a"), url("b"), "-d", disk.path, "--min-free", "0", "-j", "2"])
        let refused = try await eventually { (try? sandbox.reader.records())?.first { $0.state == .error } }
        gate.open()
        #expect(await running.end().status == 1)
        #expect(refused?.received == 0 && refused?.error?.message.contains("being fetched") == true)
        let whole = refused?.task.url == url("a") ? "b" : "a"
        #expect(try names == [whole])
        #expect(try disk.bytes(whole) == body)
    }

    @Test("of an interrupted file only the rest needs room; without it, it waits with its bytes")
    func resumed() async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 400_000, gate)
        let running = try sandbox.start(["get", url("a"), "-d", disk.path, "--min-free", "0"])
        #expect(try await sandbox.record(url("a")) { $0.received == 400_000 } != nil)
        running.signal(SIGINT)
        _ = await running.end()
        gate.open()
        try disk.fill(500_000)
        let waits = try sandbox.start(["get", url("a"), "-d", disk.path, "--min-free", "0", "--retry", "100"])
        #expect(try await sandbox.record(url("a")) { $0.waiting?.reason == .noSpace }?.received == 400_000)
        #expect(server.requests("/a").count == 1, "the server is asked once there is room")
        try disk.clear()
        try disk.fill(100_000)
        #expect(await waits.end().status == 0)
        #expect(try disk.bytes("a") == body)
        #expect(server.requests("/a").map { $0["Range"] } == [nil, "bytes=400000-"])
    }

    @Test("a copy by --reuse that does not fit leaves nothing, and is made once there is room")
    func reuse() async throws {
        let sum = ["--checksum", Bytes.sha256(body)]
        try await sandbox.done(["get", url("a"), "-d", "elsewhere"] + sum)
        try disk.fill(400_000)
        let words = [url("b"), "--reuse", "--min-free", "0", "--retry", "1"]
        #expect(try await sandbox.fk(["get", "-d", disk.path] + words + sum).status == 1)
        #expect(try names == [])
        try disk.clear()
        try await sandbox.done(["get", "-d", disk.path] + words + sum)
        #expect(try names == ["b"] && disk.bytes("b") == body)
    }
}
