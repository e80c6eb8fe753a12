import TestSupport
import Testing

@testable import fk

/// A work path and a folder for files of one test, and `fk` working on them. Both are gone at the end, and so is every
/// process that was started here.
final class Sandbox: Sendable {
    let folder: TemporaryFolder
    private let started = Observed<[RunningFK]>([])
    private let watch: TestWatch

    /// Further variables of every `fk` that is started here.
    private let environment: [String: String]

    init(environment: [String: String] = [:]) throws {
        self.environment = environment
        folder = try TemporaryFolder()
        watch = TestWatch(Test.current?.displayName ?? "a test") { [started] in
            started.value.map { "\($0.words), \($0.hasEnded ? "ended" : "at work"): \($0.errors.suffix(1_000))" }
                .joined(
                    separator: "\n")
        }
        try FileManager.default.createDirectory(atPath: "\(folder.path)/files", withIntermediateDirectories: true)
    }

    deinit {
        for process in started.value { process.kill() }
    }

    /// `FK_WORK_PATH` of every `fk` that is started here.
    var workPath: String { "\(folder.path)/work" }
    /// The folder every `fk` is started in.
    var files: String { "\(folder.path)/files" }
    var reader: StoreReader { StoreReader(WorkPath(workPath)) }

    /// Runs `fk` to its end.
    @discardableResult
    func fk(_ words: String..., input: String? = nil) async throws -> FKProgram.Output {
        try await start(words, input: input).end()
    }

    func fk(_ words: [String]) async throws -> FKProgram.Output { try await start(words).end() }

    /// The same; it has to succeed.
    @discardableResult
    func done(
        _ words: String..., input: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> FKProgram.Output {
        try await done(words, input: input, sourceLocation: sourceLocation)
    }

    @discardableResult
    func done(
        _ words: [String], input: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> FKProgram.Output {
        let result = try await start(words, input: input).end()
        #expect(result.status == 0, "\(words): \(result.errors)", sourceLocation: sourceLocation)
        return result
    }

    /// Starts `fk` and returns at once.
    func start(_ words: String...) throws -> RunningFK { try start(words) }

    func start(_ words: [String], input: String? = nil, environment own: [String: String] = [:]) throws -> RunningFK {
        let process = try RunningFK(
            words, workPath: workPath, folder: files, input: input, environment: environment.merging(own) { $1 })
        started.update { $0.append(process) }
        return process
    }

    /// What `fk` prints with `--json`, which has to be one document.
    func json(_ words: String...) async throws -> JSON { try await json(words) }

    func json(_ words: [String]) async throws -> JSON {
        let result = try await fk(words + ["--json"])
        #expect(result.errors == "")
        return try JSON(result.output)
    }

    func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(files)/\(name)")))
    }

    func put(_ text: String, _ name: String) throws {
        try text.write(toFile: "\(files)/\(name)", atomically: false, encoding: .utf8)
    }

    func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: "\(files)/\(name)") }

    /// All names in the files' folder, hidden ones included.
    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: files).sorted() }

    /// The record of the URL once it is as wanted; nil after a long while.
    func record(_ url: String, until isMet: (TaskRecord) -> Bool = { _ in true }) async throws -> TaskRecord? {
        try await eventually { (try? reader.records(url: url))?.first(where: isMet) }
    }
}

/// An `fk` at work.
final class RunningFK: Sendable {
    let pid: Int32
    let words: [String]
    private let scratch: TemporaryFolder
    private let status: Observed<Int32?>

    init(
        _ words: [String], workPath: String, folder: String, input: String? = nil, environment: [String: String] = [:]
    ) throws {
        let scratch = try TemporaryFolder()
        self.scratch = scratch
        self.words = words
        let process = try ChildProcess(
            [FKProgram.path] + words,
            environment: FKProgram.environment(
                ["FK_WORK_PATH": workPath, "TERM": "xterm", "LC_ALL": "C.UTF-8"].merging(environment) { $1 }),
            folder: folder, input: try input.map { .file(try scratch.write($0, "in")) } ?? .null,
            output: .file("\(scratch.path)/out"), errors: .file("\(scratch.path)/err"))
        pid = process.pid
        let status = Observed<Int32?>(nil)
        self.status = status
        Thread.detachNewThread {
            let code = process.end()
            status.update { $0 = code }
        }
    }

    var hasEnded: Bool { status.value != nil }
    /// What it has written so far.
    var output: String { (try? scratch.text("out")) ?? "" }
    var errors: String { (try? scratch.text("err")) ?? "" }

    func signal(_ number: Int32) { if !hasEnded { Foundation.kill(pid, number) } }
    func kill() { signal(SIGKILL) }

    /// Waits for its end. Status 128 + n: killed by signal n.
    func end() async -> FKProgram.Output {
        let status = await status.wait { $0 != nil }
        return FKProgram.Output(status: status ?? -1, output: output, errors: errors)
    }

    /// Waits until it has written the text to standard error.
    func says(_ text: String) async throws -> Bool {
        try await eventually { errors.contains(text) ? true : nil } ?? false
    }
}

/// A JSON document with paths such as `json["error", "code"]`.
struct JSON {
    let value: Any

    init(_ text: String) throws {
        value = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    }

    private init(value: Any) { self.value = value }

    subscript(_ path: String...) -> Any? {
        path.reduce(value as Any?) { ($0 as? [String: Any])?[$1] }
    }

    func text(_ path: String) -> String? { self[path] as? String }
    func number(_ path: String) -> Int? { (self[path] as? NSNumber)?.intValue }
    func isNull(_ path: String) -> Bool { self[path] is NSNull }
    var keys: Set<String> { Set((value as? [String: Any] ?? [:]).keys) }
    var array: [JSON] { (value as? [Any] ?? []).map { JSON(value: $0) } }
    func array(_ path: String) -> [JSON] { (self[path] as? [Any] ?? []).map { JSON(value: $0) } }

    /// One document a line, as runs print them.
    static func lines(_ text: String) throws -> [JSON] {
        try text.split(separator: "\n").map { try JSON(String($0)) }
    }
}

extension FaultServer {
    /// Serves a file as a correct server would, with a strong validator.
    func serve(_ path: String, _ body: [UInt8]) {
        route(path) { .ranged(body, for: $0, etag: "\"v1\"") }
    }

    /// Serves a file whose bytes from `offset` on wait until the gate opens, on every connection.
    func serve(_ path: String, _ body: [UInt8], stallingAt offset: Int, _ gate: Gate) {
        route(path) { request in
            let start = request["Range"]?.dropFirst("bytes=".count).prefix(while: \.isNumber)
            let first = start.flatMap { Int($0) } ?? 0
            return .ranged(body, for: request, etag: "\"v1\"").stalling(at: max(0, offset - first), until: gate)
        }
    }
}

/// What a suite of `fk` needs: a sandbox, and a server for its files.
class ServedSuite {
    let sandbox: Sandbox
    let server: FaultServer

    init() throws {
        sandbox = try Sandbox()
        server = try FaultServer()
    }
}
