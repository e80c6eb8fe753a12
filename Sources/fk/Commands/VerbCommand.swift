import FKCore
import FKMiddleware
import Foundation

/// `fk suspend|resume|cancel|retry|forget|trash`, also for a barrel.
struct VerbCommand: Command {
    let verb: Verb
    let targets: VerbTargets
    let isConfirmed: Bool
    /// The options of a run that follows; nil for none.
    var runs: RunOptions?
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let selectors = try targets.selectors(in: global)
        if !isConfirmed, let question = try question(), try !Confirmation(context).ask(question) {
            throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
        }
        if let options = runs { return try await run(options) }
        let client = EngineClient.reportingSilence(Configure(workPath: URL(fileURLWithPath: global.workPath)), context)
        var forAll = true
        if case .tasks = targets { forAll = false }
        let answers = Locked(VerbAnswers(global, context, forAll: forAll))
        for selector in selectors {
            try await client.apply(verb, to: selector, forAll: verb == .resume && selector == .all) { reply, problems in
                answers.withLock { $0.take(reply, problems) }
            }
            if answers.withLock({ $0.failure != nil }) { break }
        }
        return answers.withLock { $0.end() }
    }

    /// Applies the verb, and runs the tasks that it can queue to their end.
    private func run(_ options: RunOptions) async throws -> Int32 {
        let records = try targets.records(global.openReader())
        var known: Set<TaskID> = []
        let ids = records.filter { !$0.state.isSettled || $0.state == .error || $0.state == .cancel }.map(\.id)
            .filter { known.insert($0).inserted }
        guard !ids.isEmpty else {
            context.errors.writeLine("Nothing to retry: no task of these has failed or was cancelled.")
            return ExitStatus.done
        }
        var transfer = TransferRun(
            global: global, context: context, options: options, goal: .tasks(ids),
            requests: ids.map { EngineMessage(.verb(verb, .id($0))) } + ids.map { EngineMessage(.run(.id($0))) },
            continueCommand: global.suggested("fk run"))
        return try await transfer.run()
    }

    /// What is asked before files or bytes are deleted; nil if none are. Tasks that are named are forgotten without a question.
    private func question() throws -> String? {
        switch verb {
        case .trash:
            let count = try targets.count(in: global)
            return count > 0 ? question(count) : nil
        case .forget:
            if case .tasks = targets { return nil }
            guard WorkPath(global.workPath).exists else { return nil }
            var count = 0
            var bytes: Int64 = 0
            for record in try targets.records(global.openReader())
            where DownloadInfo(record).losesBytesWhenForgotten {
                count += 1
                bytes += record.received
            }
            guard count > 0 else { return nil }
            return "Delete the \(Formatting.bytes(bytes)) of \(Formatting.count(count, "unfinished file"))?"
        default: return nil
        }
    }

    private func question(_ count: Int) -> String {
        let tasks = count == 1 ? "1 task" : "all \(count) tasks"
        return switch targets {
        case .all: "Forget \(tasks) and delete every file written?"
        case .barrel(let name): "Forget \(tasks) of barrel \(name) and delete every file written?"
        case .state(let state):
            "Forget \(count == 1 ? "the 1 \(state.rawValue) task" : "all \(count) \(state.rawValue) tasks") and delete every file written?"
        case .tasks: "Forget \(count == 1 ? "this task" : "\(count) tasks") and delete the files?"
        }
    }
}

/// The tasks that a verb names on the command line.
enum VerbTargets: Sendable {
    case all
    case tasks([TaskReference])
    case barrel(String)
    case state(ShownState)

    static let operand = OperandSpec("url|id", "the tasks: URLs, or beginnings of their ids", 0, nil, hint: .tasks)

    static let specs: [OptionSpec] = [
        .flag("all", nil, "every task of the work path"),
        .value("barrel", "b", "NAME", hint: .barrels, "the members of this barrel"),
        .value(
            "state", nil, "STATE", hint: .choices(ShownState.words),
            "every task in this state, such as failed"),
    ]

