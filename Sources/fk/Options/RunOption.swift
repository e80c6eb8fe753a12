import FKCore
import FKMiddleware
import Foundation

/// An option of `get`, `run` and `barrel run`, with all that the program knows of it. Help, manual, completions, the settings, `fk rpc`
/// and the note of a follower are made from `all`. A new option is an entry there, and a field of `RunOrders` for its value.
struct RunOption: Sendable {
    /// For which tasks an option has no effect while another process is the engine.
    enum Reach: Sendable {
        /// It counts for the command's own tasks there as well.
        case own
        /// For all: the engine's own value counts.
        case engine
        /// For those that are there already. A task that the command adds brings its own value.
        case engineOrTask
        /// For those of a command that runs all tasks.
        case engineOfAll
    }

    let spec: OptionSpec
    /// nil if `fk config` does not save it.
    let saved: SavedOption?
    /// True if `fk rpc` has it.
    let isOfServer: Bool
    private let reach: Reach
    private let isGiven: @Sendable (RunOrders) -> Bool
    private let read: @Sendable (ParsedArguments, CommandContext, inout RunOrders) throws -> Void

    /// An option with a value.
    ///
    /// - Parameters:
    ///   - usual: the default in words; nil for an option that is not saved.
    ///   - value: reads the value; errors name it by the second argument.
    private init<Value: Sendable>(
        _ topic: OptionTopic, _ spec: OptionSpec, _ field: WritableKeyPath<RunOrders, Value?> & Sendable,
        reach: Reach = .own, isOfServer: Bool = false, usual: String? = nil,
        value: @escaping @Sendable (ParsedArguments, String) throws -> Value?
    ) {
        self.init(
            topic, spec, reach, isOfServer,
            saved: usual.map { usual in
                SavedOption(name: spec.long, usual: usual) { _ = try value($0, $1) }
            }, isGiven: { $0[keyPath: field] != nil }
        ) { arguments, _, orders in
            orders[keyPath: field] = try value(arguments, spec.shownName)
        }
    }

    /// An option with the path of a file or folder.
    private init(
        _ topic: OptionTopic, _ spec: OptionSpec, path field: WritableKeyPath<RunOrders, String?> & Sendable,
        of kind: String,
        reach: Reach = .own, isOfServer: Bool = false, usual: String? = nil
    ) {
        self.init(
            topic, spec, reach, isOfServer, saved: usual.map { .path(spec.long, usual: $0) },
            isGiven: { $0[keyPath: field] != nil }
        ) { arguments, context, orders in
            guard let path = arguments[spec.long] else { return }
            guard !path.isEmpty else { throw arguments.error("\(spec.shownName): the \(kind)'s name is empty.") }
            orders[keyPath: field] = try Paths.absolute(path, from: context.workingDirectory)
        }
    }

    private init(
        _ topic: OptionTopic, flag spec: OptionSpec, _ field: WritableKeyPath<RunOrders, Bool> & Sendable,
        reach: Reach = .own, isOfServer: Bool = false
    ) {
        self.init(topic, spec, reach, isOfServer, saved: nil, isGiven: { $0[keyPath: field] }) { arguments, _, orders in
            orders[keyPath: field] = arguments.has(spec.long)
        }
    }

    /// An option about what this process shows, and whether it stays: no order to an engine.
    private init(_ topic: OptionTopic, ofProcess spec: OptionSpec) {
        self.init(topic, spec, .own, false, saved: nil, isGiven: { _ in false }, read: { _, _, _ in })
    }

    private init(
        _ topic: OptionTopic, _ spec: OptionSpec, _ reach: Reach, _ isOfServer: Bool, saved: SavedOption?,
        isGiven: @escaping @Sendable (RunOrders) -> Bool,
        read: @escaping @Sendable (ParsedArguments, CommandContext, inout RunOrders) throws -> Void
    ) {
        self.spec = OptionSpec.under(topic, [spec])[0]
        self.saved = saved
        self.isOfServer = isOfServer
        self.reach = reach
        self.isGiven = isGiven
        self.read = read
    }

    // MARK: All of them

