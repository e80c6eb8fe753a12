import TestSupport
import Testing

@testable import fk

/// Where libfaketime is, which gives a program another wall clock.
private enum FakeTime {
    static let reason: Comment = "libfaketime is not installed, or does not go with a sanitizer"
    static let library: String? = {
        let folders =
            ["/usr/lib", "/usr/lib64"]
            + ((try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib")) ?? []).map { "/usr/lib/\($0)" }
        return Sanitizer.isActive
            ? nil
            : folders.map { "\($0)/faketime/libfaketimeMT.so.1" }.first {
                FileManager.default.fileExists(atPath: $0)
            }
    }()
}

@Suite("Other processes, other clocks, other owners")
struct OtherProcessTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 800_000)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        server.serve("/a", body)
    }

    private var url: String { server.url("/a") }

    @Test(
        "a lock file that names a living process which is no engine keeps nobody waiting",
        arguments: [ProcessInfo.processInfo.processIdentifier, 1, 999_999_999])
    func staleLock(_ pid: Int32) async throws {
        try await sandbox.fk("barrel", "create", "set", url, "-d", ".")
        let path = WorkPath(sandbox.workPath).lockPath
        var text = try String(contentsOfFile: path, encoding: .utf8)
        let own = try #require(text.firstMatch(of: /"pid":\d+/))
        text.replaceSubrange(own.range, with: "\"pid\":\(pid)")
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        let run = try await sandbox.fk("run")
        #expect(run.status == 0 && !run.errors.contains("following"), "\(run.errors)")
        #expect(try sandbox.bytes("a") == body)
    }

    // MARK: Clocks

    /// Runs `fk` with a wall clock that is so many seconds off; time goes on for it as for everybody.
    private func fk(clock seconds: String, _ words: [String]) async throws -> FKProgram.Output {
        let environment = [
            "FK_WORK_PATH": sandbox.workPath, "LD_PRELOAD": try #require(FakeTime.library), "FAKETIME": seconds,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        ]
        let files = sandbox.files
        return try await FKProgram.run(words, environment: environment, folder: files)
    }

    private func expectSensibleNumbers(_ output: String) throws {
        for event in try JSON.lines(output) {
            for key in ["received", "previousReceived", "bytesPerSecond", "seconds"] {
                if let number = event[key] as? NSNumber { #expect(number.doubleValue >= 0, "\(event.value)") }
            }
        }
    }

    @Test(
        "the clock of the engine is an hour off: others hand tasks over, steer it and see sensible numbers",
        .enabled(if: FakeTime.library != nil, FakeTime.reason), arguments: ["-3600s", "+3600s"])
    func clocksDiffer(_ shift: String) async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 400_000, gate)
        server.serve("/b", body)
        server.serve("/c", body, stallingAt: 400_000, gate)
        async let engine = fk(clock: shift, ["get", url, server.url("/c"), "-d", ".", "--json"])
        for url in [url, server.url("/c")] {
            #expect(try await sandbox.record(url) { $0.received == 400_000 } != nil)
        }
        try await sandbox.done("suspend", url)
        try await sandbox.done("resume", url)
        let follower = try await sandbox.done("get", server.url("/b"), "-d", ".", "--json")
        try expectSensibleNumbers(follower.output)
        gate.open()
        let end = try await engine
        #expect(end.status == 0, "\(end.errors)")
        try expectSensibleNumbers(end.output)
        #expect(try sandbox.bytes("a") == body)
        #expect(try sandbox.bytes("b") == body)
    }

    // MARK: Versions and owners

    @Test("a record of a later version is left untouched and said so; the others go on")
    func laterRecord() async throws {
        server.serve("/b", body)
        try await sandbox.fk("barrel", "create", "set", url, server.url("/b"), "-d", ".")
        let id = try #require(sandbox.reader.records(url: url).first).id
        let path = WorkPath(sandbox.workPath).infoPath(id)
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        bytes[8] = 2
        let checksum = bytes[..<60].withUnsafeBytes { CRC32C.checksum($0) }
        bytes.replaceSubrange(60..<64, with: withUnsafeBytes(of: checksum.littleEndian, Array.init))
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        for words in [["list"], ["run"]] {
            let result = try await sandbox.done(words)
            #expect(result.errors.contains("format 2"), "\(words): \(result.errors)")
        }
        #expect(try sandbox.bytes("b") == body)
        #expect(server.requests("/a").isEmpty)
        #expect([UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) == bytes)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(sandbox.workPath)/quarantine") == [])
    }

    @Test(
        "another user's work path ends with 3 and is left alone, whatever is asked for",
        .enabled(if: geteuid() == 0, "needs root to give a folder away"),
        arguments: [
            ["get", "http://127.0.0.1:1/a"], ["run"], ["list"], ["info", "abcdef"], ["watch"], ["suspend", "--all"],
            ["trash", "--all", "-y"], ["barrel", "create", "x"], ["barrel", "run", "x"], ["barrel", "list"],
        ])
    func foreignWorkPath(_ words: [String]) async throws {
        let manager = FileManager.default
        try manager.createDirectory(
            atPath: sandbox.workPath, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try #require(chown(sandbox.workPath, 65_534, 65_534) == 0)
        let result = try await sandbox.fk(words)
        #expect(result.status == 3, "\(result.errors)")
        #expect(result.errors.contains("another user") && result.errors.contains(sandbox.workPath))
        #expect(try manager.contentsOfDirectory(atPath: sandbox.workPath) == [])
    }
}
