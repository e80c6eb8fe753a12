import TestSupport
import Testing

@testable import fk

/// Running a long barrel again, with the index of its finished members and without it. A barrel that is long enough for an index
/// takes 8 s of processor time to make: each test does several things with its own.
@Suite("fk barrel run of a long barrel, again") struct BarrelRunAgainTests {
    private static let count = FinishedIndex.leastCount + 100
    private let sandbox: Sandbox
    private let server: FaultServer

    init() async throws {
        sandbox = try Sandbox()
        server = try FaultServer()
        server.routeOthers { _ in .ok([1, 2, 3]) }
        let list = (0..<Self.count).map { server.url("/f\($0)") }.joined(separator: "\n")
        try await sandbox.done("barrel", "import", "all", "-", input: list)
        let first = try await sandbox.fk("barrel", "run", "all", "-j", "16")
        #expect(first.status == 0 && first.output.split(separator: "\n").count == Self.count)
    }

    private var index: String { "\(sandbox.workPath)/barrels/all.barrel.done" }
    private var requests: Int { server.requests.count }
    private func info(_ number: Int) throws -> String {
        let record = try #require(sandbox.reader.records(url: server.url("/f\(number)")).first)
        return WorkPath(sandbox.workPath).infoPath(record.id)
    }

    /// Runs the barrel with the index and then without it.
    ///
    /// - Returns: the end of the first run, which equals that of the second.
    private func runTwice() async throws -> FKProgram.Output {
        #expect(FileManager.default.fileExists(atPath: index))
        let before = requests
        let fast = try await sandbox.fk("barrel", "run", "all")
        try? FileManager.default.removeItem(atPath: index)
        let slow = try await sandbox.fk("barrel", "run", "all")
        func lines(_ text: String) -> [Substring] { text.split(separator: "\n").sorted() }
        #expect(fast.status == slow.status && lines(fast.output) == lines(slow.output))
        #expect(lines(fast.errors) == lines(slow.errors), "\(fast.errors.suffix(200)) / \(slow.errors.suffix(200))")
        #expect(requests == before)
        return fast
    }

