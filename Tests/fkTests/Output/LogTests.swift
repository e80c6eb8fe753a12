import TestSupport
import Testing

@testable import fk

@Suite("The log of a run") struct LogTests {
    private static let id = TaskID(url: "http://h/a")

    private static func info(_ state: DownloadState, _ change: (inout DownloadInfo) -> Void = { _ in }) -> DownloadInfo
    {
        var info = DownloadInfo(id: id, url: "http://u:p@h/a?token=x", state: state)
        change(&info)
        return info
    }

    @Test(
        "One line for each event, with its level, id, masked URL and reason",
        arguments: [
            (RunSession.Event.state(info(.action) { $0.attempts = 1 }), "info started id=ID url=URL attempt=1"),
            (
                .state(
                    info(.complete) {
                        $0.count = ByteCount(received: 5)
                        $0.path = "/d/a b"
                    }), "info complete id=ID url=URL bytes=5 path=\"/d/a b\""
            ),
            (
                .state(
                    info(.idle) {
                        $0.attempts = 2
                        $0.error = DownloadError(.httpStatus, "It said \"no\".\n", status: 503)
                        $0.waiting = .retry(until: Date(timeIntervalSince1970: 1))
                    }),
                "warn retry id=ID url=URL attempt=2 until=1970-01-01T00:00:01.000Z code=http-status status=503 "
                    + "reason=\"It said \\\"no\\\".\\n\""
            ),
            (.state(info(.idle)), "debug queued id=ID url=URL"),
            (
                .state(info(.error) { $0.error = DownloadError(.timeout, "Silence.") }),
                "error failed id=ID url=URL code=timeout reason=Silence."
            ),
            (.following(pid: 7), "info engine role=follower owner=7"),
            (.problem("a=b"), "warn problem reason=\"a=b\""),
            (
                .replies([.failed(DownloadError(.notFound, "Gone."))]), "error refused code=not-found reason=Gone."
            ),
        ])
    func lines(event: RunSession.Event, expected: String) {
        let url = "\"\("http://u:p@h/a?token=x".masked)\""
        let text = expected.replacing("URL", with: url).replacing("ID", with: Self.id.short)
        #expect(LogLine.lines(of: event).map(\.text) == [text])
    }

    @Test("A value is bounded, and a line has no control characters") func bounded() {
        let line = LogLine(.info, "x", [("reason", "\u{1b}[2J" + String(repeating: "é", count: 10_000))])
        #expect(line.text.count < LogLine.maxValue + 100 && !line.text.unicodeScalars.contains("\u{1b}"))
    }

    @Test("A log is appended to, has the chosen levels, and begins a new file when it is full") func file() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("before\n", "log")
        let one = try LogFile(path, level: .warn, limit: 200) { Issue.record("\($0)") }
        let other = try LogFile(path, level: .warn, limit: 200) { Issue.record("\($0)") }
        one.write(LogLine(.info, "left-out"))
        for number in 0..<12 {
            (number % 2 == 0 ? one : other).write(LogLine(.warn, "n\(number)"), at: Date(timeIntervalSince1970: 0))
        }
        let older = try folder.text("log.1")
        let newer = try folder.text("log")
        #expect(older.hasPrefix("before\n1970-01-01T00:00:00.000Z warn n0\n"))
        let names = (older + newer).split(separator: "\n").dropFirst().map { $0.split(separator: " ")[2] }
        #expect(names == (0..<12).map { "n\($0)" })
    }

    @Test("A file of somebody else in the place of the older log stays, and the log grows") func foreign() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("before\n", "log")
        _ = try folder.write("mine\n", "log.1")
        let log = try LogFile(path, level: .warn, limit: 20) { Issue.record("\($0)") }
        for number in 0..<3 { log.write(LogLine(.warn, "n\(number)")) }
        #expect(try folder.text("log.1") == "mine\n" && folder.text("log").split(separator: "\n").count == 4)
    }

    @Test("A log that cannot be written is reported once, and the downloads go on") func full() throws {
        guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
        let reports = Observed<[String]>([])
        let log = try LogFile("/dev/full", level: .debug) { text in reports.update { $0.append(text) } }
        for _ in 0..<3 { log.write(LogLine(.info, "x")) }
        #expect(reports.value.count == 1 && reports.value[0].contains("/dev/full"))
    }

    @Test("A pipe that nobody reads is refused") func pipe() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: CommandFailure.self) { try LogFile(path, level: .info) { _ in } }
    }

    @Test("A real run: what began, failed and ended, no secret, mode 0600") func real() async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.route("/a") { _ in .ok([1, 2, 3]) }
        server.route("/none") { _ in .status(404) }
        let words = ["get", server.url("/a?token=canary"), server.url("/none"), "--retry", "0", "--log", "run.log"]
        #expect(try await sandbox.fk(words).status == 1)
        let log = String(decoding: try sandbox.bytes("run.log"), as: UTF8.self)
        let events = log.split(separator: "\n").map { $0.split(separator: " ")[1...2].joined(separator: " ") }
        #expect(events.first == "info begin" && events.last == "info end", "\(log)")
        #expect(events.contains("error failed") && events.contains("info complete"))
        #expect(log.contains("code=http-status status=404") && !log.contains("canary"))
        #expect(!events.contains { $0.hasPrefix("debug") })
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(sandbox.files)/run.log")
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try await sandbox.fk(words + ["--log-level", "error"]).status == 1)
        let after = String(decoding: try sandbox.bytes("run.log"), as: UTF8.self)
        #expect(after.hasPrefix(log) && after.dropFirst(log.count).split(separator: "\n").count == 1, "\(after)")
    }
}
