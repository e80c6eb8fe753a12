import FKCore
import FKMiddleware
import Foundation

/// Leaves a run to a background process (`--detach`).
///
/// The tasks are created first, so that a later failure loses none. Then `fk run` starts in its own session with a
/// file that has the orders of the run and lists the tasks. It becomes the engine, or waits for its turn if there is one.
enum Detach {
    /// The variable with the path of that file: `RunOrders` in the first line, then the ids of the tasks, one per line. `fk run`
    /// reads and removes it.
    static let variable = "FK_RUN_TASKS"

    /// A run that another process has handed over.
    struct Handed: Sendable, Hashable {
        let orders: RunOrders
        let tasks: [TaskID]
    }

    static func start(_ ids: [TaskID], _ options: RunOptions, _ context: CommandContext) throws {
        var orders = options.orders
        orders.noWait = !options.waitsForSuspended(context)
        let list = "\(context.global.workPath)/detached-\(UUID().uuidString)"
        let orderBytes = try bytes(orders, ids)
        do {
            try orderBytes.withUnsafeBytes { try FileIO.create(list, $0) }
        } catch {
            throw DownloadError(
                .workPathUnusable, "The background run is not started, because the work path cannot be written.",
                underlying: (error as? DownloadError)?.message ?? "\(error)")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try OwnProgram.path())
        process.arguments = ["run", "--quiet", "--work-path", context.global.workPath]
        process.environment = context.environment.merging([variable: list]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        do {
            try process.run()
        } catch {
            unlink(list)
            throw error
        }
    }

    /// The contents of the file.
    static func bytes(_ orders: RunOrders, _ ids: [TaskID]) throws -> [UInt8] {
        var text = Array(try orders.text().utf8) + [0x0a]
        text.reserveCapacity(text.count + 65 * ids.count)
        for id in ids {
            text.append(contentsOf: id.hex.utf8)
            text.append(0x0a)
        }
        return text
    }

    /// Leaves everything that waits to a background process, as `fk run` would run it.
    ///
    /// - Returns: the number of tasks, and the members of divided barrels, which are left to the shards; nil for none.
    static func startAll(
        _ options: RunOptions, _ context: CommandContext
    ) throws -> (count: Int, divided: DividedMembers?) {
        let reader = StoreReader(context.global.place)
        let divided = try DividedMembers(reader)
        let waiting = try reader.records { !$0.state.isSettled && divided?.ids.contains($0.id) != true }
        guard !waiting.isEmpty else { return (0, divided) }
        EngineEnvironment(context)?.warnings(about: waiting.prefix(256).map(\.task)).forEach(context.warn)
        try start(waiting.map(\.id), options, context)
        return (waiting.count, divided)
    }

    /// What was handed to a background run; nil for a run that the user typed.
    ///
    /// - Throws: `CommandFailure` if the file cannot be read, since the run would not know what it may do.
    static func handed(_ context: CommandContext) throws -> Handed? {
        guard let path = context.environment[variable] else { return nil }
        // Its own session keeps the run alive when the terminal is closed.
        if setsid() < 0 { signal(SIGHUP, SIG_IGN) }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), let handed = parse(text) else {
            throw CommandFailure(
                "The file \(path.visible), which says what a background run does, cannot be read. Start it again with "
                    + "'\(context.global.suggested("fk run --detach"))'.", status: ExitStatus.taskFailed)
        }
        unlink(path)
        return handed
    }

    /// Reads what `bytes` returned; nil for another text.
    static func parse(_ text: String) -> Handed? {
        let lines = text.split(separator: "\n")
        guard let first = lines.first, let orders = try? RunOrders(text: String(first)) else { return nil }
        return Handed(orders: orders, tasks: lines.dropFirst().compactMap { TaskID(hex: String($0)) })
    }
}

extension RunOptions {
    /// True for a run that was started at a terminal, also one that it left in the background.
    func waitsForSuspended(_ context: CommandContext) -> Bool {
        !orders.noWait && (context.environment[Detach.variable] != nil || context.errorTerminal(.never).isTerminal)
    }
}
