import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk barrel sync`: the source of a barrel is read again, and the barrel follows it.
///
/// ```text
/// listing -> comparison -> conditional requests for what may have changed
///         -> one run: new facts, renewals, new tasks, new versions -> deletion of what is gone
/// ```
///
/// Each step may be the last one of a process that is killed: what is unfinished counts as new in the next listing, and what has no new
/// version noted is asked for again.
struct BarrelSyncCommand: Command {
    let name: String
    let options: BarrelSyncOptions
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["barrel", "sync"], summary: "follow the source of a barrel",
        discussion: [
            "Reads the folder, bucket, list at a URL or other source again that 'fk get -r', 'fk get -b NAME -i URL' or 'fk barrel import' "
                + "has made the barrel of; fetches new and changed files; and prints a line for each: new, changed or gone, and its name. Files that the listing says are "
                + "unchanged cost no request. Where it says nothing about versions, each file is asked for with a conditional request.",
            "What is gone from the source stays, unless --delete is given. It deletes only files that fk wrote and nobody has changed; "
                + "others stay and are named. It deletes nothing if any part of the source could not be listed or used, or if more than "
                + "--max-delete would go, or if a new or changed file could not be fetched. A file that another barrel has too, that was "
                + "changed or that fk did not write stays, and leaves the barrel. Folders stay, unless a new file has the name of one that is "
                + "empty then. Without a terminal, --delete needs --yes.",
            "Exit status 0: the barrel is in step. 1: a file could not be fetched, a part could not be listed, or nothing was deleted "
                + "because of --max-delete.",
        ],
        operands: [OperandSpec("name", "the barrel", hint: .barrels)], options: BarrelSyncOptions.specs,
        examples: [
            .init("fk barrel sync pub", "fetch what is new and changed"),
            .init("fk barrel sync pub --dry-run", "what it would do"),
            .init(
                "fk barrel sync pub --delete --max-delete 100 --yes", "a mirror in cron: at most 100 files are deleted"),
        ],
        make: { arguments, context in
            try BarrelSyncCommand(
                name: arguments.namedBarrel(), options: BarrelSyncOptions(arguments, context), context: context)
        })

    func run() async throws -> Int32 {
        try global.refuseDivided(name) { _ in
            "fk barrel sync follows barrels that are not divided: import the source into a new one."
        }
        guard var barrel = try BarrelOptions.known(name, global) else {
            throw DownloadError(.notFound, "There is no barrel named \"\(name)\".")
        }
        if options.deletes, !options.isConfirmed, !options.isDryRun, !Confirmation.isPossible {
            throw CommandFailure(
                "--delete without a terminal needs --yes. Nothing was done.", status: ExitStatus.usage)
        }
        guard let source = try SourceImport(of: barrel, context) else {
            throw CommandFailure(
                "The barrel \(name) has no source: 'fk get -r', 'fk get -b NAME -i URL' and 'fk barrel import' with a source or the URL of a list "
                    + "make such barrels. To read a list in a file again: \(global.suggested("fk barrel import", [name])) FILE",
                status: ExitStatus.usage)
        }
        let (listed, comparison) = try await compare(source, barrel)
        var isInStep = comparison.isSure && listed.refused == 0
        if !comparison.isSure {
            context.errors.writeLine(
                "fk: \("\(source.source.title.masked): a part could not be \(listed.isIncomplete ? "listed" : "used"), so nothing counts as gone.".visible)"
            )
        }
        let deletion = SyncDeletion(
            barrel: name, isLayout: barrel.source?.layout == SourceLayout.oci.rawValue, options: options,
            comparison: comparison, client: client, context: context)
        if options.isDryRun {
            comparison.printSums()
            if deletion.isTooMuch {
                context.warn("\(name): --max-delete \(options.limit) does not allow that: nothing would be deleted.")
            }
            return isInStep ? ExitStatus.done : ExitStatus.taskFailed
        }
        if let facts = listed.manifest?.facts, facts.commit != barrel.commit {
            let old = barrel
            if source.isFollowed {
                barrel.commit = facts.commit
            } else {
                try barrel.adopt(facts, of: name, canFollow: false)
            }
            if old != barrel { _ = try await client.perform(.createBarrel(name: name, options: barrel)) }
        }
        listed.memory?.store()
        var plan = SyncPlan()
        try await ask(comparison, &plan)
        for file in plan.changed { comparison.print(file) }
        if plan.failures > 0 { isInStep = false }
        if !deletion.isAllowed() { isInStep = false }
        let early = try await deletion.makeRoom()
        let isFetched = try await perform(plan, comparison) == ExitStatus.done && plan.failures == 0
        if !isFetched { isInStep = false }
        // What no image needs any more is deleted after that.
        try OCILayout.finish(barrel)
        try await deletion.deleteRest(after: early, isFetched: isFetched)
        if !global.json, !global.quiet {
            context.say(
                "\(name): \(comparison.number(.new)) new, \(plan.changed.count) changed, "
                    + "\(comparison.number(.same) + comparison.number(.changed) - plan.changed.count) same, "
                    + "\(comparison.number(.gone)) gone"
                    + (listed.refused > 0 ? ", \(listed.refused) left out (named above)" : ""))
        }
        return isInStep ? ExitStatus.done : ExitStatus.taskFailed
    }

    private var client: EngineClient {
        EngineClient.reportingSilence(options.run.configure(global), context)
    }

    private func compare(
        _ source: SourceImport, _ barrel: BarrelOptions
    ) async throws -> (ListedTasks, SourceComparison) {
        ReadingTrap.set(context)
        let transport = try PacedTransport(options.run.configure(global), options.run.own, onWait: context.tellWait)
        defer { transport.shutdown() }
        let folder = try barrel.directory ?? Paths.absolute(name, from: context.workingDirectory)
        var settings = ListedTasks.Settings(folder: folder)
        settings.options = barrel.options ?? TaskOptions()
        settings.notesSizes = true
        settings.writesLayout = !options.isDryRun
        settings.members = try KnownMembers(global.openReader(), barrel: name)
        let listed = try await source.listed(settings, of: name, context, over: transport, mayChooseNone: true) {
            facts in
            // A repository or record at another version is another barrel.
            guard !source.isFollowed, let facts else { return }
            var pinned = barrel
            try pinned.adopt(facts, of: name, canFollow: false)
        }
        let show = options.isDryRun ? SourceComparison.printEach : SourceComparison.printNew
        return (
            listed, try SourceComparison(listed, source, barrel: name, folder: folder, context, show: show)
        )
    }

    /// Asks the servers of files that may have changed, and decides what is fetched again.
    private func ask(_ comparison: SourceComparison, _ plan: inout SyncPlan) async throws {
        var asked: [TaskID: SourceComparison.File] = [:]
        for file in comparison.files {
            guard let task = file.task else { continue }
            if file.isMoved || file.isUnfinished {
                plan.move(file, task, global)
                continue
            }
            if file.result == .changed, plan.takesNewFacts(task, of: file, global) { continue }
            asked[file.id] = file
        }
        guard !asked.isEmpty else { return }
        TransportLibrary.prepare()
        let ids = comparison.files.compactMap { asked[$0.id] == nil ? nil : $0.id }
        try await options.run.refresh(ids, context) { answer in
            guard let file = asked.removeValue(forKey: answer.id) else { return }
            switch answer.result {
            case .unchanged: plan.record(file)
            case .changed, .missing:
                if let task = file.task { plan.storeFacts(of: task, file, global) }
                plan.renew(file)
            case .gone, .failed:
                plan.failures += 1
                var reason = "the listing has the file, and the server says that it is gone"
                if case .failed(let error) = answer.result { reason = error.fullText }
                context.errors.writeLine("fk: \("\(file.name): \(reason)".visible)")
            }
        }
        for file in asked.values.sorted(by: { $0.name < $1.name }) where file.result == .changed {
            context.warn("\(file.name) has another version and stays as it is: fk did not write it.")
        }
    }

    /// Fetches new and changed files, and notes the versions of the listing.
    private func perform(_ plan: SyncPlan, _ comparison: SourceComparison) async throws -> Int32 {
        let places = global.place.places
        var ids = plan.changed.map(\.id)
        let added = TaskSpool(folder: try ScratchFolder.base(context))
        while true {
            let tasks = try comparison.added.drain(atMost: 1_000)
            if tasks.isEmpty { break }
            for var task in tasks {
                task.attributes[SourceVersion.sizeAttribute] = nil
                // The listing is the last word about the file, and not about how it is fetched.
                task.words = [.keepsOrders, .isNewVersion]
                ids.append(places.id(of: task))
                try added.append(task)
            }
        }
        var requests: [EngineMessage] = []
        if !plan.changes.isEmpty { requests.append(EngineMessage(.change(plan.changes))) }
        for (id, url) in plan.moved { requests.append(EngineMessage(.relink(id, to: url))) }
        let (unfinished, finished) = (plan.changed.filter(\.isUnfinished), plan.changed.filter { !$0.isUnfinished })
        if !finished.isEmpty { requests.append(EngineMessage(.renew(finished.map { Renewal($0.id) }))) }
        for file in unfinished {
            requests.append(EngineMessage(.verb(.retry, .id(file.id))))
            requests.append(EngineMessage(.run(.id(file.id))))
        }
        // A version counts once the renewal is recorded: a kill before that asks again.
        for (id, version) in plan.versions {
            requests.append(EngineMessage(.setAttributes(.id(id), [SourceVersion.attribute: version])))
        }
        guard !requests.isEmpty || !added.isEmpty else { return ExitStatus.done }
        guard !ids.isEmpty else {
            for request in requests { _ = try await client.perform(request) }
            return ExitStatus.done
        }
        var transfer = TransferRun(
            context: context, options: options.run, goal: .tasks(ids), requests: requests,
            addition: added.isEmpty ? nil : TaskAddition(added, barrel: name, run: true), barrels: [],
            continueCommand: global.suggested("fk barrel sync", [name]))
        return try await transfer.run()
    }
}
