import TestSupport
import Testing

@testable import fk

@Suite("--at") struct StartTimeTests {
    /// A Wednesday, 12:00:00 UTC.
    private static let now = Date(timeIntervalSince1970: 1_700_049_600)

    private func parse(_ text: String) -> Double? {
        (try? StartTime.parse(text, now: Self.now))?.timeIntervalSince(Self.now)
    }

    @Test(
        "A delay, or a time with a zone",
        arguments: [
            ("+90", 90), ("+90s", 90), ("+15m", 900), ("+1h30m", 5_400), ("+2d", 172_800), ("+0", 0), ("+", nil),
            ("+m", nil), ("+1h30", nil), ("+-5", nil), ("+1.5h", nil), ("+9999999999s", nil),
            ("2023-11-15T12:00:01Z", 1), ("2023-11-15T14:00:30+02:00", 30), ("2023-11-15 07:00:30-0500", 30),
            ("2023-11-15T12:00:00.500Z", 0), ("2024-02-29T12:00:00Z", 9_158_400), ("2023-02-30T12:00:00Z", nil),
            ("2023-13-01T12:00:00Z", nil), ("2023-11-15T25:00:00Z", nil), ("2023-11-15T12:00:00+25:00", nil),
            ("2023-11-15T12:00:00X", nil), ("2023-11-1", nil), ("2023-11-15Q12:00", nil), ("", nil), ("noon", nil),
            ("2023-11-15T", nil),
        ] as [(String, Double?)])
    func delay(text: String, seconds: Double?) { #expect(parse(text) == seconds) }

    @Test("A time of day is the next one, in local time") func ofDay() throws {
        for text in ["00:00", "7:05", "12:00", "23:59:59"] {
            let date = try StartTime.parse(text, now: Self.now)
            var parts = tm()
            var seconds = time_t(date.timeIntervalSince1970)
            localtime_r(&seconds, &parts)
            let wanted = text.split(separator: ":").compactMap { Int32($0) }
            #expect(parts.tm_hour == wanted[0] && parts.tm_min == wanted[1])
            #expect((0...90_000).contains(date.timeIntervalSince(Self.now)))
        }
        for text in ["24:00", "12:60", "12", "1:2:3:4", "12:", "-1:00", "１２:00"] {
            #expect(parse(text) == nil, "\(text)")
        }
    }

    @Test("Without a zone a time is local, and a day its beginning") func local() throws {
        let date = try StartTime.parse("2023-11-20", now: Self.now)
        let same = try StartTime.parse("2023-11-20T00:00:00", now: Self.now)
        #expect(date == same && date > Self.now + 3 * 86_400)
    }

    @Test("What is past or far away is refused") func range() {
        #expect(throws: StartTime.Fault.past) { try StartTime.parse("2023-11-15T11:00:00Z", now: Self.now) }
        #expect(throws: StartTime.Fault.far) { try StartTime.parse("+367d", now: Self.now) }
    }

    @Test("The clock is read again while waiting") func pauses() {
        #expect(StartWait.pause(until: Self.now + 100, now: Self.now) == 10)
        #expect(StartWait.pause(until: Self.now + 3, now: Self.now) == 3)
        #expect(StartWait.pause(until: Self.now - 3, now: Self.now) == 0)
    }
}

@Suite("--at, --user and --user-agent with the real program")
final class StartTests: ServedSuite {

    override init() throws {
        try super.init()
        server.routeOthers { _ in .ok([1, 2, 3]) }
    }

    @Test("A run waits until its time, says for what, and then does everything") func start() async throws {
        let begun = Date()
        let result = try await sandbox.fk("get", server.url("/a"), "--at", "+1s")
        #expect(result.status == 0 && Date().timeIntervalSince(begun) >= 1)
        #expect(result.errors.hasPrefix("Waiting until 20") && result.errors.contains("Ctrl-C ends it."))
        #expect(try sandbox.bytes("a") == [1, 2, 3])
    }

    @Test("A wait ends with a signal: status 130, and nothing was asked") func stopped() async throws {
        let running = try sandbox.start("get", server.url("/a"), "--at", "+1h")
        #expect(try await running.says("Waiting until"))
        running.signal(SIGINT)
        let end = await running.end()
        #expect(end.status == 130 && end.errors.contains("Stopped before the start"), "\(end.errors)")
        #expect(server.requests.isEmpty)
        #expect(try await sandbox.json("list").array.isEmpty)
    }