    /// Reads the operands and options.
    ///
    /// - Throws: `UsageError` unless exactly one kind of target is given.
    init(_ arguments: ParsedArguments) throws {
        let barrel = try arguments["barrel"].map { try BarrelArgument.check($0, arguments) }
        let state = try arguments.state()
        let given = [
            arguments.operands.isEmpty ? nil : "tasks", arguments.has("all") ? "--all" : nil,
            barrel == nil ? nil : "-b", state == nil ? nil : "--state",
        ].compactMap(\.self)
        guard let kind = given.first else {
            throw arguments.error("<url|id> is missing: name tasks, or give -b NAME, --state STATE or --all.")
        }
        guard given.count == 1 else {
            throw arguments.error("Give either \(kind) or \(given[1]), not both.")
        }
        if let barrel {
            self = .barrel(barrel)
        } else if let state {
            self = .state(state)
        } else if arguments.has("all") {
            self = .all
        } else {
            self = .tasks(try arguments.operands.map { try TaskReference.parse($0, arguments) })
        }
    }

    fileprivate func selectors(in global: GlobalOptions) throws -> [TaskSelector] {
        switch self {
        case .all: [.all]
        case .barrel(let name): [.barrel(name)]
        case .state(let state): state.states.map { .state($0) }
        case .tasks(let references): try references.map { try $0.selector(in: global) }
        }
    }

    /// The records of the tasks.
    ///
    /// - Throws: `.notFound` if a name matches nothing.
    fileprivate func records(_ reader: StoreReader) throws -> [TaskRecord] {
        switch self {
        case .all: try reader.records()
        case .barrel(let name): reader.records(try reader.barrelIDs(name).ids)
        case .state(let state): try reader.records { state.states.contains($0.state) }
        case .tasks(let references): try references.flatMap { try $0.records(reader) }
        }
    }

    /// The number of tasks; if there are none, no confirmation is necessary.
    ///
    /// - Throws: `.notFound` if a name matches nothing.
    fileprivate func count(in global: GlobalOptions) throws -> Int {
        switch self {
        case .all: return try WorkPath(global.workPath).allTaskIDs().count
        case .barrel(let name): return try global.openReader().barrelIDs(name).ids.count
        case .state(let state):
            guard WorkPath(global.workPath).exists else { return 0 }
            return try global.openReader().records { state.states.contains($0.state) }.count
        case .tasks(let references):
            let reader = try global.openReader()
            return Set(try references.flatMap { try $0.records(reader).map(\.id) }).count
        }
    }
}

extension TaskReference {
    /// The selector for the engine.
    ///
    /// - Throws: `.notFound` for an id without a task.
    func selector(in global: GlobalOptions) throws -> TaskSelector {
        switch self {
        case .url(let text): .url(try URLNormalizer.normalize(text))
        case .idPrefix(let prefix): .id(try global.openReader().record(idPrefix: prefix).id)
        }
    }

    /// The records of the tasks, at least one.
    ///
    /// - Throws: `.notFound`.
    func records(_ reader: StoreReader) throws -> [TaskRecord] {
        switch self {
        case .idPrefix(let prefix): return [try reader.record(idPrefix: prefix)]
        case .url(let text):
            let url = try URLNormalizer.normalize(text)
            let records = try reader.records(url: url)
            if records.isEmpty {
                throw DownloadError(.notFound, "There is no task of that URL.", url: URLMasking.mask(url))
            }
            return records
        }
    }
}

/// Asks for confirmation before something is deleted.
struct Confirmation {
    private let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    /// True if standard input is a terminal.
    static var isPossible: Bool { isatty(0) == 1 }

    /// Asks and returns the answer.
    ///
    /// - Throws: `CommandFailure` if standard input is not a terminal.
    func ask(_ question: String) throws -> Bool {
        guard Self.isPossible else {
            throw CommandFailure(
                "\(question) Refusing to delete without confirmation; pass --yes.", status: ExitStatus.usage)
        }
        context.errors.write("\(Escaping.visible(question)) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
