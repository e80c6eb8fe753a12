import TestSupport
import Testing

@testable import fk

/// `fk watch` as a process of its own, on a terminal and elsewhere.
@Suite("fk watch") struct WatchCommandTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 400_000)

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
    }

    private func watch(
        _ words: [String] = ["watch"], columns: Int = 100, rows: Int = 24,
        during work: @Sendable (PseudoTerminal, Observed<String>, Observed<Int32>) async throws -> Void
    ) async throws -> PseudoTerminal.Output {
        let terminal = try PseudoTerminal(columns: columns, rows: rows)
        let written = Observed("")
        let pid = Observed<Int32>(0)
        let environment = ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm", "LC_ALL": "C.UTF-8"]
        async let output = offPool {
            try terminal.run(
                FKProgram.path, words, environment: environment,
                onOutput: { text in written.update { $0 = text } }, onStart: { id in pid.update { $0 = id } })
        }
        try await work(terminal, written, pid)
        return try await output
    }

    /// Waits until the screen shows the text.
    private func sees(_ text: String, _ written: Observed<String>) async -> Bool {
        let all = await written.wait { screen($0).contains { $0.contains(text) } }
        return screen(all).contains { $0.contains(text) }
    }

    private func screen(_ text: String) -> [String] {
        var screen = Screen(columns: 100, rows: 24)
        screen.feed(text)
        return screen.lines
    }

    @Test("It shows and steers the tasks of another process, and leaves the screen as it was", .needsPseudoTerminal)
    func steers() async throws {
        let gate = Gate()
        for name in ["/a", "/b", "/c"] { server.serve(name, body, stallingAt: 100_000, gate) }
        let engine = try sandbox.start(
            "get", "-x", "1", "-j", "2", server.url("/a"), server.url("/b"), server.url("/c"))
        _ = try await sandbox.record(server.url("/b")) { $0.received == 100_000 }
        let output = try await watch { terminal, written, _ in
            #expect(await sees("Process \(engine.pid) runs the downloads.", written))
            #expect(await sees("fk watch  2 running  1 waiting", written))
            #expect(await sees(" 25%", written))
            // Suspend the second task.
            terminal.type("j ")
            #expect(await sees("b: suspended", written))
            let suspended = try await sandbox.record(server.url("/b")) { $0.state == .suspend }
            #expect(suspended != nil)
            #expect(await sees("fk watch  2 running  1 suspended", written))
            // Resume it: it waits for a slot.
            terminal.type("/b\r ")
            #expect(await sees("b: queued", written))
            // Cancel asks.
            terminal.type("c")
            #expect(await sees("Cancel b and delete its unfinished bytes? y/n", written))
            terminal.type("ny")
            terminal.type("cy")
            #expect(await sees("b: cancelled", written))
            terminal.type("r")
            #expect(await sees("b: queued", written))
            // Without bytes in its row, the next verb does not ask.
            _ = await written.wait { text in
                screen(text).contains { $0.contains("all 2 slots are taken") && !$0.contains("KiB") }
            }
            terminal.type("f")
            #expect(await sees("No task matches", written))
            #expect(try sandbox.reader.records(url: server.url("/b")).isEmpty)
            terminal.type("\u{1b}")
            #expect(await sees("fk watch  2 running", written))
            terminal.type("-")
            #expect(await sees("Limit ", written))
            terminal.type("\r")
            #expect(await sees("connections:", written))
            terminal.type("q")
        }
        #expect(output.status == 0)
        #expect(output.raw.contains("\u{1b}[?1049h") && output.raw.hasSuffix("\u{1b}[?25h\u{1b}[?1049l"))
        #expect(try await sandbox.fk("limit").output.contains("at most"))
        try await sandbox.fk("limit", "none")
        gate.open()
        // One of its tasks was forgotten.
        #expect(await engine.end().status == 1)
        #expect(try sandbox.bytes("a") == body)
    }

    @Test("Without an engine it says so; what other commands do is seen, and verbs work", .needsPseudoTerminal)
    func nobody() async throws {
        server.serve("/a", body)
        try await sandbox.fk("barrel", "create", "set", server.url("/a"))
        let output = try await watch { terminal, written, pid in
            #expect(await sees("No process runs the downloads. Start them with: fk run", written))
            #expect(await sees("1 waiting", written))
            terminal.type(" ")
            #expect(await sees("a: suspended", written))
            #expect(await sees("fk watch  1 suspended", written))
            try await sandbox.fk("resume", "--all")
            #expect(await sees("fk watch  1 waiting", written))
            terminal.type("b")
            #expect(await sees("BARREL", written))
            #expect(await sees("0/1", written))
            try await sandbox.done("run")
            #expect(await sees("fk watch  1 complete", written))
            kill(pid.value, SIGTERM)
        }
        #expect(output.status == 143)
        #expect(output.raw.hasSuffix("\u{1b}[?25h\u{1b}[?1049l"))
    }

    @Test("x starts what waits in a process of its own", .needsPseudoTerminal)
    func starts() async throws {
        server.serve("/a", body)
        try await sandbox.fk("barrel", "create", "set", server.url("/a"))
        let output = try await watch { terminal, written, _ in
            #expect(await sees("1 waiting", written))
            terminal.type("x")
            #expect(await sees("1 complete", written))
            terminal.type("q")
        }
        #expect(output.status == 0)
        #expect(try sandbox.bytes("a") == body)
    }

    @Test(
        "Every way out leaves the screen as it was", .needsPseudoTerminal,
        arguments: [SIGINT, SIGHUP, SIGQUIT, SIGSEGV])
    func ends(signal: Int32) async throws {
        let output = try await watch { _, written, pid in
            #expect(await sees("No tasks.", written))
            kill(pid.value, signal)
        }
        #expect(output.status == 128 + signal)
        #expect(output.raw.contains("\u{1b}[?25h\u{1b}[?1049l"))
        #expect(
            output.raw.range(of: "\u{1b}[?1049h", options: .backwards)!.lowerBound
                < output.raw.range(of: "\u{1b}[?1049l")!.lowerBound)
    }

    @Test("Into a pipe it prints one table and ends; with nothing running it says so") func piped() async throws {
        server.serve("/a", body)
        server.route("/gone") { _ in .status(404) }
        try await sandbox.fk("get", "--retry", "0", server.url("/a"), server.url("/gone"))
        let result = try await sandbox.done("watch")
        #expect(result.output.hasPrefix("ID ") && result.output.contains("complete") && result.output.contains("404"))
        #expect(result.output.split(separator: "\n").count == 3)
        #expect(result.errors == "No process runs the downloads. Start them with: fk run\n")
        let work = sandbox.folder.path + "/other"
        let empty = try await sandbox.fk("watch", "--work-path", work)
        #expect(empty.errors.hasSuffix("fk run --work-path \(work)\nNo tasks.\n") && empty.output == "")
    }
}
