import FKCore
import FKMiddleware
import Foundation

/// Leaves a run to a background process (`--detach`).
///
/// The tasks are created first, so that a later failure loses none. Then `fk run` starts in its own session with a
/// file that lists the tasks. It becomes the engine, or waits for its turn if there is one.
enum Detach {
    /// The variable with the path of a file that lists the ids of the tasks to run, one per line. `fk run` reads and
    /// removes the file.
    static let variable = "FK_RUN_TASKS"

    static func start(_ ids: [TaskID], _ options: RunOptions, _ context: CommandContext) throws {
        let list = "\(context.global.workPath)/detached-\(UUID().uuidString)"
        var text: [UInt8] = []
        text.reserveCapacity(65 * ids.count)
        for id in ids {
            text.append(contentsOf: id.hex.utf8)
            text.append(0x0a)
        }
        try text.withUnsafeBytes { try FileIO.create(list, $0) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try OwnProgram.path())
        process.arguments =
            ["run", "--quiet", "--work-path", context.global.workPath] + options.words
            + (options.log.map { ["--log", $0, "--log-level", options.logLevel.rawValue] } ?? [])
            + (options.start.map { ["--at", Timestamp.seconds($0)] } ?? [])
            + (options.waitsForSuspended(context) ? [] : ["--no-wait"])
        process.environment = context.environment.merging([variable: list]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    /// Leaves everything that waits to a background process.
    ///
    /// - Returns: the number of tasks.
    static func startAll(_ options: RunOptions, _ context: CommandContext) throws -> Int {
        let waiting = try StoreReader(WorkPath(context.global.workPath)).records { !$0.state.isSettled }
        try start(waiting.map(\.id), options, context)
        return waiting.count
    }

    /// The tasks of a background run; nil for a run that the user typed.
    static func tasks(_ context: CommandContext) -> [TaskID]? {
        guard let path = context.environment[variable] else { return nil }
        // Its own session keeps the run alive when the terminal is closed.
        if setsid() < 0 { signal(SIGHUP, SIG_IGN) }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [] }
        unlink(path)
        return text.split(separator: "\n").compactMap { TaskID(hex: String($0)) }
    }
}

extension RunOptions {
    /// True for a run that was started at a terminal, also one that it left in the background.
    func waitsForSuspended(_ context: CommandContext) -> Bool {
        !noWait && (context.environment[Detach.variable] != nil || context.errorTerminal(.never).isTerminal)
    }

    /// The options of the downloader as words of a command line, of `fk run` and of `fk-rpc`.
    var words: [String] {
        let connections: String? =
            switch connections {
            case .automatic: "auto"
            case .fixed(let count): String(count)
            case nil: nil
            }
        let values: KeyValuePairs<String, String?> = [
            "jobs": jobs.map { String($0) }, "connections": connections, "limit-rate": rateLimit.map { String($0) },
            "min-free": minFree.map { String($0) }, "parts-folder": partsFolder, "durability": durability?.rawValue,
            "transport": transport?.rawValue,
        ]
        return values.flatMap { name, value in value.map { ["--\(name)", $0] } ?? [] }
    }
}
