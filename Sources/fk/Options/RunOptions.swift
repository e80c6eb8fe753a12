import FKCore
import FKMiddleware
import Foundation

/// The options of the commands that run downloads: `get`, `run` and `barrel run`.
struct RunOptions: Sendable, Hashable {
    /// The maximum number of this command's tasks at once, 1 to 256; nil uses the saved setting or the downloader's
    /// default.
    var jobs: Int?
    /// The number of connections per file; nil uses the saved setting or the downloader's default.
    var connections: ConnectionLimit?
    /// The rate limit over this command's tasks in bytes per second; nil and 0 set no limit.
    var rateLimit: Int64?
    /// The maximum number of this command's connections to one host, 1 to 256; nil for the host's policy alone.
    var perHost: Int?
    /// The rate of this command's requests to one host; nil for the host's policy alone.
    var requestRate: RequestRate?
    /// A contact for the User-Agent; nil for that of the host's policy.
    var contact: String?
    /// The number of shards that divide the policies of hosts among themselves; nil for one.
    var shards: Int?
    /// Bytes to keep free on the disk; nil uses the saved setting or the downloader's default.
    var minFree: Int64?
    /// The absolute path of the folder for part files; nil for the destination.
    var partsFolder: String?
    /// Identifies the limits of this command to the engine.
    let group = UUID().uuidString
    var durability: Durability?
    /// The transport; nil uses the saved setting or the downloader's default.
    var transport: TransportKind?
    /// True leaves the run to a background process and returns at once.
    var detach: Bool
    /// True ends the run although tasks were suspended during it.
    var noWait: Bool
    /// The absolute path of the log; nil for none.
    var log: String?
    var logLevel = LogLevel.info
    /// When the run starts; nil for now.
    var start: Date?
    /// Whether paths of finished files are printed; nil prints them where standard output is not a terminal.
    var print: FinishedPaths.Choice?
    /// True ends each printed path with NUL.
    var endsWithNUL: Bool

    static let connectionsSpec = OptionSpec.value(
        "connections", "x", "N|auto", hint: .choices(["auto"]),
        "connections for one file: 1 to 256, or auto (the default), which adds some while throughput improves")

    static let minFreeSpec = OptionSpec.value(
        "min-free", nil, "SIZE",
        "keep at least SIZE free on the disk (default: 64M; 0 disables the check)")

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                minFreeSpec,
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
                .value("contact", nil, "MAIL|URL", "append a mail address or a URL to the User-Agent"),
                .value(
                    "transport", nil, "KIND", hint: .choices(TransportKind.allCases.map(\.rawValue)),
                    "library for transfers: automatic (default), curl or urlsession"),
            ])
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
        jobs = try arguments.integer("jobs", "-j", in: 1...256)
        connections = try arguments.connections("connections", "-x")
        rateLimit = try arguments.rate("limit-rate", "--limit-rate")
        perHost = try arguments.integer("per-host", "--per-host", in: 1...256)
        requestRate = try arguments.requestRate()
        contact = try arguments.contact()
        minFree = try arguments.size("min-free", "--min-free", atLeast: 0)
        partsFolder = try Self.path("parts-folder", "folder", arguments, context)
        durability = try arguments.choice("durability", "--durability", of: Durability.self)
        transport = try arguments.choice("transport", "--transport", of: TransportKind.self)
        detach = arguments.has("detach")
        noWait = arguments.has("no-wait")
        print = try arguments.choice("print", "--print", of: FinishedPaths.Choice.self)
        endsWithNUL = arguments.has("null")
        if arguments.has("json"), let option = print == .path ? "--print" : endsWithNUL ? "-0" : nil {
            throw arguments.error("\(option) and --json exclude each other: events contain the path.")
        }
        log = try Self.path("log", "file", arguments, context)
        if let level = try arguments.choice("log-level", "--log-level", of: LogLevel.self) {
            guard log != nil else { throw arguments.error("--log-level: there is no log. Give --log FILE.") }
            logLevel = level
        }
        start = try Self.start(arguments)
    }

    private static func path(
        _ option: String, _ kind: String, _ arguments: ParsedArguments, _ context: CommandContext
    ) throws -> String? {
        guard let path = arguments[option] else { return nil }
        guard !path.isEmpty else { throw arguments.error("--\(option): the \(kind)'s name is empty.") }
        return try Paths.absolute(path, from: context.workingDirectory)
    }

    private static func start(_ arguments: ParsedArguments) throws -> Date? {
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
        try log.map { try LogFile($0, level: logLevel) { context.warn($0) } }
    }

    /// Waits for the time of `--at`.
    ///
    /// - Returns: nil at that time, or without `--at`; the exit status if a signal came first.
    func waitForStart(_ context: CommandContext) async throws -> Int32? {
        guard let start else { return nil }
        // A log that cannot be opened is refused before the wait.
        _ = try openLog(context)
        return try await StartWait(time: start, context: context).run()
    }
}
