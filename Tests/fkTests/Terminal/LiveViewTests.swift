import TestSupport
import Testing

@testable import fk

/// The live view of the real program on a real terminal.
@Suite("The live view on a terminal", .needsPseudoTerminal) struct LiveViewTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 400_000)
    private static let hidden = "\u{1b}[?25l"
    private static let shown = "\u{1b}[?25h"

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
    }

    private func run(
        _ words: [String], program: String = FKProgram.path, columns: Int = 80, rows: Int = 24,
        environment: [String: String] = [:],
        during work: @Sendable (PseudoTerminal, Observed<String>, Observed<Int32>) async throws -> Void = { _, _, _ in }
    ) async throws -> PseudoTerminal.Output {
        let all = ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm", "LC_ALL": "C.UTF-8"].merging(environment) { $1 }
        let terminal = try PseudoTerminal(columns: columns, rows: rows)
        let written = Observed("")
        let pid = Observed<Int32>(0)
        async let output = offPool {
            try terminal.run(
                program, words, environment: all,
                onOutput: { text in written.update { $0 = text } }, onStart: { id in pid.update { $0 = id } })
        }
        try await work(terminal, written, pid)
        return try await output
    }

    /// What a person sees after these bytes.
    private func screen(_ text: String, columns: Int = 80, rows: Int = 24) -> [String] {
        var screen = Screen(columns: columns, rows: rows)
        screen.feed(text)
        return screen.lines
    }

    @Test("One file has one row and no total; the cursor is hidden and comes back") func single() async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 100_000, gate)
        let output = try await run(["get", "-x", "1", "-d", sandbox.files, server.url("/a")]) { _, written, _ in
            let text = await written.wait { $0.contains(" 25%") }
            #expect(text.contains(Self.hidden) && !text.contains(Self.shown))
            let lines = screen(text).filter { !$0.isEmpty }
            #expect(lines.count == 1 && lines[0].hasPrefix("a "), "\(lines)")
            gate.open()
        }
        #expect(output.status == 0)
        #expect(!output.raw.contains("0/1 files"))
        let last = try #require(output.raw.range(of: Self.shown, options: .backwards))
        #expect(!output.raw[last.upperBound...].contains(Self.hidden))
    }

    @Test("The cursor comes back at every signal", arguments: [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV])
    func signals(number: Int32) async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 100_000, gate)
        let output = try await run(["get", "-x", "1", "-d", sandbox.files, server.url("/a")]) { _, written, pid in
            _ = await written.wait { $0.contains(" 25%") }
            kill(pid.value, number)
        }
        #expect(output.status == 128 + number)
        let last = try #require(output.raw.range(of: Self.shown, options: .backwards))
        #expect(!output.raw[last.upperBound...].contains(Self.hidden))
    }

    @Test("In the background of a shell nothing is drawn", .enabled(if: Self.hasSetsid)) func background() async throws
    {
        server.serve("/a", body)
        let script = "set -m; \"$FK\" get -x 1 -d '\(sandbox.files)' '\(server.url("/a"))' & wait; echo END"
        let output = try await run(
            ["-c", "/bin/bash", "-c", script], program: Self.setsid,
            environment: ["FK": FKProgram.path, "NO_COLOR": "1"])
        #expect(output.screen.last == "END", "\(output.screen)")
        #expect(output.screen.contains { $0.hasPrefix("✓ a") })
        #expect(!output.raw.contains("\u{1b}["), "\(output.raw.debugDescription)")
    }

    @Test("Ctrl-Z gives the terminal back, fg draws again", .enabled(if: Self.hasSetsid)) func stopped() async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 100_000, gate)
        let script = "set -m; \"$FK\" get -x 1 -d '\(sandbox.files)' '\(server.url("/a"))'; echo STOPPED; fg; echo END"
        let output = try await run(
            ["-c", "/bin/bash", "-c", script], program: Self.setsid, environment: ["FK": FKProgram.path]
        ) { terminal, written, _ in
            _ = await written.wait { $0.contains(" 25%") }
            terminal.type("\u{1a}")
            let text = await written.wait { $0.contains("STOPPED") }
            let before = text[..<(text.range(of: "STOPPED")?.lowerBound ?? text.startIndex)]
            let last = before.range(of: Self.shown, options: .backwards)?.upperBound ?? before.startIndex
            #expect(last > before.startIndex && !before[last...].contains(Self.hidden))
            _ = await written.wait { text in
                guard let stop = text.range(of: "STOPPED") else { return false }
                return text[stop.upperBound...].contains(Self.hidden) && text[stop.upperBound...].contains(" 25%")
            }
            gate.open()
        }
        #expect(output.screen.last == "END")
        #expect(output.screen.contains { $0.hasPrefix("✓ a") })
    }

    @Test("Enter does not move the frame", .enabled(if: Self.hasSetsid)) func enter() async throws {
        let gate = Gate()
        server.serve("/a", body, stallingAt: 100_000, gate)
        let words = ["-c", FKProgram.path, "get", "-x", "1", "-d", sandbox.files, server.url("/a")]
        let output = try await run(words, program: Self.setsid) { terminal, written, _ in
            _ = await written.wait { $0.contains(" 25%") }
            terminal.type("\n\n\n")
            _ = await written.wait { $0.contains("no data for") }
            #expect(screen(written.value).count == 1, "\(screen(written.value))")
            gate.open()
        }
        #expect(output.status == 0 && output.screen.count == 2, "\(output.screen)")
    }

    static let setsid = "/usr/bin/setsid"
    static var hasSetsid: Bool { FileManager.default.isExecutableFile(atPath: setsid) }
}
