import Foundation
import TestSupport
import Testing

@testable import fk

/// The end of a run, and runs without a terminal.
@Suite("The end of a run, and runs without a terminal") final class SummaryTests: ServedSuite {
    private let body = Bytes.pattern(count: 100_000)

    override init() throws {
        try super.init()
        server.serve("/a", body)
        server.serve("/b", body)
    }

    @Test("Failed files are listed with masked URL and reason, and the printed command runs them again")
    func failures() async throws {
        let isThere = Observed(false)
        server.routeOthers { [body] _ in isThere.value ? .ok(body) : .status(503) }
        let work = sandbox.folder.path + "/other work"
        let urls = [server.url("/x?v=1&token=secret"), server.url("/y"), server.url("/a")]
        let result = try await sandbox.fk(["get", "--retry", "0", "--work-path", work] + urls)
        #expect(result.status == 1)
        let lines = result.errors.split(separator: "\n").map(String.init)
        let summary = try #require(lines.firstIndex { $0.hasPrefix("1 of 3 complete, 2 failed") })
        #expect(lines.count == summary + 5)
        #expect(lines[(summary + 1)...].contains { $0.contains("/x?v=1&token=***") && $0.contains("503") })
        let command = try #require(lines.last)
        #expect(command.hasPrefix("fk retry --run ") && command.hasSuffix(" --work-path '\(work)'"))
        isThere.update { $0 = true }
        let folder = URL(fileURLWithPath: FKProgram.path).deletingLastPathComponent().path
        let again = try await FKProgram.run("/bin/sh", ["-c", "PATH=\(folder):$PATH; \(command)"])
        #expect(again.status == 0, "\(again.errors)")
        #expect(again.errors.contains("2 of 2 complete"))
        #expect(sandbox.exists("y"))
        let nothing = try await sandbox.fk("retry", "--run", "--all", "--work-path", work)
        #expect(nothing.status == 0 && nothing.errors.contains("Nothing to retry"), "\(nothing.errors)")
    }

    @Test("retry --run alone runs the failed files again that may pass, and no other")
    func retryWhatMayPass() async throws {
        let isThere = Observed(false)
        server.routeOthers { [body] _ in isThere.value ? .ok(body) : .status(503) }
        server.route("/gone") { _ in .status(404) }
        let urls = (0..<5).map { server.url("/f\($0)") } + [server.url("/gone")]
        let result = try await sandbox.fk(["get", "--retry", "0"] + urls)
        #expect(result.errors.hasSuffix("Try them again with:\nfk retry --run r1\n"), "\(result.errors)")
        isThere.update { $0 = true }
        let again = try await sandbox.fk("retry", "--run")
        #expect(again.status == 0 && again.errors.contains("5 of 5 complete"), "\(again.errors)")
        #expect(server.requests("/gone").count == 1)
        let nothing = try await sandbox.fk("retry", "--run")
        #expect(nothing.status == 0 && nothing.errors == "Nothing to retry: no failed task may pass by itself.\n")
        #expect(try await sandbox.fk("retry").status == 2)
    }

