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
    let context: CommandContext

    func run() async throws -> Int32 {
        if case .barrel(let name) = targets, verb == .trash || verb == .forget {
            try global.refuseTaken(verb, ofBarrel: name)
        }
        let selectors = try targets.selectors(in: global)
        let shared = try sharedMembers()
        if !isConfirmed, let question = try question(besides: shared.ids), try !Confirmation(context).ask(question) {
            throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
        }
        if let options = runs { return try await run(options) }
        let client = EngineClient.reportingSilence(global.configure, context)
        var forAll = true
        if case .tasks = targets { forAll = false }
        let answers = Locked(VerbAnswers(context, forAll: forAll))
        let ids = selectors.compactMap { if case .id(let id) = $0.kind { id } else { nil } }
        if ids.count > 1, ids.count == selectors.count {
            // One request, because another process takes its time for each.
            let (reply, problems) = try await client.perform(.chosen(ids, verb))
            answers.withLock { $0.absorb(reply, problems) }
            return end(answers.withLock(\.self))
        }
        if case .barrel(let name) = targets, !WorkPath(global.workPath).hasBarrel(name) {
            try global.refuseDivided(name) { shard in
                "Its tasks are in the work paths of the shards, such as --work-path \(shard)."
            }
        }
        if selectors.isEmpty, case .run(let name, _) = targets {
            if global.json { JSONOutput(context.output).document(.array([])) }
            context.errors.writeLine(
                "Nothing to do: no task of \(name.words) \(verb == .resume ? "is suspended" : "has failed").")
            return ExitStatus.done
        }
        if case .barrel(let name) = targets, !shared.ids.isEmpty {
            try await leave(name, shared, client)
            if shared.isAll {
                if global.json { JSONOutput(context.output).document(.array([])) }
                return ExitStatus.done
            }
        }
        for selector in selectors {
            try await client.apply(verb, to: selector, forAll: verb == .resume && selector == .all) { reply, problems in
                answers.withLock { $0.absorb(reply, problems) }
            }
            if answers.withLock({ $0.failure != nil }) { break }
        }
        return end(answers.withLock(\.self))
    }

    private func end(_ answers: VerbAnswers) -> Int32 {
        let state: String? = if case .state(let state) = targets { state.rawValue } else { nil }
        let status = answers.end(none: state.map { "No task of this work path is \($0)." } ?? "There are no tasks.")
        let isTaken = context.warnOfShards(answers.first.isEmpty ? inShards : answers.first)
        return isTaken && (verb == .trash || verb == .forget) ? max(status, ExitStatus.taskFailed) : status
    }

    /// Some tasks that the verb would act on if the work path had its shards' tasks; empty where names or a barrel choose them.
    private var inShards: [TaskID] {
        let states: [DownloadState]? =
            switch targets {
            case .state(let state): state.states
            case .transient: [.error]
            default: nil
            }
        guard let states, let query = try? global.openQuery() else { return [] }
        return (try? query.records { states.contains($0.state) })?.prefix(50).map(\.id) ?? []
    }

    /// The members of a barrel that is forgotten or trashed that another barrel has too.
    private struct Shared {
        var ids: Set<TaskID> = []
        /// The first of them, as they are named.
        var shown: [String] = []
        /// True if there are no other members.
        var isAll = false
    }

    private func sharedMembers() throws -> Shared {
        var shared = Shared()
        guard case .barrel(let name) = targets, verb == .trash || verb == .forget, global.place.hasBarrel(name)
        else { return shared }
        let reader = try global.openReader()
        let paths = BarrelPaths(reader, [name])
        let ids = try reader.barrelIDs(name).ids
        reader.readAll(ids, problem: { _ in }) { _, record in
            guard let other = record.barrels.first(where: { !$0.isExactly(name) }) else { return }
            shared.ids.insert(record.id)
            guard shared.shown.count < ListInput.maxShown else { return }
            shared.shown.append("\(paths.name(of: record)) stays: the barrel \(other) has it too.")
        }
        shared.isAll = shared.ids.count == ids.count
        return shared
    }

    /// Lets members leave the barrel, and names them.
    private func leave(_ name: String, _ shared: Shared, _ client: EngineClient) async throws {
        let (reply, problems) = try await client.perform(
            .removeFromBarrel(name: name, urls: shared.ids.map(\.hex).sorted()))
        Answers(context).warn(problems)
        if case .failed(let error) = reply { throw error }
        shared.shown.forEach(context.warn)
        let rest = shared.ids.count - shared.shown.count
        if rest > 0 { context.warn("\(rest) more stay, because other barrels have them too.") }
    }

    /// Applies the verb, and runs the tasks that it can queue to their end.
    private func run(_ options: RunOptions) async throws -> Int32 {
        let reader = try global.openReader()
        var known: Set<TaskID> = []
        var ids = try targets.records(reader)
            .filter { !$0.state.isSettled || $0.state == .error || $0.state == .cancel || $0.hasLostFile }.map(\.id)
            .filter { known.insert($0).inserted }
        var isLeftToShards = false
        if let divided = try DividedMembers(reader) {
            let others = ids.filter(divided.ids.contains)
            isLeftToShards = !others.isEmpty
            if isLeftToShards {
                ids.removeAll(where: divided.ids.contains)
                if !context.warnOfShards(others) { divided.notes.forEach(context.warn) }
            }
        }
        guard !ids.isEmpty else {
            let reason =
                switch targets {
                case _ where isLeftToShards: "the shards have these tasks"
                case .transient: "no failed task may pass by itself"
                case .run(let name, _): "no failed task of \(name.words) may pass by itself"
                default: "no task of these has failed, was cancelled or has lost its file"
                }
            context.endEmptyRun()
            context.errors.writeLine("Nothing to retry: \(reason).")
            if !isLeftToShards { context.warnOfShards(inShards) }
            return ExitStatus.done
        }
        var transfer = TransferRun(
            context: context, options: options, goal: .tasks(ids),
            requests: ids.map { EngineMessage(.verb(verb, .id($0))) } + ids.map { EngineMessage(.run(.id($0))) },
            continueCommand: global.suggested("fk run"))
        return try await transfer.run()
    }

    /// The question before files or bytes are deleted; nil if none are. Named tasks are forgotten without a question.
    ///
    /// - Parameter shared: the tasks that stay.
    private func question(besides shared: Set<TaskID>) throws -> String? {
        switch verb {
        case .trash:
            let count = try targets.count(in: global) - shared.count
            return count > 0 ? question(count) : nil
        case .forget:
            if case .tasks(let references, let all) = targets, !all, !references.contains(where: \.isGlob) {
                return nil
            }
            guard WorkPath(global.workPath).exists else { return nil }
            var count = 0
            var bytes: Int64 = 0
            for record in try targets.records(global.openReader())
            where DownloadInfo(record).losesBytesWhenForgotten && !shared.contains(record.id) {
                count += 1
                bytes += record.received
            }
            guard count > 0 else { return nil }
            return "Delete the \(Formatting.bytes(bytes)) of \(count.plural("unfinished file"))?"
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
        case .tasks, .transient, .run: "Forget \(count == 1 ? "this task" : "\(count) tasks") and delete the files?"
        }
    }
}

