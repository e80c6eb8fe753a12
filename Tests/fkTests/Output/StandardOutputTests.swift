import TestSupport
import Testing

@testable import fk

/// Results that cannot be written are a failure. A reader that is gone is none.
@Suite("Standard output")
final class StandardOutputTests: ServedSuite {
    private static let hasFull = FileManager.default.fileExists(atPath: "/dev/full")

    override init() throws {
        try super.init()
        server.routeOthers { _ in .ok([1, 2, 3]) }
    }

    private func shell(_ line: String) async throws -> FKProgram.Output {
        let own = [
            "FK": FKProgram.path, "FK_WORK_PATH": sandbox.workPath, "URL": server.url("/f"), "LC_ALL": "C.UTF-8",
        ]
        return try await FKProgram.run("/bin/sh", ["-c", line], environment: own, folder: sandbox.files)
    }

    /// Whatever prints a result.
    static let commands = [
        "--version", "--version --json", "get --version", "help", "help get", "get -h", "list", "list --json",
        "info $URL", "info $URL --json", "info $URL --raw", "why $URL", "why $URL --json", "barrel list",
        "barrel list --json", "barrel show b", "barrel show b --json", "barrel export b",
        "barrel export b --format json", "barrel export b --format aria2", "config show", "config show --json",
        "config path", "completions bash", "completions zsh", "completions fish", "suspend $URL", "suspend $URL --json",
        "trash -y $URL", "barrel delete b", "barrel create c", "barrel create c --json", "get --json $URL-2",
        "run --json", "get --detach $URL-3",
    ]

    @Test(
        "a full disk behind standard output ends every command with 1 and the system's reason",
        .enabled(if: hasFull, "this system has no /dev/full"), arguments: commands)
    func full(command: String) async throws {
        try await sandbox.done("get", server.url("/f"), "-b", "b")
        try await sandbox.done("config", "set", "jobs", "2")
        let result = try await shell("$FK \(command) > /dev/full")
        #expect(result.status == 1, "\(command): \(result.errors)")
        #expect(result.errors.contains(String(cString: strerror(ENOSPC))), "\(command): \(result.errors)")
        #expect(result.errors.contains("standard output"))
    }

    @Test("the downloads themselves are done all the same", .enabled(if: hasFull, "this system has no /dev/full"))
    func stillDone() async throws {
        let result = try await shell("$FK get --json $URL > /dev/full")
        #expect(result.status == 1)
        #expect(try sandbox.bytes("f") == [1, 2, 3])
    }

    @Test("a status that tells more is kept", .enabled(if: hasFull, "this system has no /dev/full"))
    func otherStatus() async throws {
        server.route("/missing") { _ in .status(404) }
        let missing = server.url("/missing")
        #expect(try await shell("$FK get --json \(missing) --retry 0 > /dev/full").status == 1)
        #expect(try await shell("$FK info --json abcdef > /dev/full").status == 4)
    }

    @Test("a reader that is gone is no failure")
    func gone() async throws {
        for index in 0..<3 { try await sandbox.fk("get", server.url("/\(index)")) }
        let result = try await shell("{ $FK list --json; echo $? >&2; } | head -c 1; { $FK help; echo $? >&2; } | true")
        #expect(result.errors == "0\n0\n", "\(result.errors)")
    }

    @Test("a closed standard output is a failure, and no file is taken for it")
    func closed() async throws {
        let result = try await shell("$FK get --json $URL >&-")
        #expect(result.status == 1 && result.errors.contains("standard output"), "\(result.errors)")
        #expect(try sandbox.bytes("f") == [1, 2, 3])
        #expect(try await shell("$FK list >&-").status == 1)
        #expect(try await sandbox.json("list").array.count == 1)
        // The path of the file is a result. Where there is no result to write, a closed stream is no failure.
        #expect(try await shell("$FK get $URL-2 <&- >&- 2>&-").status == 1)
        #expect(try sandbox.bytes("f-2") == [1, 2, 3])
        #expect(try await shell("$FK get -q $URL-3 <&- >&- 2>&-").status == 0)
        #expect(try sandbox.bytes("f-3") == [1, 2, 3])
    }
}
