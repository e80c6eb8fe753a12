import FKCore
import FKMiddleware

/// `fk get`
struct GetCommand: Command {
    let options: GetOptions
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        if !options.run.detach, let status = try await options.run.waitForStart(global, context) { return status }
        var (tasks, refused) = try await options.input.resolve(context)
        // Entries of a list that were left out make the command fail in the end.
        let least = refused > 0 ? ExitStatus.taskFailed : ExitStatus.done
        if let place = try options.shard?.enter(options.barrel, global, context) {
            let total = tasks.count
            tasks.removeAll { !place.shard.contains($0.id) }
            place.say(tasks.count, of: total, context)
            guard !tasks.isEmpty else { return least }
            var transfer = transferRun(consume tasks, place)
            return max(least, try await transfer.run())
        }
        if options.run.detach {
            // A background run that starts later runs its tasks itself.
            let add = EngineRequest.add(tasks: tasks, barrel: options.barrel, run: options.run.start == nil)
            return max(least, try await detach(add))
        }
        var transfer = transferRun(consume tasks)
        return max(least, try await transfer.run())
    }

    private func transferRun(_ tasks: consuming [TaskDescription], _ place: ShardPlace? = nil) -> TransferRun {
        let barrels = options.barrel.map { [(name: $0, members: tasks.map(\.id))] } ?? []
        let add = EngineRequest.add(tasks: tasks, barrel: options.barrel, run: true)
        return TransferRun(
            global: place?.global ?? global, context: context, options: place?.limits(options.run) ?? options.run,
            goal: .added, requests: [add], barrels: barrels,
            continueCommand: place == nil
                ? "the same command, or \(global.suggested("fk run"))" : "the same command", shard: place?.shard)
    }

    private func detach(_ add: EngineRequest) async throws -> Int32 {
        _ = try options.run.openLog(context)
        let client = EngineClient.reportingSilence(options.run.configure(global), context)
        let (reply, problems) = try await client.perform(options.run.own.map { .limited($0, add) } ?? add)
        let answers = Answers(global, context)
        answers.warn(problems)
        guard case .added(let list) = reply else { return answers.status(of: reply) }
        try Detach.start(list.filter { $0.error == nil }.map(\.id), options.run, global, context)
        return answers.added(list, then: "in the background; watch with: \(global.suggested("fk watch"))")
    }
}

/// `fk run` and `fk barrel run`
struct RunCommand: Command {
    let options: RunCommandOptions
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let detached = Detach.tasks(context)
        // A wrong name is refused before the wait.
        if !options.barrels.isEmpty {
            let reader = try global.openReader()
            for name in options.barrels { _ = try reader.barrel(name) }
        }
        if !options.run.detach, let status = try await options.run.waitForStart(global, context) { return status }
        if let shard = options.shard { return try await runShard(shard, of: options.barrels[0]) }
        for name in options.barrels {
            guard let plan = try ShardPlan.read(name, in: WorkPath(global.workPath)) else { continue }
            throw UsageError(
                "The barrel \(Escaping.visible(name)) is divided into \(plan.count) shards: run each with --shard I/\(plan.count) "
                    + "or --shard auto.", command: ["barrel", "run"])
        }
        if let ids = detached {
            return try await transfer(
                .tasks(ids), requests: ids.map { .run(.id($0)) }, continueCommand: global.suggested("fk run"))
        }
        guard !options.barrels.isEmpty else {
            if options.run.detach { return try detachAll() }
            return try await transfer(
                .everything, requests: [], continueCommand: global.suggested("fk run"), needsAll: false)
        }
        let reader = try global.openReader()
        let barrels = try options.barrels.map { (name: $0, members: try reader.barrel($0).members.map(\.id)) }
        // Suspended members stay suspended, and the run does not wait for them.
        let members = Set(barrels.flatMap(\.members))
        let suspended = Set(reader.records(members).filter { $0.state == .suspend }.map(\.id))
        let targets = Array(members.subtracting(suspended))
        if options.run.detach {
            _ = try options.run.openLog(context)
            try Detach.start(targets, options.run, global, context)
            if !global.quiet, !global.json {
                context.errors.writeLine("Running in the background; watch with: \(global.suggested("fk watch"))")
            }
            return ExitStatus.done
        }
        let names = options.barrels.map(Paths.shellWord).joined(separator: " ")
        return try await transfer(
            .tasks(targets), requests: options.barrels.map { .run(.barrel($0)) }, barrels: barrels,
            continueCommand: global.suggested("fk barrel run \(names)"))
    }

    /// Runs the members of one shard. The barrel of the list's work path is only read: its lock is not this machine's.
    private func runShard(_ shard: ShardOptions, of name: String) async throws -> Int32 {
        let reader = try global.openReader()
        let barrel = try reader.barrel(name)
        let place = try shard.enter(name, global, context)
        let ids = barrel.members.map(\.id).filter(place.shard.contains)
        place.say(ids.count, of: barrel.members.count, context)
        guard !ids.isEmpty else { return ExitStatus.done }
        // What the list's own work path has finished or suspended stays as it is there.
        let tasks = reader.records(ids).filter { $0.state != .complete && $0.state != .suspend }.map(\.task)
        let requests: [EngineRequest] = [
            .createBarrel(name: name, options: barrel.options), .add(tasks: tasks, barrel: name, run: true),
            .run(.barrel(name)),
        ]
        var transfer = TransferRun(
            global: place.global, context: context, options: place.limits(options.run), goal: .tasks(tasks.map(\.id)),
            requests: requests, barrels: [(name: name, members: tasks.map(\.id))], continueCommand: "the same command",
            shard: place.shard)
        return try await transfer.run()
    }

    private func transfer(
        _ goal: RunSession.Goal, requests: [EngineRequest], barrels: [(name: String, members: [TaskID])] = [],
        continueCommand: String, needsAll: Bool = true
    ) async throws -> Int32 {
        var transfer = TransferRun(
            global: global, context: context, options: options.run, goal: goal, requests: requests, barrels: barrels,
            continueCommand: continueCommand, needsAll: needsAll)
        return try await transfer.run()
    }

    private func detachAll() throws -> Int32 {
        _ = try options.run.openLog(context)
        let waiting = StoreReader(WorkPath(global.workPath)).records { !$0.state.isSettled }
        try Detach.start(waiting.map(\.id), options.run, global, context)
        if !global.quiet, !global.json {
            context.errors.writeLine(
                "\(Formatting.count(waiting.count, "task")) in the background; watch with: \(global.suggested("fk watch"))"
            )
        }
        return ExitStatus.done
    }
}
