import TestSupport
import Testing

@testable import fk

@Suite("What fk prints") final class PrintedOutputTests: ServedSuite {
    private let body = Bytes.pattern(count: 400_000)

    override init() throws {
        try super.init()
        server.serve("/a", body)
    }

    /// On a terminal of its own. `work` runs meanwhile, told of what was written.
    private func onTerminal(
        _ words: [String], typing text: String = "", columns: Int = 80,
        during work: @Sendable (PseudoTerminal, Observed<String>) async throws -> Void = { _, _ in }
    ) async throws -> PseudoTerminal.Output {
        let environment = ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm", "LC_ALL": "C.UTF-8"]
        let terminal = try PseudoTerminal(columns: columns, rows: 24)
        terminal.type(text)
        let written = Observed("")
        async let output = offPool {
            try terminal.run(FKProgram.path, words, environment: environment) { text in written.update { $0 = text } }
        }
        try await work(terminal, written)
        return try await output
    }

    @Test("--json: events with all their fields, state changes in order, the summary last") func json() async throws {
        let result = try await sandbox.fk("get", server.url("/a"), server.url("/gone"), "--json", "-j", "1")
        #expect(result.status == 1)
        let events = try JSON.lines(result.output)
        let schema: [String: Set<String>] = [
            "state": ["event", "id", "url", "state", "time"],
            "progress": ["event", "id", "url", "received", "previousReceived", "expected", "bytesPerSecond", "time"],
            "summary": ["event", "complete", "error", "suspend", "bytes", "seconds", "time"],
        ]
        for event in events {
            // What a state has besides.
            let more: [String: Set<String>] = [
                "action": ["attempt"], "complete": ["attempt", "path"], "error": ["attempt", "error"],
            ]
            #expect(event.keys == schema[event.text("event") ?? ""]?.union(more[event.text("state") ?? ""] ?? []))
        }
        func states(_ path: String) -> [String] {
            events.filter { $0.text("event") == "state" && $0.text("url") == server.url(path) }.compactMap {
                $0.text("state")
            }
        }
        #expect(states("/a").suffix(2) == ["action", "complete"])
        #expect(states("/gone").suffix(2) == ["action", "error"])
        let progress = try #require(events.last { $0.text("event") == "progress" })
        #expect(progress.number("received") == 400_000 && progress.number("expected") == 400_000)
        #expect(progress.number("previousReceived") == 0)
        let last = try #require(events.last)
        #expect(last.text("event") == "summary")
        #expect(last.number("complete") == 1 && last.number("error") == 1 && last.number("bytes") == 400_000)
        #expect(events.count { $0.text("event") == "summary" } == 1)
    }

    @Test("-q prints failures only", arguments: ["/a", "/gone"]) func quiet(path: String) async throws {
        let result = try await sandbox.fk("get", server.url(path), "-q")
        #expect(result.output == "")
        #expect(result.errors.isEmpty == (path == "/a"))
        #expect(result.errors.contains("404") == (path == "/gone"))
    }

    @Test(
        "On a terminal: a line for each running file, a total line, finished lines, nothing left over",
        .needsPseudoTerminal)
    func live() async throws {
        let gate = Gate()
        server.serve("/slow-1", body, stallingAt: 100_000, gate)
        server.serve("/slow-2", body, stallingAt: 200_000, gate)
        let urls = ["/slow-1", "/slow-2", "/gone"].map(server.url)
        let output = try await onTerminal(["get", "-d", sandbox.files] + urls) { _, written in
            _ = await written.wait { text in
                [" 25%", " 50%", "0/3 files, 1 failed"].allSatisfy { text.contains($0) }
            }
            gate.open()
        }
        #expect(output.status == 1)
        #expect(output.raw.contains("\u{1b}["))
        #expect(output.raw.contains("slow-1") && output.raw.contains(" 25%") && output.raw.contains(" 50%"))
        #expect(output.raw.contains("0/3 files, 1 failed"))
        try #require(output.screen.count == 6, "\(output.screen)")
        #expect(output.screen.count { $0.hasPrefix("✓ slow-") } == 2)
        #expect(output.screen.contains { $0.hasPrefix("✗ gone") })
        #expect(output.screen[3].hasPrefix("2 of 3 complete, 1 failed"))
        #expect(output.screen[4].contains("/gone  The server answered 404"))
        #expect(output.screen[5].contains("fk relink"), "a file that is gone is not worth another try")
    }

    @Test("The live view follows the size of the terminal", .needsPseudoTerminal) func resize() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 100_000, gate)
        let output = try await onTerminal(["get", "-d", sandbox.files, server.url("/slow")]) { terminal, written in
            _ = await written.wait { $0.contains("━") }
            terminal.resize(columns: 50, rows: 10)
            // A frame that begins with clearing is the first one of another width; bars have no room in it.
            let text = await written.wait { $0.contains("\u{1b}[J\u{1b}[?7l") }
            gate.open()
            let frame = try #require(text.range(of: "\u{1b}[J\u{1b}[?7l", options: .backwards)).upperBound
            #expect(!text[frame...].contains("━"))
        }
        #expect(output.status == 0)
    }

    @Test("--no-progress draws nothing on a terminal either", .needsPseudoTerminal) func noProgress() async throws {
        let output = try await onTerminal(
            ["get", "--no-progress", "--color", "never", "-d", sandbox.files, server.url("/a")])
        #expect(output.status == 0)
        #expect(!output.raw.contains("\u{1b}"))
        #expect(output.screen.count == 2)
    }

    @Test(
        "trash asks on a terminal", .needsPseudoTerminal,
        arguments: [("y\n", true), ("n\n", false), ("\n", false), ("\u{4}", false)])
    func trash(answer: String, isDeleted: Bool) async throws {
        try await sandbox.fk("get", server.url("/a"))
        let output = try await onTerminal(["trash", server.url("/a")], typing: answer)
        #expect(output.raw.contains("[y/N]"))
        #expect(output.status == (isDeleted ? 0 : 1), "\(output.raw)")
        #expect(sandbox.exists("a") != isDeleted)
    }
}
