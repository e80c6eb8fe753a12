import TestSupport
import Testing

@testable import fk

@Suite("What is refused before anything is fetched") struct UsageTests {
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    @Test(
        "A folder that cannot be written to is named, and the server asked for nothing",
        arguments: ["file", "file/sub"])
    func folder(path: String) async throws {
        let server = try FaultServer()
        try sandbox.put("", "file")
        let result = try await sandbox.fk("get", server.url("/a"), "-d", path)
        #expect(result.status == 1)
        #expect(result.errors.contains("\(sandbox.files)/\(path)"))
        #expect(server.requests.isEmpty)
    }

    @Test(
        "What does not exist ends with 4",
        arguments: [
            ["info", "http://h/nothing"], ["why", "abcdef"], ["suspend", "http://h/nothing"], ["resume", "abcdef"],
            ["cancel", "0123456789"], ["retry", "http://h/x"], ["trash", "-y", "http://h/x"],
            ["barrel", "show", "nix"],
            ["barrel", "run", "nix"], ["barrel", "watch", "nix"], ["barrel", "add", "nix", "http://h/a"],
            ["barrel", "suspend", "nix"], ["barrel", "delete", "nix"], ["barrel", "export", "nix"],
            ["list", "--barrel", "nix"], ["info", "not-an-id"],
        ], [false, true])
    func notFound(words: [String], hasWorkPath: Bool) async throws {
        if hasWorkPath { #expect(try await sandbox.fk("trash", "--all", "-y").status == 0) }
        let result = try await sandbox.fk(words)
        #expect(result.status == 4, "\(result.errors)")
        #expect(result.output == "" && result.errors.hasPrefix("fk: "))
    }

    @Test("Queries of an empty work path are empty, not wrong") func empty() async throws {
        #expect(try await sandbox.fk("list").errors == "No tasks.\n")
        #expect(try await sandbox.json("list").array.isEmpty)
        #expect(try await sandbox.json("barrel", "list").array.isEmpty)
        let run = try await sandbox.fk("run")
        #expect(run.status == 0 && run.output == "" && run.errors.contains("Nothing"))
    }
}