    @Test("retry --run of a barrel fetches the finished files that are gone or were cut, as retry queues them")
    func retryLostFiles() async throws {
        server.routeOthers { [body] _ in .ok(body) }
        let urls = ["kept", "gone", "cut"].map { server.url("/\($0)") }
        try await sandbox.done(["barrel", "create", "b"] + urls)
        try await sandbox.done("barrel", "run", "b")
        try FileManager.default.removeItem(atPath: "\(sandbox.files)/gone")
        try Data(body.prefix(1)).write(to: URL(fileURLWithPath: "\(sandbox.files)/cut"))
        let again = try await sandbox.fk("retry", "-b", "b", "--run")
        #expect(again.status == 0 && again.errors.contains("2 of 2 complete"), "\(again.errors)")
        #expect(sandbox.exists("gone"))
        #expect(["kept", "gone", "cut"].map { server.requests("/\($0)").count } == [1, 2, 2])
        let nothing = try await sandbox.fk("retry", "-b", "b", "--run")
        #expect(
            nothing.errors.contains("no task of these has failed, was cancelled or has lost its file"),
            "\(nothing.errors)")
    }

    @Test("retry, forget and resume of a run touch the tasks of that run alone")
    func runs() async throws {
        let isThere = Observed(false)
        server.routeOthers { [body] _ in isThere.value ? .ok(body) : .status(503) }
        server.route("/gone") { _ in .status(404) }
        let first = try await sandbox.fk("get", "--retry", "0", server.url("/one"), server.url("/gone"))
        #expect(first.errors.hasSuffix("Try it again with:\nfk retry --run r1\n"), "\(first.errors)")
        let second = try await sandbox.fk("get", "-q", "--retry", "0", server.url("/two"))
        #expect(second.status == 1)
        isThere.update { $0 = true }
        let again = try await sandbox.fk("retry", "--run", "r1")
        #expect(again.status == 0 && again.errors.contains("1 of 1 complete"), "\(again.errors)")
        #expect(server.requests("/two").count == 1 && server.requests("/gone").count == 1)
        let nothing = try await sandbox.fk("retry", "--run", "r1")
        #expect(nothing.errors == "Nothing to retry: no failed task of run r1 may pass by itself.\n")
        let forgotten = try await sandbox.fk("forget", "--run", "r1")
        #expect(forgotten.output.contains("/gone") && !forgotten.output.contains("/two"), "\(forgotten.output)")
        #expect(sandbox.exists("one"))
        let resumed = try await sandbox.fk("resume", "--run=last")
        #expect(resumed.status == 0 && resumed.errors == "Nothing to do: no task of the last run is suspended.\n")
        let last = try await sandbox.fk("retry", "--run", "last")
        #expect(last.status == 0 && sandbox.exists("two"))
        for words in [["forget", "--run"], ["resume", "--run", "r1", "--all"], ["forget", "--run=x"]] {
            #expect(try await sandbox.fk(words).status == 2, "\(words)")
        }
        let unknown = try await sandbox.fk("retry", "--run", "r7")
        #expect(unknown.status == 4 && unknown.errors == "fk: There is no run r7. Kept are: r1, r2.\n")
    }

    @Test("Entries that were left out stand in the last line, and a number that the list has given is not explained")
    func listed() async throws {
        try sandbox.put("\(server.url("/a"))\n out=a.1\n", "list")
        let chosen = try await sandbox.done("get", "-i", "list")
        #expect(chosen.errors.contains("✓ a.1") && !chosen.errors.contains("exists"), "\(chosen.errors)")
        let files = [("b", "b"), ("../x", "b")].map { name, path in
            "<file name=\"\(name)\"><url>\(server.url("/\(path)"))</url></file>"
        }
        try sandbox.put(
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(files.joined())</metalink>", "list.meta4")
        let cut = try await sandbox.fk("get", "-i", "list.meta4")
        #expect(cut.status == 1 && cut.errors.contains("1 of 1 complete, 1 left out (named above)"), "\(cut.errors)")
    }

    @Test("The reason of a failed attempt and the time of the next one are two sentences")
    func nextAttempt() async throws {
        let isThere = Observed(false)
        server.route("/busy") { [body] _ in
            defer { isThere.update { $0 = true } }
            let busy = FaultResponse.retryAfter("1").withBody(Array("busy".utf8)).setting("Content-Type", "text/plain")
            return isThere.value ? .ok(body) : busy
        }
        let result = try await sandbox.done("get", server.url("/busy"))
        #expect(result.errors.contains("\"busy\". Next attempt in "), "\(result.errors)")
    }

    @Test("Ctrl-C with one file suspended and another one running: the offered commands continue both")
    func stopped() async throws {
        let gate = Gate()
        let urls = ["/x", "/y"].map { server.url($0) }
        for path in ["/x", "/y"] { server.serve(path, body, stallingAt: 50_000, gate) }
        let running = try sandbox.start(["get"] + urls)
        for url in urls { _ = try await sandbox.record(url) { $0.state == .action } }
        try await sandbox.fk("suspend", urls[0])
        _ = try await sandbox.record(urls[0]) { $0.state == .suspend }
        running.signal(SIGINT)
        let result = await running.end()
        #expect(result.status == 130, "\(result.errors)")
        #expect(result.errors.contains("resume with: fk resume --run r1, then fk run"), "\(result.errors)")
    }

    @Test("Without a run that is kept, the last one is not found", arguments: ["forget", "resume", "retry"])
    func noRun(verb: String) async throws {
        try await sandbox.done("get", server.url("/a"))
        let result = try await sandbox.fk(verb, "--run", "last")
        #expect(result.status == 4 && result.errors.contains("There is no run with failed"), "\(result)")
    }

    @Test("The newest 20 runs are kept, and a name is no beginning of an id") func runBook() throws {
        let workPath = WorkPath(sandbox.folder.path + "/book")
        try workPath.open(create: true)
        let book = RunBook(workPath)
        #expect(book.keep([], suspended: []) == nil)
        let ids = (0..<2).map { TaskID(url: "http://h/\($0)") }
        for number in 1...23 { #expect(book.keep([ids[0]], suspended: [ids[1]]) == .number(number)) }
        #expect(try FileIO.names(in: workPath.runsFolder).count == RunBook.limit)
        #expect(try book.ids(of: .number(4)) == ids && book.ids(of: .last) == ids)
        #expect(throws: CommandFailure.self) { try book.ids(of: .number(3)) }
        #expect(RunName("r12") == .number(12) && RunName("last") == .last)
        for word in ["", "r", "r0", "12", "abcdef12", "r1x", "R1", "r1234567890"] { #expect(RunName(word) == nil) }
    }

    @Test("Many failures are grouped by host and reason") func manyFailures() async throws {
        server.routeOthers { _ in .status(404) }
        let urls = (0..<34).map { server.url("/none/\($0)") }
        let result = try await sandbox.fk(["get", "--retry", "0", "-j", "8"] + urls)
        let host = server.url("").dropFirst(7)
        #expect(result.errors.contains("  34 files \(host): The server answered 404"), "\(result.errors)")
        #expect(result.errors.contains("Each with its reason: fk list --state failed\n"))
        #expect(!result.errors.contains("fk retry"), "a 404 cannot pass")
        let list = try await sandbox.fk("list")
        #expect(list.output.contains("  REASON\n") && list.output.contains("The server answered 404"))
        let complete = try await sandbox.fk("list", "--state", "complete")
        #expect(!complete.output.contains("REASON"))
    }

    @Test("retry --all says what it did, not what it did not") func retryAll() async throws {
        server.route("/gone") { _ in .status(404) }
        try await sandbox.fk("get", "--retry", "0", server.url("/a"), server.url("/b"), server.url("/gone"))
        let result = try await sandbox.done("retry", "--all")
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(
            lines.count == 2 && lines[0].contains("/gone") && lines[1] == "1 changed, 2 tasks unchanged.", "\(lines)")
        let none = try await sandbox.fk("retry", "--all")
        #expect(none.output == "Nothing to do: it applies to none of 3 tasks.\n")
    }

    @Test("Paths of finished files go to standard output, one a line or ended by NUL") func paths() async throws {
        let both = [server.url("/a"), server.url("/b")]
        let paths = Set(["a", "b"].map { "\(sandbox.files)/\($0)" })
        let first = try await sandbox.fk(["get"] + both)
        #expect(Set(first.output.split(separator: "\n").map(String.init)) == paths && first.output.hasSuffix("\n"))
        let again = try await sandbox.fk(["get", "-0"] + both)
        #expect(Set(again.output.split(separator: "\0").map(String.init)) == paths && again.output.hasSuffix("\0"))
        #expect(try await sandbox.fk(["get", "--print", "none"] + both).output == "")
        #expect(try await sandbox.fk(["get", "-q"] + both).output == "")
        #expect(
            try await sandbox.fk(["get", "-q", "--print", "path", server.url("/a")]).output == "\(sandbox.files)/a\n")
        #expect(try await sandbox.fk(["get", "--json", server.url("/a")]).output.hasPrefix("{"))
        #expect(try await sandbox.fk(["get", "--json", "--print", "path", server.url("/a")]).status == 2)
        #expect(try await sandbox.fk(["get", "--print", "paths", server.url("/a")]).status == 2)
        server.route("/gone") { _ in .status(404) }
        #expect(try await sandbox.fk(["get", "--retry", "0", server.url("/gone")]).output == "")
    }

    @Test("Without a terminal a line now and then says what is under way") func status() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 50_000, gate)
        let running = try sandbox.start(
            ["get", "-x", "1", server.url("/slow"), server.url("/a")], environment: ["FK_STATUS_INTERVAL": "1"])
        #expect(try await running.says("1 of 2 complete"), "\(running.errors)")
        #expect(running.errors.contains("slow 50%"))
        gate.open()
        let result = await running.end()
        #expect(result.status == 0)
        #expect(result.errors.contains("✓ slow") && result.errors.contains("✓ a"))
    }
}
