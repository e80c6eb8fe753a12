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
        "on a terminal, lines about a wrong command line end between words, and a secret with a blank stays hidden",
        .needsPseudoTerminal, arguments: [40, 80])
    func words(columns: Int) throws {
        let terminal = try PseudoTerminal(columns: columns)
        let words = ["get", "-C", "-", "-s", "--user", "me:the secret pass word", "http://h.example/"]
        let result = try terminal.run(FKProgram.path, words, environment: ["FK_WORK_PATH": sandbox.workPath])
        #expect(result.status == 2 && !result.raw.contains("secret"), "\(result.raw)")
        let said = result.screen.flatMap { $0.split(separator: " ") }.joined(separator: " ")
        #expect(said.contains("the same command continues what fk began, and --adopt FILE continues another program's"))
    }

    @Test("the help of watch has the keys of its screen, and that of a barrel's verb no option that it lacks")
    func help() async throws {
        let watch = try await sandbox.done("help", "watch").output.split(whereSeparator: \.isWhitespace)
        let text = watch.joined(separator: " ")
        for key in WatchModel.help { #expect(text.contains("\(key.keys): \(key.meaning)."), "\(text)") }
        #expect(try await !sandbox.done("help", "barrel", "forget").output.contains("--run"))
    }

    @Test("paragraphs keep their words, their inner spaces and their indent") func paragraph() {
        #expect(Columns.paragraph("one two  three", to: 20) == ["one two  three"])
        #expect(Columns.paragraph("one two  three", to: 8) == ["one two ", "three"])
        #expect(Columns.paragraph("  -s  a b c d", to: 9) == ["  -s  a b", "    c d"])
        #expect(Columns.paragraph("longer-than-a-line x", to: 6) == ["longer-than-a-line", "x"])
        #expect(Columns.paragraph("", to: 6) == [""])
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
