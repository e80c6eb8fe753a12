import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk barrel missing|refresh`: incomplete members, and files that have changed on their servers.
struct BarrelCheckCommand: Command {
    enum Check: Sendable {
        case missing
        case refresh(RunOptions)
    }

    let name: String
    let check: Check
    let context: CommandContext

    static let missing = CommandSpec(
        path: ["barrel", "missing"], summary: "print the members that are not complete",
        discussion: [
            "One URL a line. A finished member whose file is gone or has another length is not complete. Exit status 1: at least one member is not complete.",
            "If the barrel is divided among machines (--shard), each line has the member's shard, and the last line the array to "
                + "submit again, in the scheduler's numbers.",
        ],
        operands: [OperandSpec("name", "the barrel", hint: .barrels)],
        examples: [.init("fk barrel missing photos", "what 'fk barrel run photos' has yet to fetch")],
        make: { arguments, context in
            try BarrelCheckCommand(name: arguments.namedBarrel(), check: .missing, context: context)
        })

    static let refresh = CommandSpec(
        path: ["barrel", "refresh"], summary: "ask servers whether finished members have changed",
        discussion: [
            "Asks with conditional requests, and prints a line for each finished member: unchanged, changed, gone or "
                + "missing, and its name below the barrel's folder. Changed files are fetched again; the old file stays until the new one is whole. "
                + "Files that are gone stay. A changed file that a lock file or --checksum binds to a digest or size is not fetched: the message has "
                + "the command that takes the new version. A file that is missing at its place is fetched again without "
                + "asking. Exit status 1: a server could not be asked, or a file could not be fetched."
        ],
        operands: [OperandSpec("name", "the barrel", hint: .barrels)],
        options: RunOption.specs.filter { $0.long != "detach" },
        examples: [.init("fk barrel refresh photos", "fetch the photos that have changed")],
        make: { arguments, context in
            try BarrelCheckCommand(
                name: arguments.namedBarrel(),
                check: .refresh(RunOptions(arguments, context)),
                context: context)
        })

    func run() async throws -> Int32 {
        switch check {
        case .missing: return try missing()
        case .refresh(let options):
            let word = name.shellWord
            try global.refuseDivided(name) {
                "Refresh each in its work path: fk barrel refresh \(word) --work-path \($0)"
            }
            return try await refresh(global.openReader().taskIDs(matching: .barrel(name)), options)
        }
    }

    // MARK: Missing

    /// The number of records that are read at once.
    private static let portion = 4_096

    private func missing() throws -> Int32 {
        let plan = try ShardPlan.read(name, in: WorkPath(global.workPath))
        var (reader, ids): (StoreReader, [TaskID])
        do {
            reader = try global.openQuery()
            ids = try reader.taskIDs(matching: .barrel(name))
        } catch let error as DownloadError where error.code == .notFound && plan != nil {
            // A divided list whose shards have not run yet.
            (reader, ids) = (StoreReader(global.place), [])
        }
        var shards: Set<Int> = []
        var array = global.json ? JSONOutput(context.output).beginArray() : nil
        var count = 0
        for start in stride(from: 0, to: ids.count, by: Self.portion) {
            var documents: [JSON] = []
            for record in reader.records(ids[start..<min(start + Self.portion, ids.count)])
            where record.state != .complete || record.hasLostFile {
                count += 1
                let shard = plan.map { Shard(of: record.id, count: $0.count) }
                if let shard { shards.insert(shard.index) }
                let url = record.task.url.masked
                if array != nil {
                    documents.append(
                        .members(
                            [
                                "id": .string(record.id.hex), "shard": JSON(shard?.description),
                                "state": .string(record.state.rawValue), "url": .string(url),
                            ], omittingNull: true))
                } else {
                    context.output.writeLine(url.visible + (shard.map { " \($0)" } ?? ""))
                }
            }
            array?.write(documents, \.bytes)
        }
        if let plan, !WorkPath(global.workPath).hasBarrel(name) { count += try addAbsent(plan, to: &shards) }
        array?.end()
        if let plan, !global.json {
            plan.numbering.arrays(of: shards.sorted()).map(\.options).forEach(context.output.writeLine)
        }
        return count == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }

    /// Adds the shards that have not run. Their files are known to the list alone. Returns how many there are.
    private func addAbsent(_ plan: ShardPlan, to shards: inout Set<Int>) throws -> Int {
        let there = Set(try WorkPath(global.workPath).shards().filter { $0.count == plan.count }.map(\.index))
        let absent = (1...plan.count).filter { !there.contains($0) }
        guard !absent.isEmpty else { return 0 }
        shards.formUnion(absent)
        context.errors.writeLine(
            "\(absent.count) of \(plan.count.plural("shard")) \(absent.count == 1 ? "has" : "have") not run yet: "
                + "their files are not known here.")
        return absent.count
    }

    // MARK: Refreshing

    private func refresh(_ ids: [TaskID], _ options: RunOptions) async throws -> Int32 {
        TransportLibrary.prepare()
        var changed: [TaskID] = []
        var restored: [Renewal] = []
        var failures = 0
        let paths = BarrelPaths(StoreReader(global.place), [name])
        try await options.refresh(ids, context) { file in
            let name = paths.name(of: file.path)
            if file.isFetched {
                changed.append(file.id)
            } else if let renewal = file.renewal {
                restored.append(renewal)
            }
            let result: String
            switch file.result {
            case .unchanged: result = "unchanged"
            case .gone: result = "gone"
            case .changed:
                result = "changed"
                if file.isBound {
                    failures += 1
                    sayBound(file, name)
                }
            case .missing: result = "missing"
            case .failed(let error):
                failures += 1
                context.errors.writeLine("fk: \("\(name): \(error.fullText)".visible)")
                return
            }
            if global.json {
                JSONOutput(context.output).line(
                    .members([
                        "name": .string(name), "result": .string(result), "url": .string(file.url.masked),
                    ]))
            } else if !(global.quiet && file.result == .unchanged) {
                context.output.writeLine("\(result) \(name)".visible)
            }
        }
        if !restored.isEmpty {
            let client = EngineClient.reportingSilence(options.configure(global), context)
            _ = try await client.perform(EngineMessage(.renew(restored)))
        }
        var status = failures == 0 ? ExitStatus.done : ExitStatus.taskFailed
        if !changed.isEmpty {
            var transfer = TransferRun(
                context: context, options: options, goal: .tasks(changed),
                requests: [EngineMessage(.renew(changed.map { Renewal($0) }))],
                continueCommand: global.suggested("fk run"))
            let end = try await transfer.run()
            if end != ExitStatus.done { status = end }
        }
        return max(status, await sayVersion(options))
    }

    /// Says that the record, of which the barrel was made, has another version now. Its URLs are those of the old one.
    private func sayVersion(_ options: RunOptions) async -> Int32 {
        guard let barrel = try? BarrelOptions.known(name, global), let origin = barrel.origin,
            let commit = barrel.commit,
            let source = try? SourceImport(of: barrel, context), source.namesVersion
        else { return ExitStatus.done }
        do throws(DownloadError) {
            let transport = try PacedTransport(options.configure(global), options.own, onWait: context.tellWait)
            defer { transport.shutdown() }
            guard let version = try await source.source.version(barrel.options ?? TaskOptions(), over: transport),
                version != commit
            else { return ExitStatus.done }
            let next = global.suggested("fk barrel import NAME \(origin.shellWord) -d DIR")
            context.errors.writeLine(
                "fk: \("\(origin.masked) has another version, \(version), and the barrel has \(commit)".visible). To take it: "
                    + next)
            return ExitStatus.done
        } catch {
            context.errors.writeLine("fk: \("\(origin.masked): \(error.fullText)".visible)")
            return ExitStatus.taskFailed
        }
    }
}

extension BarrelCheckCommand {
    /// The file of a lock or a checksum: the command that takes the new version drops both.
    fileprivate func sayBound(_ file: RefreshedFile, _ name: String) {
        if let barrel = try? BarrelOptions.known(self.name, global),
            let source = try? SourceImport(of: barrel, context), source.isFollowed, !source.namesVersion
        {
            context.errors.writeLine(
                "fk: \(name.visible): the server has another version than the listing of the source. The old file stays. To take the new "
                    + "one: \(global.suggested("fk barrel sync", [self.name]))")
            return
        }
        let words = [
            "get", "-b", self.name, "--overwrite", "-d", Paths.split(file.path).folder ?? ".", "-o",
            file.path.lastPathPart, file.url.masked,
        ]
        let accept = words.map(\.shellWord).joined(separator: " ")
        let forget = global.suggested("fk forget \(file.id.short)")
        context.errors.writeLine(
            "fk: \(name.visible): the server has another version, and the digest or size that the list or --checksum "
                + "has for the file binds it. The old file stays. To take the new one: "
                + "\(forget) && \(global.suggested("fk \(accept)"))")
    }
}