    /// The number of info files that the command opens; nil where strace may not trace.
    private func opened(_ words: String...) async throws -> Int? {
        guard let strace = Program.find("strace"),
            (try? FKProgram.wait(for: strace, ["-f", "-o", "/dev/null", "true"]))?.status == 0
        else { return nil }
        let trace = "\(sandbox.folder.path)/trace"
        let result = try await FKProgram.run(
            strace, ["-f", "-o", trace, "-e", "trace=open,openat", FKProgram.path] + words,
            environment: ["FK_WORK_PATH": sandbox.workPath], folder: sandbox.files)
        #expect(result.status == 0, "\(result.errors.suffix(200))")
        return try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n").count {
            $0.contains(".info\"")
        }
    }

    @Test(
        "a file that is gone is missing, and is fetched again; a record that was changed counts as it does without the index"
    )
    func lost() async throws {
        try await checkGoneFiles()
        try await checkChanges()
    }

    private func checkGoneFiles() async throws {
        for name in ["f7", "f4100"] { try FileManager.default.removeItem(atPath: "\(sandbox.files)/\(name)") }
        let missing = try await sandbox.fk("barrel", "missing", "all")
        #expect(
            missing.status == 1 && missing.output.split(separator: "\n").count == 2, "\(missing.output.suffix(200))")
        let shown = try await sandbox.json("barrel", "show", "all")
        #expect(shown.number("gone") == 2 && shown.number("complete") == shown.number("total").map { $0 - 2 })
        #expect(shown.number("received") == shown.number("expected").map { $0 - 6 })
        let table = try await sandbox.fk("barrel", "show", "all").output.split(separator: "\n")
        #expect(table.count { $0.contains(" gone ") } == 2 && table.last?.contains("2 files gone") == true)
        let export = try await sandbox.fk("barrel", "export", "all", "--missing")
        #expect(export.status == 0 && export.output == missing.output, "\(export.output.suffix(200))")
        let before = requests
        try await sandbox.done("barrel", "run", "all")
        #expect(requests == before + 2)
        for name in ["f7", "f4100"] { #expect(try sandbox.bytes(name) == [1, 2, 3]) }
        try await sandbox.done("barrel", "missing", "all")
    }

    @Test("nothing has changed: no record is read, and every file is reported all the same; also of several barrels")
    func work() async throws {
        try await checkSeveral()
        try await checkListAgain()
        try await checkUnchanged()
    }

    private func checkUnchanged() async throws {
        let result = try await runTwice()
        #expect(result.status == 0 && result.output.split(separator: "\n").count == Self.count)
        let sum = "\(Self.count) of \(Self.count) complete (\(Self.count) already)\n"
        #expect(result.errors == sum, "no line for each file")
        if let count = try await opened("barrel", "run", "all") { #expect(count == 0) }
        // A record that was written is read again, and only that one.
        try await sandbox.done("barrel", "add", "all", server.url("/new"))
        let before = requests
        try await sandbox.done("barrel", "run", "all")
        #expect(requests == before + 1)
        if let count = try await opened("barrel", "run", "all") { #expect(count == 0) }
        let json = try await sandbox.fk("barrel", "run", "all", "--json")
        let states = try JSON.lines(json.output).filter { $0.text("event") == "state" }
        #expect(states.count == Self.count + 1 && states.allSatisfy { $0.text("state") == "complete" })
        #expect(states.allSatisfy { $0.text("path")?.hasPrefix(sandbox.files) == true && $0.number("attempt") == 1 })
    }

    /// Records removed, replaced or damaged by hand, forgotten, suspended or new.
    private func checkChanges() async throws {
        try FileManager.default.removeItem(atPath: try info(0))
        #expect(try await runTwice().status == 1)
        // The record of another time: the task was waiting then.
        let path = try info(1)
        var contents = try InfoFile.read(path)
        contents.record.state = .suspend
        try FileManager.default.removeItem(atPath: path)
        _ = try InfoFile.create(at: path, record: contents.record)
        let suspended = try await runTwice()
        #expect(suspended.output.split(separator: "\n").count == Self.count - 2)
        try await sandbox.done("forget", server.url("/f2"))
        #expect(try await runTwice().output.split(separator: "\n").count == Self.count - 3)
        try await sandbox.done("barrel", "add", "all", server.url("/f2"), server.url("/late"))
        try await sandbox.done("suspend", server.url("/late"), server.url("/f2"))
        #expect(try await runTwice().output.split(separator: "\n").count == Self.count - 3)
        try Data("garbage".utf8).write(to: URL(fileURLWithPath: try info(3)))
        let damaged = try await sandbox.fk("barrel", "run", "all")
        #expect(damaged.status == 1 && damaged.errors.contains("quarantine"), "\(damaged.errors.suffix(300))")
    }

    /// Several barrels in one run have an index each.
    private func checkSeveral() async throws {
        let list = (0..<Self.count).map { server.url("/f\($0)") }.joined(separator: "\n")
        try await sandbox.done("barrel", "import", "second", "-", input: list)
        try FileManager.default.removeItem(atPath: index)
        let before = requests
        let both = try await sandbox.fk("barrel", "run", "all", "second")
        #expect(both.status == 0 && both.output.split(separator: "\n").count == Self.count && requests == before)
        for name in ["all", "second"] {
            #expect(FileManager.default.fileExists(atPath: "\(sandbox.workPath)/barrels/\(name).barrel.done"))
            if let count = try await opened("barrel", "run", name) { #expect(count == 0) }
        }
        if let count = try await opened("barrel", "run", "all", "second") { #expect(count == 0) }
    }

    /// Of a finished list that is given again, each record is opened once to read it, and once to find that it is there.
    private func checkListAgain() async throws {
        let path = "\(sandbox.files)/urls"
        let urls = (0..<Self.count).map { server.url("/f\($0)") }.joined(separator: "\n")
        try Data(urls.utf8).write(to: URL(fileURLWithPath: path))
        let before = requests
        let again = try await sandbox.fk("get", "-i", path)
        #expect(again.errors.split(separator: "\n").count == 6, "five files and the sum: \(again.errors.suffix(300))")
        #expect(again.status == 0 && again.output.split(separator: "\n").count == Self.count && requests == before)
        if let count = try await opened("get", "-i", path) { #expect(count <= 2 * Self.count + 100) }
    }
}
