import FKCore
import FKMiddleware
import Foundation

/// `fk demo`: fetches a barrel from a local server, kills the run halfway, continues it, and compares every digest.
struct DemoCommand: Command {
    let options: DemoOptions
    let context: CommandContext

    /// The default rate of each connection in bytes per second. With four connections the demo takes about five
    /// seconds.
    private static let defaultRate: Int64 = 12 << 20
    private static let barrel = "demo"

    func run() async throws -> Int32 {
        let folder = try ScratchFolder.make("fk-demo", context)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let files = DemoFile.set(seed: 20)
        let server = try DemoServer(files: files, bytesPerSecond: options.rate ?? Self.defaultRate)
        defer { server.stop() }
        let run = DemoRun(
            workPath: "\(folder)/work", directory: options.directory ?? "\(folder)/files", jobs: options.jobs ?? 4,
            context: context)
        let total = files.reduce(Int64(0)) { $0 + Int64($1.size) }

        say("1. A server on 127.0.0.1 offers \(files.count) files, \(Formatting.bytes(total)) in all.")
        try await run.createBarrel(Self.barrel, urls: files.map { server.url(of: $0) })
        say("2. fk barrel run \(Self.barrel), and in the middle: SIGKILL.")
        try await run.runAndKill(Self.barrel, at: total * 2 / 5)
        let before = run.totals(Self.barrel)
        let finished = before.count(.complete).plural("file")
        say("   Killed. On disk: \(Formatting.bytes(before.received)), \(finished) complete.")
        say("3. The same command again: it continues where it stopped.")
        let status = try await run.finish(Self.barrel)
        let sent = Int64(server.bytesSent)
        say("4. Every file is read back and its SHA-256 compared.")
        let results = files.map { run.check($0, sent: Int64(server.bytesSent($0))) }
        table(results)
        let wrong = results.count { !$0.isRight }
        let twice = max(0, sent - total)
        say(
            "\(results.count - wrong) of \(results.count) files right. The server sent \(Formatting.bytes(sent)): "
                + "\(Formatting.bytes(twice)) twice, lost in the connections that were killed.")
        if let directory = options.directory { say("The files are in \(directory).") }
        return wrong == 0 && status == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }

    private func say(_ text: String) {
        if !global.quiet, !global.json { context.output.writeLine(text.visible) }
    }

    private func table(_ results: [DemoRun.Result]) {
        guard !global.json else {
            let rows = results.map { result in
                JSON.members([
                    "bytes": .integer(result.size), "name": .string(result.name), "right": .bool(result.isRight),
                    "sent": .integer(result.sent), "sha256": .string(result.digest),
                ])
            }
            return JSONOutput(context.output).document(.array(rows))
        }
        guard !global.quiet else { return }
        var table = TableWriter([
            .init("FILE", isFlexible: true), .init("BYTES", alignsRight: true), .init("SENT", alignsRight: true),
            .init("SHA-256"), .init("RESULT"),
        ])
        for result in results {
            table.add([
                .init(result.name), .init(Formatting.bytes(result.size)), .init(Formatting.bytes(result.sent)),
                .init(String(result.digest.prefix(16))),
                .init(result.isRight ? "right" : "WRONG", result.isRight ? .green : .red),
            ])
        }
        table.write(context)
    }
}

/// The steps of the demo. They run this program as separate processes, as a user would.
struct DemoRun: Sendable {
    let workPath: String
    let directory: String
    let jobs: Int
    let context: CommandContext
    private var global: GlobalOptions { context.global }

    struct Result: Sendable {
        var name: String
        var size: Int64
        /// The bytes that the server sent for this file, including interrupted responses.
        var sent: Int64
        var digest: String
        var isRight: Bool
    }

    func createBarrel(_ name: String, urls: [String]) async throws {
        let client = EngineClient(configure: Configure(workPath: URL(fileURLWithPath: workPath)))
        let tasks = urls.map { url in
            var task = TaskDescription(url: url)
            task.directory = directory
            task.options.existing = .overwrite
            return task
        }
        let (reply, _) = try await client.perform(.add(tasks: tasks, barrel: name, run: false))
        if case .failed(let error) = reply { throw error }
    }

    /// Starts `fk barrel run` and kills it once this many bytes are stored.
    func runAndKill(_ name: String, at bytes: Int64) async throws {
        let process = try start(name)
        while process.isRunning, totals(name).received < bytes { try await Task.sleep(for: .milliseconds(20)) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        if context.errorTerminal(global.color).isTerminal { context.errors.write("\u{1b}[?7h\n") }
    }

    /// Runs `fk barrel run` to its end.
    func finish(_ name: String) async throws -> Int32 {
        let process = try start(name)
        process.waitUntilExit()
        return process.terminationStatus
    }

    private func start(_ name: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try OwnProgram.path())
        process.arguments = ["barrel", "run", name, "-j", String(jobs), "--work-path", workPath]
        if !global.progress || global.json { process.arguments?.append("--no-progress") }
        if global.quiet || global.json { process.arguments?.append("--quiet") }
        process.arguments?.append("--color=\(global.color.rawValue)")
        // The demo's work path has no settings, whatever the user has saved for another one.
        process.environment = context.environment
        try process.run()
        return process
    }

    func totals(_ name: String) -> TaskTotals {
        (try? BarrelView(StoreReader(WorkPath(workPath)), name))?.totals ?? TaskTotals()
    }

    func check(_ file: DemoFile, sent: Int64) -> Result {
        let url = URL(fileURLWithPath: directory).appendingPathComponent(file.name)
        let digest = (try? Digester.hex(ofFile: url, .sha256)) ?? ""
        return Result(
            name: file.name, size: Int64(file.size), sent: sent, digest: digest, isRight: digest == file.digest())
    }
}
