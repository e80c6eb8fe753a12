import TestSupport
import Testing

@testable import fk

/// With the real program on a disk of 1 MiB, and under a limit on the size of files.
@Suite("The disk")
final class FullDiskTests: ServedSuite {
    private let body = Bytes.pattern(count: 800_000)
    private let small = Bytes.pattern(count: 10_000)

    override init() throws {
        try super.init()
        for name in ["a", "b"] { server.serve("/\(name)", body) }
        server.serve("/small", small)
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    /// `fk get` with the first half of `a`; the other half comes once the gate is open.
    private func begun(_ words: [String], input: String? = nil) async throws -> (running: RunningFK, gate: Gate) {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 400_000, gate)
        let running = try sandbox.start(["get", "--min-free", "0"] + words, input: input)
        try #require(try await sandbox.record(url("a")) { $0.received == 400_000 } != nil)
        return (running, gate)
    }

    @Test(
        "a full inode table: the message says so, the status says that another run helps, and that run has every file",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func inodes() async throws {
        let disk = try TinyDisk(inodes: 40)
        let list = (0..<12).map { "\(server.url("/small?\($0)"))\n  out=f\($0)" }.joined(separator: "\n")
        try sandbox.put(list, "list")
        let fillers = try (0..<34).map { index in
            let path = "\(disk.path)/filler\(index)"
            try Data().write(to: URL(fileURLWithPath: path))
            return path
        }
        let words = ["get", "-i", "list", "-d", disk.path, "--retry", "0", "--shard", "1/1", "--min-free", "0"]
        let full = try await sandbox.fk(words)
        #expect(full.status == ExitStatus.tryAgain, "\(full.errors)")
        #expect(full.errors.contains("all inodes are in use"))
        for path in fillers { try FileManager.default.removeItem(atPath: path) }
        try await sandbox.done(words)
        for index in 0..<12 { #expect(try disk.bytes("f\(index)") == small) }
    }

    @Test(
        "on a full disk a task waits for room with its bytes, and the others go on",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func waitsForRoom() async throws {
        let disk = try TinyDisk(kilobytes: 1_024)
        let (running, gate) = try await begun(
            ["-i", "-", "-d", disk.path, "--retry", "100"],
            input: "\(url("a"))\n\(url("small"))\n  dir=\(sandbox.files)\n")
        try disk.fill()
        gate.open()
        let waiting = try #require(await sandbox.record(url("a")) { $0.waiting?.reason == .noSpace })
        #expect(waiting.state == .idle && waiting.received > 0)
        #expect(try await sandbox.record(url("small")) { $0.state == .complete } != nil)
        #expect(try sandbox.bytes("small") == small)
        // Between two attempts: during one it says that it runs.
        let isTold = try await eventually {
            try await sandbox.fk("why", url("a")).output.contains("no space on the disk") ? true : nil
        }
        #expect(isTold == true)
        try disk.clear()
        let end = await running.end()
        #expect(end.status == 0, "\(end.errors)")
        #expect(end.errors.contains(disk.path) && end.errors.contains("No space left on device"))
        #expect(try disk.bytes("a") == body)
        #expect(server.requests("/a").last?["Range"]?.hasPrefix("bytes=") == true, "what was there is kept")
    }

    @Test(
        "when the attempts are used up, the task is in error with the place and the reason; the same command goes on",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func givesUp() async throws {
        let disk = try TinyDisk(kilobytes: 1_024)
        let words = [url("a"), "-d", disk.path, "--retry", "0"]
        let (running, gate) = try await begun(words)
        try disk.fill()
        gate.open()
        #expect(await running.end().status == 1)
        let info = try await sandbox.json("info", url("a"))
        #expect(info.text("state") == "error" && info["error", "code"] as? String == "no-space")
        #expect((info["error", "message"] as? String)?.contains(disk.path) == true)
        try disk.clear()
        try await sandbox.done(["get", "--min-free", "0"] + words)
        #expect(try disk.bytes("a") == body)
        #expect(server.requests("/a").last?["Range"]?.hasPrefix("bytes=") == true)
    }

    @Test(
        "on a full disk no record is lost or torn; what is known goes on, what is new is refused whole",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func fullWorkPath() async throws {
        let disk = try TinyDisk(kilobytes: 1_024)
        let work = ["--work-path", "\(disk.path)/work"]
        try await sandbox.done(["barrel", "create", "set", url("a"), url("b"), "-d", "."] + work)
        try disk.fill()
        try await sandbox.done(["run"] + work)
        #expect(try sandbox.bytes("a") == body)
        #expect(try sandbox.bytes("b") == body)
        let refused = try await sandbox.fk(["get", url("small"), "-d", "."] + work)
        #expect(refused.status != 0 && refused.errors.contains("no space"), "\(refused.errors)")
        let list = try await sandbox.json(["list"] + work)
        #expect(list.array.map { $0.text("state") } == ["complete", "complete"])
        try disk.clear()
        try await sandbox.done(["get", url("small"), "-d", "."] + work)
        #expect(try sandbox.bytes("small") == small)
    }

    @Test(
        "a work path that cannot be made on a full disk ends with 3 and the reason",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func noWorkPath() async throws {
        let disk = try TinyDisk(kilobytes: 64)
        try disk.fill()
        let words = ["get", url("small"), "-d", ".", "--work-path", "\(disk.path)/work"]
        let result = try await sandbox.fk(words)
        #expect(result.status == 3 && result.errors.contains("no space"), "\(result.errors)")
        #expect(server.requests.isEmpty)
        try disk.clear()
        try await sandbox.done(words)
    }

    @Test(
        "at the limit on a file's size the program lives, the bytes are kept, and the others go on",
        .enabled(if: !Sanitizer.isActive, "\(Sanitizer.reason)"))
    func fileSizeLimit() async throws {
        // In blocks of 512 bytes.
        let result = try await sandbox.fk(under: "-f 600", ["get", url("a"), url("small"), "-d", ".", "--retry", "0"])
        #expect(result.status == 1, "\(result.errors)")
        #expect(result.errors.contains("\(sandbox.files)/") && result.errors.contains("File too large"))
        #expect(try sandbox.bytes("small") == small)
        let failed = try #require(sandbox.reader.records(url: url("a")).first)
        #expect(failed.error?.code == .noSpace && failed.received > 0)
        let part = try #require(failed.partName)
        // The last write fitted in part only: it was continued, and only then there was an error.
        #expect(try sandbox.bytes(part).count >= 600 * 512)
        try await sandbox.done("get", url("a"), "-d", ".")
        #expect(try sandbox.bytes("a") == body)
        #expect(server.requests("/a").last?["Range"] == "bytes=\(failed.received)-")
    }

    @Test(
        "on a read-only disk it is an error with the reason, and nothing is fetched",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func readOnly() async throws {
        let disk = try TinyDisk(kilobytes: 1_024)
        let known = ["--work-path", "\(disk.path)/known"]
        try await sandbox.done(["barrel", "create", "set", url("a"), "-d", "."] + known)
        try disk.makeReadOnly()
        for words in [
            ["config", "set", "jobs", "2"], ["run", "--detach"], ["barrel", "run", "set", "--detach"],
        ] {
            let refused = try await sandbox.fk(words + known)
            #expect(refused.status == 3 && refused.errors.contains(disk.path), "\(words): \(refused.errors)")
        }
        let result = try await sandbox.fk("get", url("a"), "-d", disk.path)
        #expect(result.status == 1)
        #expect(result.errors.contains(disk.path) && result.errors.contains("Read-only file system"))
        let work = try await sandbox.fk("get", url("a"), "-d", ".", "--work-path", "\(disk.path)/work")
        #expect(work.status == 3 && work.errors.contains(disk.path), "\(work.errors)")
        #expect(server.requests.isEmpty)
    }

    @Test(
        "a disk that is unmounted meanwhile is an error with the place, and the others go on",
        .enabled(if: TinyDisk.isPossible, "\(TinyDisk.reason)"))
    func unmounted() async throws {
        let disk = try TinyDisk(kilobytes: 1_024)
        let (running, gate) = try await begun(
            ["-i", "-", "-d", disk.path, "--retry", "0"],
            input: "\(url("a"))\n\(url("b"))\n  dir=\(sandbox.files)\n")
        try Program.run("umount", ["-l", disk.path])
        gate.open()
        let end = await running.end()
        #expect(end.status == 1, "\(end.errors)")
        #expect(end.errors.contains(disk.path))
        #expect(try sandbox.bytes("b") == body)
        #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path) == [])
        #expect(try sandbox.reader.records(url: url("a")).first?.state == .error)
    }
}
