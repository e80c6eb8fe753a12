import FKCore
import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import fk

@Suite("fk cat")
struct CatCommandTests {
    private let sandbox: Sandbox
    private let server: FaultServer
    private let content = Array("0123456789\n".utf8) + Array(repeating: UInt8(ascii: "x"), count: 3_000_000)

    init() throws {
        (sandbox, server) = (try Sandbox(), try FaultServer())
        for path in ["/a", "/b"] { server.route(path) { [content] in .ranged(content, for: $0, etag: "\"a\"") } }
    }

    private var text: String { String(decoding: content, as: UTF8.self) }

    /// What streams have left in the work path.
    private var leftovers: Bool { FileManager.default.fileExists(atPath: "\(sandbox.workPath)/streams") }

    @Test("several URLs in their order, nothing else on standard output, no task, nothing left")
    func several() async throws {
        let result = try await sandbox.done("cat", server.url("/a"), server.url("/b"))
        #expect(result.output == text + text && result.errors == "")
        #expect(try await sandbox.fk("list", "-q").output == "")
        #expect(!leftovers)
        #expect(try sandbox.names().isEmpty)
    }

    @Test("a range; wrong ones, and options that contradict each other, are refused before anything is asked")
    func range() async throws {
        #expect(try await sandbox.done("cat", "--range", "2-4", server.url("/a")).output == "234")
        #expect(try await sandbox.done("cat", "--range=2999990-", server.url("/a")).output.utf8.count == 21)
        let count = server.requests.count
        for words in [
            ["--range", "4-2"], ["--range", "-5"], ["--range", "x"], ["--range", "1-2", "--keep"], ["--json"],
            ["--range", "1-2", "--checksum", String(repeating: "0", count: 64)], ["--window", "x"], ["-o", "f"],
        ] {
            let result = try await sandbox.fk(["cat"] + words + [server.url("/a")])
            #expect(result.status == 2 && result.output == "", "\(words)")
        }
        #expect(try await sandbox.fk("cat").status == 2)
        #expect(server.requests.count == count)
    }

    @Test("the first failure ends it: what came out is a true prefix, and the status is 1")
    func failure() async throws {
        server.route("/cut") { [content] in $0.index == 1 ? .ok(content).cut(at: 1_000_000) : .ok(content) }
        let result = try await sandbox.fk("cat", server.url("/a"), server.url("/cut"), server.url("/b"))
        #expect(result.status == 1 && result.errors.hasPrefix("fk: The connection was lost"))
        #expect(result.output.utf8.count <= content.count + 1_000_000 && (text + text).hasPrefix(result.output))
        let wrong = try await sandbox.fk(
            "cat", "--checksum", "sha-256=\(String(repeating: "0", count: 64))", server.url("/a"))
        #expect(wrong.status == 1 && wrong.output == text && wrong.errors.contains("its sha-256 is"))
        #expect(!leftovers)
    }

    @Test("a finished file that was edited: status 1, and none of its bytes") func edited() async throws {
        server.serve("/f", [1, 2, 3])
        try await sandbox.done("get", server.url("/f"))
        try sandbox.put("other", "f")
        let result = try await sandbox.fk("cat", "f")
        #expect(result.status == 1 && result.output == "", "\(result)")
        #expect(result.errors.contains("was changed since it was complete"), "\(result.errors)")
    }

    @Test("--keep keeps the file, and a known one is read and not fetched again")
    func known() async throws {
        let kept = try await sandbox.done("cat", "--keep", server.url("/a"))
        #expect(kept.output == text)
        #expect(try sandbox.bytes("a") == content)
        let count = server.requests.count
        #expect(try await sandbox.done("cat", server.url("/a")).output == text)
        #expect(try await sandbox.done("cat", "a", "--range", "0-9").output == "0123456789")
        #expect(server.requests.count == count)
        #expect(try await sandbox.fk("cat", "nothing").status == 4)
    }

    @Test("--keep keeps the file in the folder of -d, also if another folder has it")
    func keptTwice() async throws {
        try await sandbox.done("get", server.url("/a"))
        #expect(try await sandbox.done("cat", "--keep", "-d", "other", server.url("/a")).output == text)
        #expect(try sandbox.bytes("other/a") == content)
        let count = server.requests.count
        #expect(try await sandbox.done("cat", "--keep", "-d", "other", server.url("/a")).output == text)
        #expect(server.requests.count == count)
    }

    @Test("a task that another process fetches is followed")
    func followed() async throws {
        let gate = Gate()
        server.route("/held") { [content] in
            .ranged(content, for: $0, etag: "\"a\"").stalling(at: 2_000_000, until: gate)
        }
        let get = try sandbox.start("get", "-x", "1", server.url("/held"))
        _ = try await sandbox.record(server.url("/held")) { $0.state == .action && $0.received >= 1_000_000 }
        let cat = try sandbox.start("cat", server.url("/held"))
        #expect(try await sandbox.done("cat", "--range", "0-9", server.url("/held")).output == "0123456789")
        gate.open()
        #expect(await cat.end().output == text)
        #expect(await get.end().status == 0)
        #expect(server.requests("/held").count == 1)
    }

