import FKCore
import FKMiddleware
import Foundation

/// `--shard` and the options that belong to it: this process takes one part of a list.
struct ShardOptions: Sendable {
    let request: ShardRequest
    /// True divides the limits of the command by the number of shards.
    let dividesLimits: Bool
    private let arguments: ParsedArguments

    static let specs: [OptionSpec] = OptionSpec.under(
        .shards,
        [
            .value(
                "shard", nil, "I/N|auto", hint: .choices(["auto"]),
                "take part I of N of the list; auto reads the number that Slurm, Kubernetes or GNU parallel gave"),
            .value("shards", nil, "N", "the number of parts, for --shard auto (default: that of the first run)"),
            .value(
                "shard-offset", nil, "K",
                "add K to the scheduler's number, for lists with more parts than one array may have"),
            .flag("divide-limits", nil, "divide limits, also those of hosts, by the number of parts"),
        ])

    /// Parses the options; nil without `--shard`.
    init?(_ arguments: ParsedArguments) throws {
        guard let text = arguments["shard"] else {
            for option in ["shards", "shard-offset", "divide-limits"] where arguments.has(option) {
                throw arguments.error("--\(option) needs --shard I/N or --shard auto.")
            }
            return nil
        }
        let source: ShardRequest.Source
        if text == "auto" {
            source = .automatic
        } else if let shard = Shard(parsing: text) {
            source = .given(shard)
        } else {
            throw arguments.error(
                "--shard: '\(text.visible)' is no shard. Give I/N with I from 1 to N, such as 3/8, or auto.")
        }
        request = ShardRequest(
            source, count: try arguments.integer("shards", "--shards", in: 1...Shard.maxCount),
            offset: try arguments.integer("shard-offset", "--shard-offset", in: 0...Shard.maxCount - 1))
        dividesLimits = arguments.has("divide-limits")
        if arguments.has("detach") { throw arguments.error("--shard and --detach exclude each other.") }
        self.arguments = arguments
    }

    /// Chooses the shard, records the division if this is the first run, and opens the shard's work path.
    ///
    /// - Parameter barrel: nil for a list without a barrel.
    /// - Throws: `UsageError` for an impossible shard; `.workPathUnusable` and similar codes.
    func enter(_ barrel: String?, _ context: CommandContext) throws -> ShardPlace {
        let root = WorkPath(context.global.workPath)
        let list = barrel.map { DividedList.barrel($0) } ?? .lists(in: root.root)
        do {
            // What cannot be right is refused before anything is written.
            var (shard, plan) = try request.resolve(
                root.exists ? ShardPlan.read(barrel, in: root) : nil, of: list, in: context.environment)
            try root.open(create: true)
            try root.makeShardsFolder()
            let recorded = try plan.recordFirst(barrel, in: root)
            if recorded != plan {
                // Another process was first, or its numbers are those of no scheduler yet.
                (shard, plan) = try request.resolve(recorded, of: list, in: context.environment)
                if plan != recorded { try plan.replace(barrel, in: root) }
            }
            // A shard without files has one as well: then it is known that it ran.
            try root.shard(shard).open(create: true)
            var own = context
            own.global.workPath = root.shard(shard).root
            // Suggested commands have to name it.
            own.global.isWorkPathGiven = true
            return ShardPlace(shard: shard, context: own, dividesLimits: dividesLimits)
        } catch let error as ShardError {
            throw arguments.error(error.message)
        }
    }
}

/// The shard of this process and its work path.
struct ShardPlace: Sendable {
    let shard: Shard
    /// The context of the command, with the shard's work path.
    let context: CommandContext
    fileprivate let dividesLimits: Bool

    /// Says how much of the list this shard has.
    func say(_ count: Int, of total: Int) {
        guard !context.global.quiet, !context.global.json else { return }
        context.errors.writeLine("Shard \(shard): \(count) of \(total.plural("file")).")
    }

    /// The options of the run: with `--divide-limits`, this shard's part of its limits.
    func limits(_ options: RunOptions) -> RunOptions { dividesLimits ? options.divided(by: shard.count) : options }
}

extension RunOptions {
    /// The options of one shard among `count`: each limit divided by it, and at least 1.
    func divided(by count: Int) -> Self {
        var options = self
        options.orders = orders.divided(by: count)
        return options
    }
}

extension GlobalOptions {
    /// Refuses a divided barrel, whose files the records of its shards have: those of the work path itself know nothing of them.
    ///
    /// - Parameter advice: what to do, with the path of the first shard's work path.
    /// - Throws: `CommandFailure` if the barrel is divided; the errors of `ShardPlan.read`.
    func refuseDivided(_ name: String, _ advice: (_ shard: String) -> String) throws {
        guard let plan = try ShardPlan.read(name, in: place), let first = Shard(1, of: plan.count) else { return }
        throw CommandFailure(
            "The barrel \(name.visible) is divided into \(plan.count.plural("shard")). "
                + advice(place.shard(first).root.shellWord), status: ExitStatus.usage)
    }

    /// Refuses to forget or trash the tasks of a barrel whose shards have taken some: their records and files are in the shards alone.
    ///
    /// - Throws: `CommandFailure` that names these shards; the errors of `ShardPlan.read`.
    func refuseTaken(_ verb: Verb, ofBarrel name: String) throws {
        guard let plan = try ShardPlan.read(name, in: place) else { return }
        let taken = (1...plan.count).compactMap { Shard($0, of: plan.count).map { place.shard($0) } }
            .filter { $0.hasBarrel(name) }
        guard !taken.isEmpty else { return }
        let commands = taken.map { place in
            var own = self
            (own.workPath, own.isWorkPathGiven) = (place.root, true)
            return own.suggested("fk barrel \(verb.rawValue)", [name])
        }
        throw CommandFailure(
            "The barrel \(name.visible) is divided into \(plan.count.plural("shard")), which have its tasks and files. "
                + "Nothing was done. In the work paths of the shards:",
            lines: commands, status: ExitStatus.taskFailed)
    }
}

extension CommandContext {
    /// Names the work paths of the shards that have taken some of the tasks: the queries show the tasks of shards, and the command has not
    /// changed them.
    ///
    /// - Returns: true if there are any.
    @discardableResult
    func warnOfShards(_ ids: [TaskID]) -> Bool {
        guard let query = try? global.openQuery() else { return false }
        let homes = Set(ids.map { query.home(of: $0).root }).subtracting([query.workPath.root]).sorted()
        guard !homes.isEmpty else { return false }
        warn(
            "Shards have taken some of these tasks, and nothing changed there: their tasks and files stay. Verbs act on one work path: add "
                + homes.map { "--work-path \($0.shellWord)" }.joined(separator: ", then ") + ".")
        return true
    }
}
