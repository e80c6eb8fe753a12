import FKCore
import FKMiddleware
import Foundation

/// The options of the commands that run downloads: `get`, `run` and `barrel run`.
@dynamicMemberLookup
struct RunOptions: Sendable, Hashable {
    /// What the run wants, which a background process, another engine and `fk rpc` get as a whole. Here are only the options that
    /// concern this process: what it shows and whether it stays.
    var orders: RunOrders
    /// True leaves the run to a background process and returns at once.
    var detach: Bool
    /// Whether paths of finished files are printed; nil prints them where standard output is not a terminal.
    var print: FinishedPaths.Choice?
    /// True ends each printed path with NUL.
    var endsWithNUL: Bool
    /// True shows what goes over the connections of this process.
    var isVerbose: Bool

    subscript<Value>(dynamicMember field: WritableKeyPath<RunOrders, Value>) -> Value {
        get { orders[keyPath: field] }
        set { orders[keyPath: field] = newValue }
    }

    /// A value that follows from the orders.
    subscript<Value>(dynamicMember field: KeyPath<RunOrders, Value>) -> Value { orders[keyPath: field] }

    var logLevel: LogLevel { orders.logLevelName.flatMap(LogLevel.init) ?? .info }

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        orders = try RunOption.orders(arguments, context)
        detach = arguments.has("detach")
        print = try arguments.choice("print", "--print", of: FinishedPaths.Choice.self)
        endsWithNUL = arguments.has("null")
        isVerbose = arguments.has("verbose")
        if arguments.has("json"), let option = print == .path ? "--print" : endsWithNUL ? "-0" : nil {
            throw arguments.error("\(option) and --json exclude each other: events contain the path.")
        }
    }

    /// Opens the log; nil without `--log`.
    ///
    /// - Throws: `CommandFailure` if it cannot be opened.
    func openLog(_ context: CommandContext) throws -> LogFile? {
        try orders.log.map { try LogFile($0, level: logLevel, hiding: context.errors.hidden) { context.warn($0) } }
    }

    /// - Returns: nil at that time, or without `--at`; the exit status if a signal came first.
    func waitForStart(_ context: CommandContext) async throws -> Int32? {
        guard let start = orders.start else { return nil }
        // A log that cannot be opened is refused before the wait.
        _ = try openLog(context)
        return try await StartWait(time: start, context: context).run()
    }
}

extension ParsedArguments {
    /// The time of `--at`; nil without it.
    func start() throws -> Date? {
        guard let text = self["at"] else { return nil }
        do {
            return try StartTime.parse(text, now: Date())
        } catch {
            let shown = "--at: '\(text.visible)'"
            switch error {
            case .form: throw self.error("\(shown) is not allowed here. Give \(StartTime.forms).")
            case .past: throw self.error("\(shown) is in the past.")
            case .far: throw self.error("\(shown) is more than a year ahead.")
            }
        }
    }
}
