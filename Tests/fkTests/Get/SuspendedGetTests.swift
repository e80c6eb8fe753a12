import FKCore
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("get whose tasks are suspended meanwhile") struct SuspendedGetTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let body = Bytes.pattern(count: 2_000_000)
    private let gate = Gate()

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        server.serve("/a", body, stallingAt: 500_000, gate)
    }

    private func url(_ name: String) -> String { server.url("/\(name)") }

    @Test("A file that gets another name says which name is taken; a magnet link is refused by name")
    func otherName() async throws {
        for path in ["/1/x.iso", "/2/x.iso"] { server.serve(path, [1, 2, 3]) }
        let first = try await sandbox.fk("get", server.url("/1/x.iso"))
        #expect(!first.errors.contains("exists"), "\(first.errors)")
        let second = try await sandbox.fk("get", server.url("/2/x.iso"))
        #expect(second.errors.contains("x.1.iso") && second.errors.contains("; x.iso exists\n"), "\(second.errors)")
        #expect(try await sandbox.fk("get", "magnet:?xt=urn:btih:0").errors.contains("magnet links are for BitTorrent"))
        let wrong = try await sandbox.fk(
            "get", "--retry", "0", "--expect", "application/zip", server.url("/1/x.iso"), "-o", "y")
        #expect(wrong.status == 1 && wrong.errors.contains("application/zip is expected"), "\(wrong.errors)")
        #expect(try await sandbox.fk("get", "--expect", "zip", server.url("/1/x.iso")).status == 2)
    }

    /// Runs `fk get a` on a terminal.
    private func get(
        _ words: [String] = [],
        during work: @Sendable (PseudoTerminal, Observed<String>, Observed<Int32>) async throws -> Void
    ) async throws -> PseudoTerminal.Output {
        let terminal = try PseudoTerminal()
        let written = Observed("")
        let pid = Observed<Int32>(0)
        let environment = ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm", "LC_ALL": "C.UTF-8"]
        let line = ["get", "-x", "1", "-d", sandbox.files, url("a")] + words
        async let output = offPool {
            try terminal.run(
                FKProgram.path, line, environment: environment,
                onOutput: { text in written.update { $0 = text } }, onStart: { id in pid.update { $0 = id } })
        }
        #expect(try await sandbox.record(url("a")) { $0.received == 500_000 } != nil)
        // Typed before the pause, it resumes nothing.
        terminal.type("p")
        try await sandbox.fk("suspend", "a")
        try await work(terminal, written, pid)
        return try await output
    }

    private static let pause = "Only a suspended file is left:"

    @Test("At a terminal, get waits for its suspended task: a command or the key p continues it", .needsPseudoTerminal)
    func waits() async throws {
        // Each answer stops after as many bytes.
        server.route("/a") { [body, gate] in
            .ranged(body, for: $0, etag: "\"v1\"").stalling(at: 500_000, until: gate)
        }
        let output = try await get { terminal, written, _ in
            _ = await written.wait { $0.contains(Self.pause) }
            try await sandbox.fk("resume", "a")
            #expect(try await sandbox.record(url("a")) { $0.state == .action } != nil)
            try await sandbox.fk("suspend", "a")
            _ = await written.wait { $0.components(separatedBy: Self.pause).count > 2 }
            gate.open()
            terminal.type("xp")
        }
        #expect(output.status == 0, "\(output.raw)")
        #expect(try sandbox.bytes("a") == body)
    }

    @Test("Ctrl-C ends a get that waits; --no-wait ends at once", .needsPseudoTerminal, arguments: [true, false])
    func ends(isInterrupted: Bool) async throws {
        let output = try await get(isInterrupted ? [] : ["--no-wait"]) { _, written, pid in
            guard isInterrupted else { return }
            _ = await written.wait { $0.contains(Self.pause) }
            kill(pid.value, SIGINT)
        }
        #expect(output.status == (isInterrupted ? 130 : 1), "\(output.raw)")
        #expect(output.raw.contains(Self.pause) == isInterrupted)
        #expect(
            output.raw.contains("resume with: fk resume --run r1, then fk run") == isInterrupted, "\(output.raw)")
        #expect(output.raw.contains("fk resume --run r1 && fk run") != isInterrupted, "\(output.raw)")
        #expect(try await sandbox.record(url("a"))?.received == 500_000)
    }

    @Test("A run that was left in the background at a terminal goes on after a suspension", .needsPseudoTerminal)
    func detached() async throws {
        let output = try await get(["--detach"]) { _, _, _ in
            #expect(try await sandbox.record(url("a")) { $0.state == .suspend } != nil)
            gate.open()
            try await sandbox.fk("resume", "a")
            #expect(try await sandbox.record(url("a")) { $0.state == .complete } != nil)
        }
        #expect(output.status == 0)
    }
}
