import TestSupport
import Testing

@testable import fk

@Suite("The schema of the JSON output") struct JSONSchemaTests {
    private let schema: JSONSchema

    init() throws { schema = try JSONSchema(Data(contentsOf: Repository.url("Docs/fk.schema.json"))) }

    /// Runs `fk` with `--json` and checks what it prints, as one document or as one a line.
    private func check(
        _ sandbox: Sandbox, _ words: [String], _ definition: String, status: Int32 = 0, lines: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let result = try await sandbox.fk(words + ["--json"])
        #expect(result.status == status, "\(words): \(result.errors)", sourceLocation: sourceLocation)
        let documents = lines ? result.output.split(separator: "\n").map(String.init) : [result.output]
        #expect(!documents.isEmpty, sourceLocation: sourceLocation)
        for document in documents {
            let value = try JSONDecoder().decode(JSONValue.self, from: Data(document.utf8))
            let faults = schema.faults(in: value, as: definition)
            #expect(faults.isEmpty, "\(words): \(document)", sourceLocation: sourceLocation)
        }
    }

    @Test("Every document that a query, a verb or a run prints is as the schema says, and has no other field")
    func real() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.route("/a.bin") { _ in .ok(Bytes.pattern(count: 3_000)) }
        server.route("/none") { _ in .status(404) }
        let file = server.url("/a.bin")
        try await check(sandbox, ["list"], "tasks")
        try await check(sandbox, ["barrel", "create", "b", "-d", "sub"], "done")
        try await check(sandbox, ["barrel", "add", "b", file], "added")
        try await check(sandbox, ["barrel", "run", "b"], "event", lines: true)
        try await check(
            sandbox, ["get", "-q", file, server.url("/none"), "--attribute", "m=7"], "event", status: 1, lines: true)
        try await check(sandbox, ["barrel", "add", "b", server.url("/c")], "added")
        try await check(sandbox, ["retry", "--run", "--state", "cancelled"], "event", lines: true)
        try await check(sandbox, ["resume", "--run", "last"], "verbs")
        try await check(sandbox, ["barrel", "list"], "barrels")
        try await check(sandbox, ["barrel", "show", "b"], "barrel")
        try await check(sandbox, ["barrel", "export", "b", "--format", "json"], "tasks")
        try await check(sandbox, ["barrel", "export", "b"], "tasks")
        try await check(sandbox, ["list"], "tasks")
        try await check(sandbox, ["info", server.url("/none")], "task")
        try await check(sandbox, ["info", file], "tasks")
        try await check(sandbox, ["why", server.url("/none")], "why")
        try await check(sandbox, ["set", server.url("/none"), "owner=me"], "done")
        for verb in ["retry", "suspend", "resume", "cancel", "toggle"] {
            try await check(sandbox, [verb, server.url("/none")], "verbs")
        }
        try await check(sandbox, ["limit", "2M"], "done")
        try await check(sandbox, ["limit", "1M", "-b", "b"], "done")
        try await check(sandbox, ["limit"], "limits")
        try await check(sandbox, ["limit", "-b", "b"], "barrelLimit")
        try await check(sandbox, ["middleware", "list"], "middlewares")
        // What follows the two dashes belongs to the program.
        let add = ["middleware", "add", "--json", "--stage"]
        let script = #"echo '{"headers":{"a":"1"}}'"#
        try await check(sandbox, add + ["request", "--name", "m", "-b", "b", "--", "sh", "-c", script], "done")
        try await check(sandbox, add + ["download", "--name", "n", "--", "false"], "done")
        try await check(sandbox, ["middleware", "list"], "middlewares")
        try await check(sandbox, ["middleware", "test", "m", file], "middlewareTest")
        try await check(sandbox, ["middleware", "test", "n", file], "middlewareTest", status: 1)
        try await check(sandbox, ["middleware", "remove", "n"], "done")
        try await check(sandbox, ["relink", server.url("/none"), server.url("/other")], "done")
        try await check(sandbox, ["forget", server.url("/none")], "verbs")
        try await check(sandbox, ["forget", "--state", "error"], "verbs")
        try await check(sandbox, ["metrics"], "metrics")
        try await check(sandbox, ["verify", "--all"], "verified")
        try await check(sandbox, ["verify", "--all", "--repair"], "verifiedFile", lines: true)
        try await check(sandbox, ["barrel", "missing", "b"], "missing", status: 1)
        try await check(sandbox, ["barrel", "remove", "b", server.url("/c")], "done")
        server.route("/a.bin") { _ in .status(404) }
        try await check(sandbox, ["barrel", "refresh", "b"], "refreshedFile", lines: true)
        server.route("/pub/") { request in
            let page = "<html><title>Index of /pub/</title><a href=\"/pub/x\">x</a></html>"
            return request.method == "GET"
                ? .ok(Array(page.utf8), headers: ["Content-Type": "text/html"]) : .status(405)
        }
        server.route("/pub/x") { _ in .ok([1]) }
        let pub = server.url("/pub/")
        try await check(sandbox, ["get", "-r", pub, "--dry-run"], "sourceFile", lines: true)
        try await sandbox.done("barrel", "import", "pub", pub)
        try await check(sandbox, ["barrel", "sync", "pub", "--dry-run"], "sourceFile", lines: true)
        try await sandbox.done("barrel", "run", "pub")
        try await check(sandbox, ["barrel", "publish", "pub", "set"], "published")
        try await check(sandbox, ["trash", "-b", "pub", "-y"], "verbs")
        try await check(sandbox, ["barrel", "delete", "pub", "-y"], "done")
        try await check(sandbox, ["barrel", "remove", "b", file], "done")
        try await check(sandbox, ["barrel", "delete", "b", "-y"], "done")
        try await check(sandbox, ["trash", "--all", "-y"], "verbs")
        server.route("/y") { _ in .ok([2]) }
        try await check(sandbox, ["get", server.url("/pub/x")], "event", lines: true)
        try await check(sandbox, ["get", "--disk-budget", "4K", server.url("/y")], "event", lines: true)
        try await check(sandbox, ["trim", "--to", "0", "-y"], "trimmed")
        try await check(sandbox, ["config", "set", "jobs", "4"], "settings")
        try await check(sandbox, ["config", "show"], "settings")
        try await check(sandbox, ["config", "get", "jobs"], "setting")
        try await check(sandbox, ["config", "get", "proxy"], "setting")
        try await check(sandbox, ["config", "host", "a.example", "--rate", "3/s"], "hostPolicies")
        try await check(sandbox, ["config", "host"], "hostPolicies")
        try await check(sandbox, ["config", "path"], "path")
        try await check(sandbox, ["--version"], "version")
    }

    @Test("Events and documents that need another state: waiting, barrels with unknown lengths")
    func made() throws {
        let waiting = Waiting(.retry, until: Date(timeIntervalSince1970: 1_700_000_000), host: "h")
        var waits = DownloadInfo(id: TaskID(url: "http://h/", destination: nil), url: "http://h/", state: .idle)
        waits.attempts = 2
        waits.error = DownloadError(.httpStatus, "It answered 503.", status: 503, isRetryable: true)
        var complete = waits
        complete.state = .complete
        complete.path = "/d/f"
        let events: [RunEvent] = [
            .state(waits, waiting: waiting), .state(complete),
            .barrel(
                name: "b", bytes: ByteCount(received: 5), isExpectedKnown: false, complete: 0, error: 0, total: 1),
        ]
        for event in events {
            let value = try JSONDecoder().decode(JSONValue.self, from: Data(event.json(at: Date())))
            #expect(schema.faults(in: value, as: "event").isEmpty)
        }
    }

    @Test("The validator finds wrong types, missing, unknown and contradicting members")
    func validator() throws {
        func faults(_ json: String, _ definition: String) throws -> Int {
            schema.faults(in: try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8)), as: definition).count
        }
        #expect(try faults(#"{"path": "/a"}"#, "path") == 0)
        #expect(try faults(#"{"path": 1}"#, "path") == 1)
        #expect(try faults(#"{}"#, "path") == 1)
        #expect(try faults(#"{"path": "/a", "more": 1}"#, "path") == 1)
        #expect(try faults(#"{"done": false, "note": ""}"#, "done") == 1)
        #expect(try faults(#"{"name": "b", "rate": 1.5}"#, "barrelLimit") == 1)
        #expect(try faults(#"{"name": "b", "rate": true}"#, "barrelLimit") == 1)
        #expect(try faults(#"{"event": "other"}"#, "event") > 0)
        #expect(try faults("[]", "path") == 1)
    }

    @Test("The schema as a whole accepts each document", arguments: ["published", "setting", "sourceFile", "trimmed"])
    func named(definition: String) {
        let references = schema.root["anyOf"]?.list.compactMap { $0["$ref"]?.text } ?? []
        #expect(references.contains("#/$defs/\(definition)"))
    }

    @Test("The schema names the command of every document, and has every state, setting and event")
    func documented() throws {
        let documents = schema.root["anyOf"]?.list ?? []
        #expect(!documents.isEmpty)
        for document in documents {
            let name = document["$ref"]?.text?.split(separator: "/").last.map(String.init) ?? ""
            let description = schema.root["$defs"]?[name]?["description"]?.text ?? ""
            #expect(description.contains("fk "), "\(name) names no command")
        }
        let states = schema.root["$defs"]?["state"]?["enum"]?.list.compactMap(\.text)
        #expect(states.map(Set.init) == Set(DownloadState.allCases.map(\.rawValue)))
        let settings = schema.root["$defs"]?["settings"]?["properties"]?.members.keys
        #expect(settings.map { Set($0) } == Set(SavedOption.all.map(\.name)))
    }
}
