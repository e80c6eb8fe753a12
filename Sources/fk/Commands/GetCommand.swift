import FKCore
import FKManifests
import FKMiddleware
import Foundation

struct GetCommand: Command {
    let options: GetOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        if options.isDryRun { return try await compare() }
        if !options.run.detach, let status = try await options.run.waitForStart(context) { return status }
        var (tasks, refused, folder) = try await resolve()
        // Entries of a list that were left out make the command fail in the end.
        let least = refused > 0 ? ExitStatus.taskFailed : ExitStatus.done
        if let place = try options.shard?.enter(options.barrel, context) {
            let total = tasks.count
            let places = global.place.places
            tasks = try tasks.filtered(folder: ScratchFolder.base(context)) { place.shard.contains(places.id(of: $0)) }
            place.say(tasks.count, of: total)
            guard !tasks.isEmpty else {
                context.endEmptyRun()
                return least
            }
            var transfer = transferRun(tasks, place)
            transfer.refused = refused
            return max(least, try await transfer.run())
        }
        if options.run.detach {
            // A background run that starts later runs its tasks itself.
            return max(
                least,
                try await detach(TaskAddition(tasks, barrel: options.barrel, run: options.run.start == nil)))
        }
        var transfer = transferRun(tasks)
        transfer.refused = refused
        let status = max(least, try await transfer.run())
        if let folder, let barrel = options.barrel, let known = try BarrelOptions.known(barrel, global),
            try !OCILayout.finish(known, in: folder), status == ExitStatus.done
        {
            context.warn("\(folder)/index.json does not name the image: not all of its blobs were chosen.")
        }
        nameListings()
        return status
    }

    /// Says which of the finished files are the listings of folders: the person may have meant the files in them.
    private func nameListings() {
        let urls = options.folders.compactMap { try? $0.normalizedURL() }
        guard !urls.isEmpty, let reader = try? global.openReader() else { return }
        for url in urls {
            let records = (try? reader.records(url: url)) ?? []
            guard let record = records.first(where: { $0.state == .complete }), let path = record.path,
                let length = record.expected, length <= WebFolder.longestListing,
                let bytes = FileManager.default.contents(atPath: path),
                WebFolder.isListing(Array(bytes), of: url.hasSuffix("/") ? url : url + "/")
            else { continue }
            let shown = url.masked.shellWord
            context.warn(
                "\(url.masked) is a folder, and \(Paths.split(path).name) is the list that its server makes of it. Delete it and "
                    + "fetch the files with: "
                    + "\(global.suggested("fk trash -y \(shown)")) && \(global.suggested("fk get -r \(shown)"))")
        }
    }

    /// Asks servers for lists, digests and signatures, and gives the barrel what its lists say.
    ///
    /// - Returns: the tasks, the number of entries that were left out, and the folder of a source of `-r`.
    private func resolve() async throws -> (tasks: TaskSpool, refused: Int, folder: String?) {
        if options.input.asksServers || !(options.sources + options.objects).isEmpty { ReadingTrap.set(context) }
        let transport = try PacedTransport(options.run.configure(global), options.run.own, onWait: context.tellWait)
        defer { transport.shutdown() }
        var list: (source: SourceImport, tasks: ListedTasks)?
        var (tasks, refused, signer) = try await options.input.resolve(context, over: transport) { list = ($0, $1) }
        for object in options.objects {
            do {
                let listed = try await object.listed(options.input.objectSettings, context, over: transport)
                try listed.spool.changeOnly { try options.input.complete(&$0) }
                listed.spool.prepend(try tasks.all())
                tasks = listed.spool
                refused += listed.refused
            } catch let error as DownloadError
                where (options.objects.count > 1 || !tasks.isEmpty) && error.code != .cancelled
            {
                // One that fails leaves the others alone.
                context.errors.writeLine("fk: \(error.fullText.visible)")
                refused += 1
            }
        }
        if tasks.isEmpty, refused > 0, options.sources.isEmpty {
            throw CommandFailure("Nothing can be fetched.", status: ExitStatus.taskFailed)
        }
        guard let barrel = options.barrel else { return (tasks, refused, nil) }
        let known = try BarrelOptions.known(barrel, global) ?? BarrelOptions()
        if !options.input.hasList { try known.check(tasks.all(), of: barrel) }
        guard options.input.hasList || !options.sources.isEmpty else { return (tasks, refused, nil) }
        var own = known
        var folder: String?
        var memory: ListedPlace.Memory?
        var moved: [(id: TaskID, url: String)] = []
        if options.input.hasList { try own.adopt(signer: signer, of: barrel) }
        if let list, options.shard == nil, options.sources.isEmpty {
            try own.follow(list.tasks, of: list.source, options.input.shared, barrel)
        }
        for source in options.sources {
            try own.check(source, of: barrel)
            var settings = options.input.settings
            if !settings.isFolderGiven {
                let usual = try Paths.absolute(
                    options.isRecursive ? source.folderName : barrel, from: options.input.base)
                settings.folder = try own.directory ?? Paths.notFile(usual)
                if options.isRecursive, !settings.folder.isExactly(usual) {
                    context.warn("The barrel \(barrel) has its files in \(settings.folder). -d names another folder.")
                }
            } else {
                own.warnOfFolder(settings.folder, of: barrel, context)
            }
            if own.directory == nil { own.directory = settings.folder }
            if options.isRecursive { folder = settings.folder }
            if options.isRecursive, own.origin != nil {
                settings.members = try KnownMembers(global.openReader(), barrel: barrel, findsPlaces: true)
            }
            let listed = try await source.listed(
                settings, of: options.isRecursive ? barrel : nil, context, over: transport
            ) { [own] facts in
                var pinned = own
                if let facts { try pinned.adopt(facts, of: barrel, canFollow: source.isFollowed) }
            }
            if listed.memory != nil { memory = listed.memory }
            moved += listed.moved
            // No record is signed.
            try own.adopt(signer: nil, of: barrel)
            if let facts = listed.manifest?.facts { try own.adopt(facts, of: barrel, canFollow: source.isFollowed) }
            own.adopt(source, options.input.shared)
            listed.spool.prepend(try tasks.all())
            tasks = listed.spool
            refused += listed.refused
        }
        let client = EngineClient.reportingSilence(options.run.configure(global), context)
        if own != known { _ = try await client.perform(.createBarrel(name: barrel, options: own)) }
        memory?.store()
        for (id, url) in moved { _ = try await client.perform(.relink(id, to: url)) }
        return (tasks, refused, folder)
    }

    /// Prints what the source has beside what is known of it, and changes nothing.
    private func compare() async throws -> Int32 {
        ReadingTrap.set(context)
        let transport = try PacedTransport(options.run.configure(global), options.run.own, onWait: context.tellWait)
        defer { transport.shutdown() }
        let barrel = options.barrel ?? ""
        let known = try BarrelOptions.known(barrel, global)
        try known?.check(options.sources[0], of: barrel)
        var settings = options.input.settings
        settings.notesSizes = true
        settings.writesLayout = false
        if !settings.isFolderGiven {
            settings.folder =
                try known?.directory
                ?? Paths.absolute(options.sources[0].folderName, from: options.input.base)
        }
        let listed = try await options.sources[0].listed(
            settings, of: known == nil ? nil : barrel, context, over: transport)
        let comparison = try SourceComparison(
            listed, options.sources[0], barrel: known == nil ? nil : barrel, folder: settings.folder, context,
            show: SourceComparison.printEach)
        comparison.printSums()
        return comparison.isSure && listed.refused == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }

    private func transferRun(_ tasks: TaskSpool, _ place: ShardPlace? = nil) -> TransferRun {
        TransferRun(
            context: place?.context ?? context, options: place?.limits(options.run) ?? options.run,
            goal: .added, requests: [], addition: TaskAddition(tasks, barrel: options.barrel, run: true),
            barrels: options.barrel.map { [$0] } ?? [],
            continueCommand: place == nil
                ? "the same command, or \(global.suggested("fk run"))" : "the same command", shard: place?.shard)
    }

    private func detach(_ addition: TaskAddition) async throws -> Int32 {
        _ = try options.run.openLog(context)
        EngineEnvironment(context)?.warnings(about: addition.tasks.sample).forEach(context.warn)
        var answers = AddedAnswers(context, keepsIDs: true)
        try await answers.add(addition, by: options.run.orders, options.run.configure(global))
        guard answers.failure == nil else { return answers.end(then: "") }
        guard !answers.ids.isEmpty else { return answers.end(then: "nothing runs in the background") }
        do {
            try Detach.start(answers.ids, options.run, context)
        } catch {
            // The tasks exist, so their list is complete.
            _ = answers.end(then: "start with: \(global.suggested("fk run"))")
            throw error
        }
        return answers.end(then: "in the background; watch with: \(global.suggested("fk watch"))")
    }
}

