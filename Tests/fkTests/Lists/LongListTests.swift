import TestSupport
import Testing

@testable import fk

/// Lists that are longer than what a command holds in memory.
@Suite("fk with long lists") struct LongListTests {
    private static let count = 5_000
    private let sandbox: Sandbox

    init() throws { sandbox = try Sandbox() }

    private func urls(_ server: String) -> [String] { (0..<Self.count).map { "\(server)/f\($0)" } }

    @Test("a long list keeps its order through import, list, show, export, verbs and trash")
    func throughout() async throws {
        let urls = urls("http://h.example")
        let added = try await sandbox.fk("barrel", "import", "all", "-", input: urls.joined(separator: "\n"))
        #expect(added.status == 0 && added.output.contains("\(Self.count) added; "), "\(added)")
        #expect(try await sandbox.json("list").array.compactMap { $0.text("url") } == urls)
        let shown = try await sandbox.json("barrel", "show", "all")
        #expect(shown.number("total") == Self.count)
        #expect((shown["members"] as? [[String: Any]])?.compactMap { $0["url"] as? String } == urls)
        let table = try await sandbox.fk("list").output.split(separator: "\n")
        #expect(table.count == Self.count + 1 && table[Self.count].hasSuffix(" f\(Self.count - 1)"))
        #expect(try await sandbox.fk("barrel", "export", "all").output.split(separator: "\n").map(String.init) == urls)
        #expect(try await sandbox.json("barrel", "missing", "all").array.compactMap { $0.text("url") } == urls)
        let again = try await sandbox.fk("barrel", "import", "all", "-", input: urls.joined(separator: "\n"))
        #expect(again.output.contains("0 added, \(Self.count) known already; "), "\(again)")
        for (verb, note) in [("suspend", "suspended, 0 B kept"), ("resume", "queued: it starts with the next run")] {
            let result = try await sandbox.fk(verb, "--all")
            let lines = result.output.split(separator: "\n")
            #expect(lines.count == 21 && lines[0].hasSuffix("http://h.example/f0  \(note)"), "\(result)")
            #expect(lines[20] == "… and \(Self.count - 20) more: \(Self.count) of \(Self.count) changed in all")
        }
        let suspended = try await sandbox.json("suspend", "-b", "all").array
        #expect(suspended.compactMap { $0.text("url") } == urls)
        try await sandbox.done("trash", "-y", "-b", "all")
        #expect(try await sandbox.fk("list", "--json").output == "[]\n")
        #expect(try await sandbox.json("barrel", "show", "all").number("total") == 0)
    }

    @Test(
        "a long document from a pipe keeps its order; malformed at its end, it is refused before anything is made",
        arguments: ["metalink", "json"])
    func document(form: String) async throws {
        let urls = urls("http://h.example")
        let (start, end): (String, String)
        let files: [String]
        if form == "json" {
            (start, end) = ("[", "]")
            files = urls.map { "{\"url\":\"\($0)\"}," }
        } else {
            (start, end) = ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">", "</metalink>")
            files = urls.enumerated().map { "<file name=\"\($0)\"><url>\($1)</url></file>" }
        }
        // The first entry is left out, which is not said of a document that is refused.
        let first = files[0].replacing("h.example", with: "h.example:99999").replacing("\"0\"", with: "\"-\"")
        let text = ([start, first] + files).joined(separator: "\n")
        let bad = try await sandbox.fk("barrel", "import", "all", "-", input: text)
        #expect(bad.status == ExitStatus.usage, "\(bad)")
        #expect(bad.errors.contains("standard input:\(Self.count + 2):"), "\(bad.errors)")
        #expect(!bad.errors.contains("99999"), "\(bad.errors)")
        #expect(try WorkPath(sandbox.workPath).allTaskIDs().isEmpty)
        var whole = text
        if form == "json" { whole.removeLast() }
        let added = try await sandbox.fk("barrel", "import", "all", "-", input: whole + end)
        #expect(added.status == ExitStatus.taskFailed && added.output.contains("\(Self.count) added; "), "\(added)")
        #expect(added.errors.contains("standard input:2: ") && added.errors.contains("99999"), "\(added)")
        #expect(try await sandbox.json("list").array.compactMap { $0.text("url") } == urls)
    }

    @Test("without room for a long list the error names the folder and TMPDIR, and nothing is made")
    func noRoom() async throws {
        let result = try await sandbox.start(
            ["get", "-i", "-"], input: urls("http://h.example").joined(separator: "\n"),
            environment: ["TMPDIR": "/nonexistent/folder"]
        ).end()
        #expect(result.status != 0)
        #expect(result.errors.contains("/nonexistent/folder") && result.errors.contains("TMPDIR"), "\(result.errors)")
        #expect(try WorkPath(sandbox.workPath).allTaskIDs().isEmpty)
    }
}