    @Test("A work path that cannot be used is reported before the wait") func early() async throws {
        try sandbox.put("", "file")
        let result = try await sandbox.fk("get", server.url("/a"), "--at", "+1h", "--work-path", "file")
        #expect(result.status == 3)
    }

    @Test("--detach leaves the waiting to the background process") func detached() async throws {
        try await sandbox.done("get", "--detach", server.url("/a"), "--at", "+1s", "--log", "log")
        #expect(try await sandbox.record(server.url("/a")) { $0.state == .complete } != nil)
        #expect(String(decoding: try sandbox.bytes("log"), as: UTF8.self).contains("info begin"))
    }

    @Test("--user is sent to its host, kept in files of mode 0600, and shown nowhere") func user() async throws {
        let other = try FaultServer()
        other.route("/b") { _ in .ok([1]) }
        server.route("/a") { [url = other.url("/b")] _ in .redirect(to: url) }
        try await sandbox.done("get", server.url("/a"), "--user", "me:canary-ü:x", "--log", "log")
        let login = Data("me:canary-ü:x".utf8).base64EncodedString()
        #expect(server.requests("/a").first?["Authorization"] == "Basic \(login)")
        #expect(other.requests("/b").first?["Authorization"] == nil)
        for words in [["info", server.url("/a")], ["info", "--json", server.url("/a")], ["why", server.url("/a")]] {
            let shown = try await sandbox.fk(words).output
            #expect(!shown.contains("canary") && !shown.contains(login), "\(shown)")
        }
        #expect(!String(decoding: try sandbox.bytes("log"), as: UTF8.self).contains(login))
    }

    @Test("--user-agent replaces fk's own") func userAgent() async throws {
        try await sandbox.done("get", server.url("/a"), "--user-agent", "me/1 (x)")
        #expect(server.requests.first?["User-Agent"] == "me/1 (x)")
    }

    @Test("--user without a password and without a terminal is refused") func noTerminal() async throws {
        // setsid: a session of its own has no controlling terminal.
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/setsid") else { return }
        let words = ["--wait", FKProgram.path, "get", server.url("/a"), "--user", "me"]
        let result = try await FKProgram.run("/usr/bin/setsid", words, environment: ["FK_WORK_PATH": sandbox.workPath])
        #expect(result.status == 2 && result.errors.contains("no terminal"), "\(result.errors)")
        #expect(server.requests.isEmpty)
    }

    @Test("A list that is typed gets a hint", .needsPseudoTerminal) func hint() throws {
        let terminal = try PseudoTerminal()
        var isTyped = false
        let line = server.url("/typed") + "\n\u{4}"
        let result = try terminal.run(
            FKProgram.path, ["get", "-i", "-", "-d", sandbox.files],
            environment: ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm"]
        ) { text in
            guard !isTyped, text.contains("Ctrl-D ends the list") else { return }
            isTyped = true
            terminal.type(line)
        }
        #expect(result.status == 0, "\(result.raw)")
        #expect(try sandbox.bytes("typed") == [1, 2, 3])
    }

    @Test(
        "A password is asked for on the terminal, which does not show it", .needsPseudoTerminal,
        arguments: [true, false])
    func password(isTyped: Bool) throws {
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/setsid") else { return }
        let terminal = try PseudoTerminal()
        var hasAnswered = false
        // --ctty: the terminal of standard input becomes the controlling one.
        let result = try terminal.run(
            "/usr/bin/setsid",
            ["--ctty", "--wait", FKProgram.path, "get", server.url("/a"), "-d", sandbox.files, "--user", "me"],
            environment: ["FK_WORK_PATH": sandbox.workPath, "TERM": "xterm"]
        ) { text in
            guard !hasAnswered, text.contains("Password for me: ") else { return }
            hasAnswered = true
            terminal.type(isTyped ? "canary\n" : "can\u{3}")
        }
        #expect(hasAnswered && !result.raw.contains("can"), "\(result.raw)")
        #expect(result.status == (isTyped ? 0 : 130), "\(result.raw)")
        let login = Data("me:canary".utf8).base64EncodedString()
        #expect(server.requests.map { $0["Authorization"] } == (isTyped ? ["Basic \(login)"] : []))
    }
}