/// `fk run` and `fk barrel run`
struct RunCommand: Command {
    var options: RunCommandOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        guard let handed = try Detach.handed(context) else { return try await run(nil) }
        var command = self
        command.options.run.orders = handed.orders
        return try await command.run(handed.tasks)
    }

    /// - Parameter detached: the tasks of a background run; nil for a run that the user typed.
    private func run(_ detached: [TaskID]?) async throws -> Int32 {
        // A wrong name is refused before the wait.
        if !options.barrels.isEmpty {
            let reader = try global.openReader()
            for name in options.barrels where !reader.workPath.hasBarrel(name) { _ = try reader.barrelIDs(name) }
        }
        if !options.run.detach, let status = try await options.run.waitForStart(context) { return status }
        let status = try await runTargets(detached)
        if !options.run.detach, let reader = try? global.openReader() {
            for name in options.barrels.isEmpty ? try reader.barrelNames() : options.barrels {
                guard let barrel = try? reader.forEachMember(of: name, { _, _ in }) else { continue }
                try OCILayout.finish(barrel.options)
            }
        }
        return status
    }

    private func runTargets(_ detached: [TaskID]?) async throws -> Int32 {
        if let shard = options.shard { return try await runShard(shard, of: options.barrels[0]) }
        for name in options.barrels {
            guard let plan = try ShardPlan.read(name, in: WorkPath(global.workPath)) else { continue }
            throw UsageError(
                "The barrel \(name.visible) is divided into \(plan.count) shards: run each with --shard I/\(plan.count) "
                    + "or --shard auto.", command: ["barrel", "run"])
        }
        if let ids = detached {
            return try await transfer(
                .tasks(ids), requests: ids.map { EngineMessage(.run(.id($0))) },
                continueCommand: global.suggested("fk run"))
        }
        guard !options.barrels.isEmpty else {
            if options.run.detach { return try detachAll() }
            if let ids = try undivided() {
                guard !ids.isEmpty else {
                    context.endEmptyRun()
                    return ExitStatus.done
                }
                return try await transfer(
                    .tasks(ids), requests: ids.map { EngineMessage(.run(.id($0))) },
                    continueCommand: global.suggested("fk run"), needsAll: false)
            }
            return try await transfer(
                .everything, requests: [], continueCommand: global.suggested("fk run"), needsAll: false)
        }
        if options.run.detach {
            let reader = try global.openReader()
            let targets = self.targets(try options.barrels.map { try reader.barrelIDs($0).ids }, reader)
            _ = try options.run.openLog(context)
            EngineEnvironment(context)?.warnings(about: reader.records(targets.prefix(256)).map(\.task))
                .forEach(context.warn)
            try Detach.start(targets, options.run, context)
            return handOver("Running in the background; watch with: \(global.suggested("fk watch"))")
        }
        return try await transfer(
            .barrels(options.barrels), requests: options.barrels.map { EngineMessage(.run(.barrel($0))) },
            barrels: options.barrels,
            continueCommand: global.suggested("fk barrel run", options.barrels))
    }

    /// Runs the members of one shard. The barrel of the list's work path is only read: its lock is not this machine's.
    private func runShard(_ shard: ShardOptions, of name: String) async throws -> Int32 {
        let reader = try global.openReader()
        let (barrel, members) = try reader.barrelIDs(name)
        let place = try shard.enter(name, context)
        let ids = members.filter(place.shard.contains)
        place.say(ids.count, of: members.count)
        guard !ids.isEmpty else {
            context.endEmptyRun()
            return ExitStatus.done
        }
        // What the list's own work path has finished or suspended stays as it is there.
        let tasks = TaskSpool(folder: try ScratchFolder.base(context), shared: barrel.options.options ?? TaskOptions())
        var targets: [TaskID] = []
        for start in stride(from: 0, to: ids.count, by: 8_192) {
            for record in reader.records(ids[start..<min(start + 8_192, ids.count)])
            where record.state != .complete && record.state != .suspend {
                try tasks.append(record.task)
                targets.append(record.id)
            }
        }
        var transfer = TransferRun(
            context: place.context, options: place.limits(options.run), goal: .tasks(targets),
            requests: [
                EngineMessage(.createBarrel(name: name, options: barrel.options)), EngineMessage(.run(.barrel(name))),
            ],
            addition: TaskAddition(tasks, barrel: name, run: true), barrels: [name],
            continueCommand: "the same command", shard: place.shard)
        return try await transfer.run()
    }

    /// The tasks to run beside the members of divided barrels, which belong to their shards; nil if no barrel is divided.
    private func undivided() throws -> [TaskID]? {
        let workPath = global.place
        guard workPath.exists else { return nil }
        let reader = StoreReader(workPath)
        guard let divided = try DividedMembers(reader) else { return nil }
        divided.notes.forEach(context.warn)
        return try reader.records { !$0.state.isSettled && !divided.ids.contains($0.id) }.map(\.id)
    }

    /// The members that a background run waits for: suspended ones stay suspended.
    private func targets(_ members: [[TaskID]], _ reader: StoreReader) -> [TaskID] {
        var ids = members.count == 1 ? members[0] : Array(Set(members.joined()))
        var suspended: Set<TaskID> = []
        for record in reader.suspended(ids) { suspended.insert(record.id) }
        if !suspended.isEmpty { ids.removeAll { suspended.contains($0) } }
        return ids
    }

    private func transfer(
        _ goal: RunSession.Goal, requests: [EngineMessage], barrels: [String] = [],
        continueCommand: String, needsAll: Bool = true
    ) async throws -> Int32 {
        var transfer = TransferRun(
            context: context, options: options.run, goal: goal, requests: requests, barrels: barrels,
            continueCommand: continueCommand, needsAll: needsAll)
        return try await transfer.run()
    }

    private func detachAll() throws -> Int32 {
        _ = try options.run.openLog(context)
        let (count, divided) = try Detach.startAll(options.run, context)
        divided?.notes.forEach(context.warn)
        return handOver(
            count == 0
                ? "Nothing is waiting to be fetched."
                : "\(count.plural("task")) in the background; watch with: \(global.suggested("fk watch"))")
    }

    /// Says what a background process does. Returns the exit status.
    private func handOver(_ note: String) -> Int32 {
        if global.json {
            JSONOutput(context.output).line(.members(["done": true, "note": .string(note)]))
        } else if !global.quiet {
            context.errors.writeLine(note)
        }
        return ExitStatus.done
    }
}