    static let all = [
        RunOption(
            .speed, .value("jobs", "j", "N", "download N files at once (1 to 256; default: 3)"), \.jobs,
            isOfServer: true, usual: "3"
        ) { try $0.integer("jobs", $1, in: 1...256) },
        RunOption(
            .speed,
            .value(
                "connections", "x", "N|auto", hint: .choices(["auto"]),
                "connections for one file: 1 to 256, or auto (the default), which adds some while throughput improves"),
            \.connections, isOfServer: true, usual: "auto"
        ) { try $0.connections("connections", $1) },
        RunOption(
            .speed,
            .value(
                "limit-rate", nil, "RATE",
                "limit in bytes a second for this command's files together, such as 500K or 1.5M; 0: no limit"),
            \.rateLimit, isOfServer: true, usual: "no limit"
        ) { try $0.rate("limit-rate", $1) },
        RunOption(
            .speed,
            .value("per-host", nil, "N", "at most N connections to one host for this command's files (1 to 256)"),
            \.perHost
        ) { try $0.integer("per-host", $1, in: 1...256) },
        RunOption(
            .speed,
            .value(
                "rate", nil, "N/s|N/m|N/h",
                "at most N requests a second, minute or hour to one host for this command's files, spread evenly"),
            \.requestRate
        ) { arguments, _ in try arguments.requestRate() },
        RunOption(
            .files,
            .value(
                "min-free", nil, "SIZE",
                "keep at least SIZE free on the disk (default: 64M; 0 disables the check)"),
            \.minFree, reach: .engineOfAll, isOfServer: true, usual: "64M"
        ) { try $0.size("min-free", $1, atLeast: 0) },
        RunOption(
            .files,
            .value(
                "disk-budget", nil, "SIZE|none", hint: .choices([noBudget]),
                "delete finished files, the least recently used first, where the files of the work path would use more "
                    + "than SIZE (default: none, which deletes nothing)"),
            \.diskBudget, reach: .engine, isOfServer: true, usual: noBudget
        ) { $0["disk-budget"] == noBudget ? nil : try $0.size("disk-budget", $1, or: ", or \(noBudget)") },
        RunOption(
            .files,
            .value(
                "parts-folder", nil, "DIR", hint: .directory,
                "keep unfinished files in DIR, such as one on a fast disk (default: beside the finished file)"),
            path: \.partsFolder, of: "folder", reach: .engine, isOfServer: true, usual: "beside the finished file"),
        RunOption(
            .files,
            .value(
                "durability", nil, "KIND", hint: .choices(Configure.Durability.allCases.map(\.rawValue)),
                "when a file counts as complete: once it is written (process, the default), or once it is synced "
                    + "to the disk (power)"),
            \.durability, reach: .engine, isOfServer: true, usual: Configure.Durability.process.rawValue
        ) { try $0.choice("durability", $1, of: Configure.Durability.self) },
        RunOption(
            .files,
            ofProcess: .value(
                "print", nil, "WHAT", hint: .choices(FinishedPaths.Choice.allCases.map(\.rawValue)),
                "print the path of each finished file to standard output: path (default unless that is a terminal, or with -q) "
                    + "or none")),
        RunOption(.files, ofProcess: .flag("null", "0", "end each printed path with NUL instead of a line end")),
        RunOption(
            .network,
            ofProcess: .flag(
                "verbose", "v",
                "show connections and the heads of requests and responses on standard error, with secrets masked")),
        RunOption(
            .network,
            .value("contact", nil, "MAIL|URL", "append a mail address or a URL to the User-Agent"), \.contact
        ) { arguments, _ in try arguments.contact() },
        RunOption(
            .network,
            .value(
                "transport", nil, "KIND", hint: .choices(TransportKind.allCases.map(\.rawValue)),
                "library for transfers: automatic (default), curl or urlsession"),
            \.transport, reach: .engine, isOfServer: true, usual: TransportKind.automatic.rawValue
        ) { try $0.choice("transport", $1, of: TransportKind.self) },
        RunOption(
            .security,
            flag: .flag(
                "no-private", nil,
                "follow no redirect to a loopback, link-local or private address of another server than the one asked"),
            \.noPrivate, reach: .engineOrTask, isOfServer: true),
        RunOption(
            .background,
            ofProcess: .flag("detach", nil, "leave the downloads to a background process and return at once")),
        RunOption(
            .background,
            flag: .flag(
                "no-wait", nil,
                "end also if all that is left was suspended meanwhile; without a terminal that is the default"),
            \.noWait),
        RunOption(
            .background,
            .value("at", nil, "TIME", "start at TIME: 18:30, 2026-11-23T06:00:00Z, or a delay such as +90m"), \.start
        ) { arguments, _ in try arguments.start() },
        RunOption(
            .background,
            .value(
                "log", nil, "FILE", hint: .file,
                "append a line for each event to FILE; a file of 10 MiB is renamed to FILE.1"),
            path: \.log, of: "file"),
        RunOption(
            .background,
            .value(
                "log-level", nil, "LEVEL", hint: .choices(LogLevel.allCases.map(\.rawValue)),
                "lines of the log: error, warn, info (default) or debug"),
            \.logLevelName
        ) { arguments, written in
            let level = try arguments.choice("log-level", written, of: LogLevel.self)
            guard level == nil || arguments.has("log") else {
                throw arguments.error("--log-level: there is no log. Give --log FILE.")
            }
            return level?.rawValue
        },
    ]

    /// The word for no budget.
    private static let noBudget = "none"

    static let specs = all.map(\.spec)

    static func specs(_ names: String...) -> [OptionSpec] { specs.filter { names.contains($0.long) } }

    static func orders(_ arguments: ParsedArguments, _ context: CommandContext) throws -> RunOrders {
        var orders = RunOrders()
        for option in all { try option.read(arguments, context, &orders) }
        return orders
    }

    /// The names of the options that have no effect while another process is the engine.
    static func ignored(_ orders: RunOrders, _ goal: RunSession.Goal) -> [String] {
        all.filter { $0.isGiven(orders) && $0.isIgnored(goal) }.map { "--\($0.spec.long)" }
    }

    private func isIgnored(_ goal: RunSession.Goal) -> Bool {
        switch reach {
        case .own: false
        case .engine: true
        case .engineOrTask: if case .added = goal { false } else { true }
        case .engineOfAll: if case .everything = goal { true } else { false }
        }
    }
}