    @Test(
        "the process that fetches a file ends: cat takes over and goes on after its bytes",
        arguments: [SIGKILL, SIGINT])
    func takenOver(_ signal: Int32) async throws {
        let gate = Gate()
        server.route("/held") { [content] in
            .ranged(content, for: $0, etag: "\"a\"").stalling(at: 2_000_000, until: gate)
        }
        let get = try sandbox.start("get", "-x", "1", server.url("/held"))
        _ = try await sandbox.record(server.url("/held")) { $0.state == .action && $0.received == 2_000_000 }
        let cat = try sandbox.start("cat", server.url("/held"))
        _ = try await eventually { cat.output.utf8.count == 2_000_000 ? true : nil }
        get.signal(signal)
        _ = await get.end()
        gate.open()
        let end = await cat.end()
        #expect(end.status == 0 && end.output == text, "\(end.errors)")
        #expect(server.requests("/held").last?["Range"] == "bytes=2000000-")
    }

    @Test("a process that is stopped, and a task that is suspended, cancelled or deleted, are named")
    func stopped() async throws {
        for verb in ["suspend", "cancel", "trash"] {
            server.route("/\(verb)") { [content] in
                .ranged(content, for: $0, etag: "\"a\"").stalling(at: 2_000_000, until: Gate())
            }
            let url = server.url("/\(verb)")
            let get = try sandbox.start("get", "-x", "1", url)
            _ = try await sandbox.record(url) { $0.state == .action && $0.received == 2_000_000 }
            let cat = try sandbox.start("cat", url)
            _ = try await eventually { cat.output.utf8.count == 2_000_000 ? true : nil }
            if verb == "suspend" {
                get.signal(SIGSTOP)
                #expect(try await cat.says("has shown no sign of life"), "\(cat.errors)")
                get.signal(SIGCONT)
            }
            try await sandbox.done(verb == "trash" ? ["trash", "-y", url] : [verb, url])
            let end = await cat.end()
            #expect(end.status == 1 && text.hasPrefix(end.output), "\(end.errors)")
            let reason = ["suspend": "was suspended", "cancel": "was cancelled", "trash": "was deleted"][verb] ?? ""
            #expect(end.errors.contains(reason) && end.errors.contains(url), "\(end.errors)")
            get.kill()
            _ = await get.end()
        }
    }

    @Test("standard output that cannot be written: status 1 and the reason; one without a reader ends it silently")
    func output() async throws {
        let full = try await shell("\"$FK\" cat \"$URL\" > /dev/full")
        #expect(full.status == 1 && full.errors.contains("No space left on device"))
        let gone = try await shell("(\"$FK\" cat \"$URL\"; echo \"status $?\" >&2) | head -c 5")
        #expect(gone.output == "01234" && gone.errors == "status 141\n")
        #expect(!leftovers)
    }

    private func shell(_ script: String) async throws -> FKProgram.Output {
        try await FKProgram.run(
            "/bin/sh", ["-c", script],
            environment: ["FK": FKProgram.path, "URL": server.url("/a"), "FK_WORK_PATH": sandbox.workPath])
    }

    @Test("a signal ends it with its status, and leaves nothing; after a kill, the next command removes what was left")
    func signals() async throws {
        server.route("/held") { [content] in
            .ranged(content, for: $0, etag: "\"a\"").stalling(at: 300_000, until: Gate())
        }
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143), (SIGKILL, 137)] as [(Int32, Int32)] {
            let cat = try sandbox.start("cat", server.url("/held"))
            _ = try await eventually { leftovers && server.requests.last?.bytesSent ?? 0 > 0 ? true : nil }
            kill(cat.pid, signal)
            let result = await cat.end()
            let text =
                signal == SIGKILL ? "" : "Stopped. Nothing of a stream is kept: the same command begins again.\n"
            #expect(result.status == status && result.errors == text)
            #expect(leftovers == (signal == SIGKILL))
            server.route("/held") { [content] in
                .ranged(content, for: $0, etag: "\"a\"").stalling(at: 300_000, until: Gate())
            }
        }
        try await sandbox.done("list")
        #expect(!leftovers)
    }

    @Test("other programs' ways to standard output and to ranges lead here")
    func foreign() {
        for (words, hint) in [
            (["get", "-o", "-", "http://h/a"], "fk cat URL"), (["get", "--output=-", "http://h/a"], "fk cat URL"),
            (["get", "-O", "-", "http://h/a"], "fk cat URL"), (["get", "-O-", "-q", "http://h/a"], "fk cat URL"),
            (["get", "-r", "0-99", "http://h/a"], "fk cat --range A-B"),
            (["get", "--range", "0-99", "http://h/a"], "fk cat --range"),
            (["cat", "-o", "-", "http://h/a"], "always"), (["cat", "-o", "f", "http://h/a"], "fk get"),
            (["cat", "-r", "0-99", "http://h/a"], "--range A-B"),
        ] {
            let error = #expect(throws: UsageError.self) { _ = try Dispatcher(context: .process).command(words) }
            let text = ([error?.message ?? ""] + (error?.lines ?? [])).joined(separator: "\n")
            #expect(text.contains(hint), "\(words): \(text)")
        }
    }
}
