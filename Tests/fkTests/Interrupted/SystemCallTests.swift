import TestSupport
import Testing

@testable import fk

/// Whether strace is here and may trace, which containers often forbid.
private enum Tracing {
    static let isPossible: Bool = {
        guard let strace = Program.find("strace") else { return false }
        return (try? FKProgram.wait(for: strace, ["-f", "-o", "/dev/null", "true"]))?.status == 0
    }()
}

/// Single system calls of `fk` that fail or kill it, by strace. Needs strace and leave to trace.
@Suite(
    "Killed or failing at one system call",
    .enabled(if: Tracing.isPossible, "strace is not installed or may not trace here"))
final class SystemCallTests: ServedSuite {
    private let body = Bytes.pattern(count: 300_000)

    override init() throws {
        try super.init()
        server.routeOthers { [body] in .ranged(body, for: $0, etag: "\"1\"") }
    }

    private func traced(_ injection: String, _ words: [String]) async throws -> FKProgram.Output {
        // strace injects into calls that it traces, and into no others.
        let call = injection.prefix { $0 != ":" }
        return try await FKProgram.run(
            try #require(Program.find("strace")),
            ["-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(injection)", FKProgram.path] + words,
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
    }

    private func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test(
        "killed at the N-th call: the same command completes, nothing is left and nothing quarantined",
        arguments: ["fchmod", "pwrite64", "renameat2", "mkdir"], 1...8)
    func killed(_ call: String, _ count: Int) async throws {
        let words = ["get", server.url("/a"), server.url("/b"), "-d", sandbox.files]
        let first = try await traced("\(call):signal=KILL:when=\(count)", words)
        #expect(first.status == 137 || first.status == 0)
        for name in try names(sandbox.files) where !name.hasPrefix(".") { #expect(try sandbox.bytes(name) == body) }
        try await sandbox.done(words)
        #expect(try names(sandbox.files) == ["a", "b"])
        for name in ["a", "b"] { #expect(try sandbox.bytes(name) == body) }
        #expect(try names("\(sandbox.workPath)/quarantine") == [])
        #expect(try await sandbox.fk("list").errors == "")
    }

    static let partsFolders = [FileManager.default.temporaryDirectory] + (TemporaryFolder.memory.map { [$0] } ?? [])

    @Test(
        "killed with part files in another folder: the same command completes, and nothing is left",
        arguments: ["pwrite64", "renameat2", "unlinkat", "fsync", "utimensat", "close"], Array(1...4))
    func killedWithParts(_ call: String, _ count: Int) async throws {
        for parent in Self.partsFolders {
            let parts = try TemporaryFolder(in: parent)
            let (url, words) = (server.url("/\(parent.lastPathComponent)"), ["--parts-folder", parts.path])
            let first = try await traced("\(call):signal=KILL:when=\(count)", ["get", url] + words)
            #expect(first.status == 137 || first.status == 0)
            let requests = server.requests.count
            // Every second time the option is taken away.
            try await sandbox.done(["get", url] + (count % 2 == 0 ? words : []))
            #expect(try sandbox.bytes(parent.lastPathComponent) == body)
            #expect(try names(sandbox.files).allSatisfy { !$0.hasPrefix(".") } && parts.names == [])
            // Only a copy has its time set: all bytes are there.
            if call == "utimensat", count == 1, parent == TemporaryFolder.memory {
                #expect(first.status == 137 && server.requests.count == requests)
            }
        }
        #expect(try names("\(sandbox.workPath)/quarantine") == [])
    }

    @Test("a sync that fails is an error that names the place, and leaves one file in the end", arguments: 1...4)
    func sync(_ count: Int) async throws {
        let words = ["get", server.url("/a"), "-d", sandbox.files, "--durability", "power"]
        let first = try await traced("fsync:error=EIO:when=\(count)", words)
        // Calls are counted for each thread, so not every count is reached.
        if first.status != 0 {
            // The first call of the process syncs the layout file of the work path.
            #expect([1, 3].contains(first.status) && first.errors.contains(sandbox.folder.path), "\(first.errors)")
            #expect(try names(sandbox.files).allSatisfy { $0.hasPrefix(".") })
        }
        try await sandbox.done(words)
        #expect(try names(sandbox.files) == ["a"])
        #expect(try sandbox.bytes("a") == body)
    }

    @Test("the sync of the folder fails after the file got its name: it is not fetched again beside itself")
    func folderSync() async throws {
        let words = ["get", server.url("/a"), "-d", sandbox.files, "--durability", "power"]
        let trace = "\(sandbox.folder.path)/trace"
        _ = try await FKProgram.run(
            try #require(Program.find("strace")),
            [
                "-f", "-o", trace, "-P", sandbox.files, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=1",
                FKProgram.path,
            ]
                + words, environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(try String(contentsOfFile: trace, encoding: .utf8).contains("EIO"))
        #expect(try names(sandbox.files).allSatisfy { $0.hasPrefix(".") })
        try await sandbox.done(words)
        #expect(try names(sandbox.files) == ["a"])
        #expect(try sandbox.bytes("a") == body)
        #expect(server.requests.count == 1)
    }

    @Test("a member whose record cannot be read is named, and fk barrel show does not end with 0")
    func unreadMember() async throws {
        try await sandbox.done("get", "-b", "set", server.url("/a"), server.url("/b"), "-d", ".")
        let id = try #require(sandbox.reader.records().first).id.hex
        let info = "\(sandbox.workPath)/tasks/\(id.prefix(2))/\(id).info"
        for words in [["barrel", "show", "set"], ["barrel", "show", "set", "--json"]] {
            let result = try await FKProgram.run(
                try #require(Program.find("strace")),
                [
                    "-f", "-o", "/dev/null", "-P", info, "-e", "trace=pread64", "-e", "inject=pread64:error=EIO",
                    FKProgram.path,
                ] + words, environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
            #expect(result.status == 1)
            #expect(result.errors.contains("warning: Cannot read \(info)"), "\(result.errors)")
        }
    }

    @Test("killed before the folder's sync: with Durability.power the record on the disk says complete already")
    func recordedBeforeRename() async throws {
        let words = ["get", server.url("/a"), "-d", sandbox.files, "--durability", "power"]
        let first = try await FKProgram.run(
            try #require(Program.find("strace")),
            [
                "-f", "-o", "/dev/null", "-P", sandbox.files, "-e", "trace=fsync", "-e",
                "inject=fsync:signal=KILL:when=1", FKProgram.path,
            ] + words, environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(first.status == 137)
        #expect(try names(sandbox.files) == ["a"])
        #expect(try await sandbox.fk("list", "--state", "complete").output.contains("a"))
        try await sandbox.done(words)
        #expect(server.requests.count == 1)
    }

    @Test("the layout file is synced before it has its name")
    func layoutSync() async throws {
        let trace = "\(sandbox.folder.path)/trace"
        _ = try await FKProgram.run(
            try #require(Program.find("strace")),
            ["-f", "-o", trace, "-e", "trace=fsync,rename", FKProgram.path, "get", server.url("/a"), "-d", "."],
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n")
        let rename = try #require(calls.firstIndex { $0.contains("rename(") && $0.contains("/layout") })
        #expect(calls[..<rename].contains { $0.contains("fsync(") })
    }

    /// Stops `fk get` in the middle of a file, and gives the path of its part file.
    private func partOfInterrupted(_ words: [String]) async throws -> String {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 100_000, gate)
        let running = try sandbox.start(words)
        let record = try #require(await sandbox.record(server.url("/a")) { $0.received == 100_000 })
        running.signal(SIGTERM)
        _ = await running.end()
        gate.open()
        return "\(sandbox.files)/\(try #require(record.partName))"
    }

    private func traced(_ injection: String, path: String, _ words: [String]) async throws -> FKProgram.Output {
        try await FKProgram.run(
            try #require(Program.find("strace")),
            ["-f", "-o", "/dev/null", "-P", path, "-e", "trace=pwrite64", "-e", "inject=\(injection)", FKProgram.path]
                + words,
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
    }

    @Test("a write that fails is an error with the place and the reason; the same command goes on")
    func writeFails() async throws {
        let words = ["get", server.url("/a"), "-d", sandbox.files]
        let part = try await partOfInterrupted(words)
        let failed = try await traced("pwrite64:error=EIO:when=1", path: part, words)
        #expect(failed.status == 1 && failed.errors.contains(part), "\(failed.errors)")
        #expect(failed.errors.contains("Input/output error"))
        #expect(try names(sandbox.files) == [part.split(separator: "/").last.map(String.init)])
        try await sandbox.done(words)
        #expect(try sandbox.bytes("a") == body)
    }

    @Test("writes that are interrupted are done again")
    func interrupted() async throws {
        let words = ["get", server.url("/a"), "-d", sandbox.files]
        let part = try await partOfInterrupted(words)
        let result = try await traced("pwrite64:error=EINTR:when=1+2", path: part, words)
        #expect(result.status == 0, "\(result.errors)")
        #expect(try sandbox.bytes("a") == body)
    }
}
