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

    /// A field of the orders.
    subscript<Value>(dynamicMember field: WritableKeyPath<RunOrders, Value>) -> Value {
        get { orders[keyPath: field] }
        set { orders[keyPath: field] = newValue }
    }

    /// A value that follows from the orders.
    subscript<Value>(dynamicMember field: KeyPath<RunOrders, Value>) -> Value { orders[keyPath: field] }

    /// How much the log contains.
    var logLevel: LogLevel { orders.logLevelName.flatMap(LogLevel.init) ?? .info }

    static let connectionsSpec = OptionSpec.value(
        "connections", "x", "N|auto", hint: .choices(["auto"]),
        "connections for one file: 1 to 256, or auto (the default), which adds some while throughput improves")

    static let minFreeSpec = OptionSpec.value(
        "min-free", nil, "SIZE",
        "keep at least SIZE free on the disk (default: 64M; 0 disables the check)")

    static let diskBudgetSpec = OptionSpec.value(
        "disk-budget", nil, "SIZE|none", hint: .choices([ParsedArguments.noBudget]),
        "delete finished files, the least recently used first, where the files of the work path would use more than SIZE "
            + "(default: none, which deletes nothing)")

    static let noPrivateSpec = OptionSpec.flag(
        "no-private", nil,
        "follow no redirect to a loopback, link-local or private address of another server than the one asked")

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                minFreeSpec, diskBudgetSpec,
                .value(
                    "parts-folder", nil, "DIR", hint: .directory,
                    "keep unfinished files in DIR, such as one on a fast disk (default: beside the finished file)"),
                .value(
                    "durability", nil, "KIND", hint: .choices(Durability.allCases.map(\.rawValue)),
                    "when a file counts as complete: once it is written (process, the default), or once it is synced "
                        + "to the disk (power)"),
                .value(
                    "print", nil, "WHAT", hint: .choices(FinishedPaths.Choice.allCases.map(\.rawValue)),
                    "print the path of each finished file to standard output: path (default unless that is a terminal) "
                        + "or none"),
                .flag("null", "0", "end each printed path with NUL instead of a line end"),
            ])
        + OptionSpec.under(
            .speed,
            [
                .value("jobs", "j", "N", "download N files at once (1 to 256; default: 3)"),
                connectionsSpec,
                .value(
                    "limit-rate", nil, "RATE",
                    "limit in bytes a second for this command's files together, such as 500K or 1.5M; 0: no limit"),
                .value("per-host", nil, "N", "at most N connections to one host for this command's files (1 to 256)"),
                .value(
                    "rate", nil, "N/s|N/m|N/h",
                    "at most N requests a second, minute or hour to one host for this command's files, spread evenly"),
            ])
        + OptionSpec.under(
            .network,
            [
                .flag(
                    "verbose", "v",
                    "show connections and the heads of requests and responses on standard error, with secrets masked"),
                .value("contact", nil, "MAIL|URL", "append a mail address or a URL to the User-Agent"),
                .value(
                    "transport", nil, "KIND", hint: .choices(TransportKind.allCases.map(\.rawValue)),
                    "library for transfers: automatic (default), curl or urlsession"),
            ])
        + OptionSpec.under(
            .security,
            [noPrivateSpec])
        + OptionSpec.under(
            .background,
            [
                .flag("detach", nil, "leave the downloads to a background process and return at once"),
                .flag(
                    "no-wait", nil,
                    "end also if all that is left was suspended meanwhile; without a terminal that is the default"),
                .value("at", nil, "TIME", "start at TIME: 18:30, 2026-11-23T06:00:00Z, or a delay such as +90m"),
                .value(
                    "log", nil, "FILE", hint: .file,
                    "append a line for each event to FILE; a file of 10 MiB is renamed to FILE.1"),
                .value(
                    "log-level", nil, "LEVEL", hint: .choices(LogLevel.allCases.map(\.rawValue)),
                    "lines of the log: error, warn, info (default) or debug"),
            ])

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        orders = RunOrders()
        orders.jobs = try arguments.integer("jobs", "-j", in: 1...256)
        orders.connections = try arguments.connections("connections", "-x")
        orders.rateLimit = try arguments.rate("limit-rate", "--limit-rate")
        orders.perHost = try arguments.integer("per-host", "--per-host", in: 1...256)
        orders.requestRate = try arguments.requestRate()
        orders.contact = try arguments.contact()
        orders.minFree = try arguments.size("min-free", "--min-free", atLeast: 0)
        orders.diskBudget = try arguments.diskBudget()
        orders.partsFolder = try Self.path("parts-folder", "folder", arguments, context)
        orders.durability = try arguments.choice("durability", "--durability", of: Durability.self)
        orders.transport = try arguments.choice("transport", "--transport", of: TransportKind.self)
        orders.noPrivate = arguments.has("no-private")
        orders.noWait = arguments.has("no-wait")
        orders.log = try Self.path("log", "file", arguments, context)
        if let level = try arguments.choice("log-level", "--log-level", of: LogLevel.self) {
            guard orders.log != nil else { throw arguments.error("--log-level: there is no log. Give --log FILE.") }
            orders.logLevelName = level.rawValue
        }
        orders.start = try Self.start(arguments)
        detach = arguments.has("detach")
        print = try arguments.choice("print", "--print", of: FinishedPaths.Choice.self)
        endsWithNUL = arguments.has("null")
        isVerbose = arguments.has("verbose")
        if arguments.has("json"), let option = print == .path ? "--print" : endsWithNUL ? "-0" : nil {
            throw arguments.error("\(option) and --json exclude each other: events contain the path.")
        }
    }

    private static func path(
        _ option: String, _ kind: String, _ arguments: ParsedArguments, _ context: CommandContext
    ) throws -> String? {
        guard let path = arguments[option] else { return nil }
        guard !path.isEmpty else { throw arguments.error("--\(option): the \(kind)'s name is empty.") }
        return try Paths.absolute(path, from: context.workingDirectory)
    }

    /// The time of `--at`; nil without it.
    static func start(_ arguments: ParsedArguments) throws -> Date? {
        guard let text = arguments["at"] else { return nil }
        do {
            return try StartTime.parse(text, now: Date())
        } catch {
            let shown = "--at: '\(Escaping.visible(text))'"
            switch error {
            case .form: throw arguments.error("\(shown) is not allowed here. Give \(StartTime.forms).")
            case .past: throw arguments.error("\(shown) is in the past.")
            case .far: throw arguments.error("\(shown) is more than a year ahead.")
            }
        }
    }

    /// Opens the log; nil without `--log`.
    ///
    /// - Throws: `CommandFailure` if it cannot be opened.
    func openLog(_ context: CommandContext) throws -> LogFile? {
        try orders.log.map { try LogFile($0, level: logLevel, hiding: context.errors.hidden) { context.warn($0) } }
    }

    /// Waits for the time of `--at`.
    ///
    /// - Returns: nil at that time, or without `--at`; the exit status if a signal came first.
    func waitForStart(_ context: CommandContext) async throws -> Int32? {
        guard let start = orders.start else { return nil }
        // A log that cannot be opened is refused before the wait.
        _ = try openLog(context)
        return try await StartWait(time: start, context: context).run()
    }
}

extension ParsedArguments {
    /// The bytes of `--disk-budget`; nil without it, and for none.
    func diskBudget() throws -> Int64? {
        self["disk-budget"] == ParsedArguments.noBudget ? nil : try size("disk-budget", "--disk-budget")
    }
}