/// The tasks that a verb names on the command line.
enum VerbTargets: Sendable {
    case all
    /// - Parameter all: true includes all files of a name.
    case tasks([TaskReference], all: Bool)
    case barrel(String)
    case state(ShownState)
    /// The failed tasks that another attempt may help.
    case transient
    /// The tasks of a run to which the verb applies.
    case run(RunName, Verb)

    static let specs: [OptionSpec] = [
        .flag("all", nil, "every task; with a file's name, every task of that name"),
        .value("barrel", "b", "NAME", hint: .barrels, "the members of this barrel"),
        .value(
            "state", nil, "STATE", hint: .choices(ShownState.words),
            "every task in this state, such as failed"),
    ]

    /// - Parameter verb: `retry` takes `transient` where it has `--run` alone. The default is nil.
    /// - Throws: `UsageError` unless exactly one kind of target is given.
    init(_ arguments: ParsedArguments, of verb: Verb? = nil) throws {
        let run = try arguments.run(isNeeded: verb != .retry)
        let barrel = try arguments.barrel()
        let state = try arguments.state()
        let given = [
            arguments.operands.isEmpty ? nil : "tasks",
            arguments.has("all") && !arguments.operands.contains(where: TaskReference.isName) ? "--all" : nil,
            barrel == nil ? nil : "-b", state == nil ? nil : "--state", run == nil ? nil : "--run RUN",
        ].compactMap(\.self)
        guard let kind = given.first else {
            if verb == .retry, arguments.has("run") {
                self = .transient
                return
            }
            throw arguments.error("<task> is missing: name tasks, or give -b NAME, --state STATE or --all.")
        }
        guard given.count == 1 else {
            throw arguments.error("Give either \(kind) or \(given[1]), not both.")
        }
        if let run, let verb {
            self = .run(run, verb)
        } else if let barrel {
            self = .barrel(barrel)
        } else if let state {
            self = .state(state)
        } else if arguments.operands.isEmpty {
            self = .all
        } else {
            self = .tasks(arguments.operands.map(TaskReference.init), all: arguments.has("all"))
        }
    }

    fileprivate func selectors(in global: GlobalOptions) throws -> [TaskSelector] {
        switch self {
        case .all: [.all]
        case .barrel(let name): [.barrel(name)]
        case .state(let state): state.states.map { .state($0) }
        case .transient: []
        case .run: try records(global.openReader()).map { .id($0.id) }
        case .tasks(let references, let all): try references.flatMap { try $0.selectors(in: global, all: all) }
        }
    }

    /// - Throws: `.notFound` if a name matches nothing.
    fileprivate func records(_ reader: StoreReader) throws -> [TaskRecord] {
        switch self {
        case .all: try reader.records()
        case .barrel(let name): reader.records(try reader.barrelIDs(name).ids)
        case .state(let state): try reader.records { state.states.contains($0.state) }
        case .transient: try reader.records { $0.state == .error && $0.error?.mayPass == true }
        case .run(let name, let verb):
            reader.records(try RunBook(reader.workPath).ids(of: name)).filter { record in
                switch verb {
                case .resume: record.state == .suspend
                case .retry: record.state == .error && record.error?.mayPass == true
                default: record.state == .error
                }
            }
        case .tasks(let references, _): try references.flatMap { try $0.records(reader) }
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
        case .transient, .run: return try records(global.openReader()).count
        case .tasks(let references, _):
            let reader = try global.openReader()
            return Set(try references.flatMap { try $0.records(reader).map(\.id) }).count
        }
    }
}
