import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk barrel create|add|remove|delete`: commands that change a barrel and fetch nothing.
struct BarrelEditCommand: Command {
    enum Edit: Sendable {
        case create(BarrelCreateOptions)
        case add(BarrelAddOptions)
        case remove(name: String, urls: [String])
        case delete(name: String, isConfirmed: Bool)
    }

    let edit: Edit
    let context: CommandContext

    func run() async throws -> Int32 {
        switch edit {
        case .create(let options): return try await create(options)
        case .add(let options): return try await add(options)
        case .remove(let name, let urls):
            try global.refuseDivided(name) { shard in
                "Remove the files in the work path of the shard that has them, such as --work-path \(shard)."
            }
            return try await perform(EngineMessage(.removeFromBarrel(name: name, urls: urls)))
        case .delete(let name, let isConfirmed): return try await delete(name, isConfirmed)
        }
    }

    /// Without a terminal it does not ask, because only the list of members is lost.
    private func delete(_ name: String, _ isConfirmed: Bool) async throws -> Int32 {
        if !isConfirmed, Confirmation.isPossible {
            let count = try global.openQuery().barrelIDs(name).ids.count
            let kept = "\(count.plural("task")) \(count == 1 ? "is" : "are") kept, with all files"
            guard try Confirmation(context).ask("Forget barrel \(name)? Its \(kept).") else {
                throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
            }
        }
        guard let plan = try ShardPlan.read(name, in: global.place) else {
            return try await perform(EngineMessage(.deleteBarrel(name: name)))
        }
        context.warn(
            "The barrel \(name) was divided into \(plan.count.plural("shard")), which alone know what was fetched: fk run would "
                + "fetch the files of its tasks again. fk forget forgets the tasks.")
        return try await delete(name, divided: plan)
    }

    /// Deletes the barrel in the work path of each shard, then here, and then the division: a kill before that leaves the rest to the next
    /// `fk barrel delete`.
    private func delete(_ name: String, divided plan: ShardPlan) async throws -> Int32 {
        let shards = (1...plan.count).compactMap { Shard($0, of: plan.count).map { global.place.shard($0) } }
        for place in shards where place.hasBarrel(name) {
            var context = context
            (context.global.workPath, context.global.isWorkPathGiven) = (place.root, true)
            let client = EngineClient.reportingSilence(context.global.configure, context)
            let (reply, _) = try await client.perform(.deleteBarrel(name: name))
            if case .failed(let error) = reply { throw error }
        }
        if global.place.hasBarrel(name) {
            let status = try await perform(EngineMessage(.deleteBarrel(name: name)), isQuiet: true)
            guard status == ExitStatus.done else { return status }
        }
        try ShardPlan.remove(name, in: global.place)
        return Answers(context).status(of: .done(note: "barrel \(name) deleted; its tasks and files were kept"))
    }

    private func create(_ options: BarrelCreateOptions) async throws -> Int32 {
        let transport = try PacedTransport(configure, onWait: context.tellWait)
        defer { transport.shutdown() }
        var list: (source: SourceImport, tasks: ListedTasks)?
        let (tasks, refused, signer) = try await options.input.resolve(context, over: transport) { list = ($0, $1) }
        var settings = BarrelOptions(
            directory: list?.tasks.folder ?? options.input.directory, options: options.input.shared)
        settings.signedBy = try BarrelOptions.known(options.name, global)?.signedBy
        if options.input.hasList {
            try settings.adopt(signer: signer, of: options.name)
            if let list { try settings.follow(list.tasks, of: list.source, options.input.shared, options.name) }
        } else {
            try settings.check(tasks.all(), of: options.name)
        }
        let status = try await perform(EngineMessage(.createBarrel(name: options.name, options: settings)))
        guard status == ExitStatus.done, !tasks.isEmpty else { return status }
        return try await add(tasks, to: options.name, refused)
    }

    private func add(_ options: BarrelAddOptions) async throws -> Int32 {
        let isNew = options.creates && !WorkPath(global.workPath).hasBarrel(options.name)
        let reader = isNew ? nil : try global.openReader()
        let barrel = try reader?.forEachMember(of: options.name) { _, _ in }
        let folder =
            try options.directory ?? barrel?.options.directory
            ?? Paths.notFile(Paths.absolute(options.isServerList ? options.name : ".", from: options.base))
        var settings = ListedTasks.Settings(folder: folder)
        settings.options = barrel?.options.options ?? TaskOptions()
        if options.noPrivate { settings.options.noPrivate = true }
        settings.isFolderGiven = options.directory != nil
        settings.takesHidden = options.takesHidden
        if let reader {
            settings.members = try KnownMembers(
                reader, barrel: options.name, readsLinks: options.creates, findsPlaces: options.creates)
            settings.isNewVersion = options.creates
        }
        let given = try options.urls.map { url in
            var task = TaskDescription(url: try url.normalizedURL())
            task.directory = folder
            task.options = settings.options
            settings.members.matchPlain(&task)
            return task
        }
        try barrel?.options.check(given, of: options.name)
        var refused = 0
        var own = barrel?.options ?? BarrelOptions(directory: folder)
        // Several lists may make one barrel; a folder or another place is followed.
        if let source = options.source, !source.namesVersion { try own.check(source, of: options.name) }
        var tasks = TaskSpool(given)
        let listed = try await listed(options, settings)
        if let listed {
            tasks = listed.spool
            tasks.prepend(given)
            refused = listed.refused
            if isNew { own.directory = listed.folder }
            if let facts = listed.manifest?.facts {
                let isProven = options.signature != nil
                try own.adopt(
                    signer: isProven ? facts.signedBy : nil, claimed: options.creates ? facts.claimedSigner : nil,
                    of: options.name)
                if options.creates {
                    try own.adopt(facts, of: options.name, canFollow: options.source?.isFollowed ?? false)
                }
                if let source = options.source { own.adopt(source, settings.options) }
            }
        }
        // A choice of files, and a list with bad entries, do not tell what went.
        let isWhole = options.arguments.all("include").isEmpty && options.arguments.all("exclude").isEmpty
        // Members in the barrel's folder are other files than those in another one.
        let isElsewhere = barrel?.options.warnOfFolder(folder, of: options.name, context) ?? false
        if !isNew, options.creates, isWhole, refused == 0, !isElsewhere { listed?.warnOfGone() }
        if isNew || own != barrel?.options {
            let status = try await perform(
                EngineMessage(.createBarrel(name: options.name, options: own)), isQuiet: !isNew)
            if status != ExitStatus.done { return status }
        }
        listed?.memory?.store()
        return try await add(tasks, to: options.name, refused)
    }

    private func listed(_ options: BarrelAddOptions, _ settings: ListedTasks.Settings) async throws -> ListedTasks? {
        ReadingTrap.set(context)
        var configure = configure
        if options.noPrivate { configure.transport.refusePrivateRedirects() }
        let transport = try PacedTransport(configure, onWait: context.tellWait)
        defer { transport.shutdown() }
        do {
            if let source = options.source {
                let known = try BarrelOptions.known(options.name, global)
                let listed = try await source.listed(settings, of: options.name, context, over: transport) { facts in
                    guard options.creates, var pinned = known, let facts else { return }
                    try pinned.adopt(facts, of: options.name, canFollow: source.isFollowed)
                }
                EngineEnvironment(context)?.warnings(about: listed.spool.sample).forEach(context.warn)
                return listed
            }
            guard var list = options.list else { return nil }
            if let signature = options.signature {
                try await list.prove(by: signature, settings.options, context, over: transport)
            }
            return try ListedTasks(list, settings, context)
        } catch let error as ListInput.Fault {
            throw options.arguments.error(error.description)
        }
    }

    private func add(_ tasks: TaskSpool, to name: String, _ refused: Int) async throws -> Int32 {
        var answers = AddedAnswers(context)
        try await answers.add(TaskAddition(tasks, barrel: name, run: false), configure)
        let status = answers.end(
            then: "fetch with: \(global.suggested("fk barrel run", [name]))")
        return max(status, refused > 0 ? ExitStatus.taskFailed : ExitStatus.done)
    }

    private var configure: Configure { global.configure }

    private func perform(_ request: EngineMessage, isQuiet: Bool = false) async throws -> Int32 {
        let answers = Answers(context)
        let reply = try await answers.perform(request)
        if isQuiet, case .done = reply { return ExitStatus.done }
        return answers.status(of: reply)
    }
}

extension BarrelOptions {
    /// Takes the origin of a list over.
    ///
    /// - Parameter canFollow: true if `fk barrel sync` takes another version.
    /// - Throws: `CommandFailure` if the barrel is of another version: its files have the same names.
    mutating func adopt(_ facts: Manifest.Facts, of name: String, canFollow: Bool) throws {
        // Another version of a repository or record has other URLs, and the same names. A list at a URL has changed.
        if let commit, let other = facts.commit, other != commit, let origin, origin == facts.origin,
            !NearbyFile.isURL(origin)
        {
            let sync =
                canFollow
                ? "Take the new version with 'fk barrel sync \(name.shellWord)', or import it" : "Import it"
            throw CommandFailure(
                ("The barrel \(name) has \(origin.masked) at version \(commit), and the list is of \(other). "
                    + "\(sync) into another barrel and folder.").visible, status: ExitStatus.usage)
        }
        origin = facts.origin ?? origin
        commit = facts.commit ?? commit
    }

    /// Checks that a folder or another place is the one of the barrel, at the same server and with the same names: files of two places
    /// would be mixed.
    ///
    /// - Throws: `CommandFailure` if the barrel is of another place.
    func check(_ source: SourceImport, of name: String) throws {
        guard let origin else { return }
        let other = "Name another one with -b NAME, and a folder with -d DIR."
        guard origin.isExactly(source.source.title) else {
            guard source.isFollowed else { return }
            throw CommandFailure(
                ("The barrel \(name) has the files of \(origin.masked), and not those of "
                    + "\(source.source.title.masked). \(other)").visible, status: ExitStatus.usage)
        }
        if let fault = source.otherServer(than: self.source) {
            throw CommandFailure("The barrel \(name) \(fault)".visible, status: ExitStatus.usage)
        }
        let (known, given) = (self.source?.layout, source.kept.layout)
        guard known != given else { return }
        let has = known.map { "as --layout \($0). Give it again, or: " } ?? "under their own names. "
        throw CommandFailure(
            "The barrel \(name) has the files of \(origin.masked) \(has)\(other)".visible, status: ExitStatus.usage)
    }

    /// Says what becomes of files in another folder than that of the barrel, if it follows a source.
    ///
    /// - Returns: true for another folder.
    @discardableResult
    func warnOfFolder(_ folder: String, of name: String, _ context: CommandContext) -> Bool {
        guard let directory, !directory.isExactly(folder) else { return false }
        if origin != nil {
            context.warn(
                "The barrel \(name) follows \(directory): files in \(folder) are fetched, and fk barrel sync leaves them alone. "
                    + "Another name makes a barrel of their own.")
        }
        return true
    }

    /// Lets the barrel follow a list at a URL (`fk barrel sync`), unless it follows another place.
    ///
    /// - Throws: same as `adopt(_:of:canFollow:)`.
    mutating func follow(
        _ listed: ListedTasks, of source: SourceImport, _ shared: TaskOptions, _ name: String
    ) throws {
        guard let facts = listed.manifest?.facts, let listOrigin = facts.origin,
            origin?.isExactly(listOrigin) != false
        else { return }
        if directory == nil { directory = listed.folder }
        try adopt(facts, of: name, canFollow: source.isFollowed)
        adopt(source, shared)
    }

    /// Keeps what is said about a source, to ask it again, and the options of a new barrel. Their secrets are for the source alone: a member
    /// of another server that joins later does not get them.
    mutating func adopt(_ source: SourceImport, _ shared: TaskOptions) {
        self.source = source.kept.isEmpty ? nil : source.kept
        guard source.isFollowed, shared != TaskOptions() else { return }
        var options = shared
        options.secretOrigin = source.source.secretOrigin
        self.options = options
    }
}

/// `fk barrel list|show|export`
struct BarrelQueryCommand: Command {
    enum Query: Sendable {
        case list
        case show(name: String)
        case export(name: String, BarrelExport.Format, onlyMissing: Bool)
    }

    let query: Query
    let context: CommandContext

    func run() async throws -> Int32 {
        let workPath = global.place
        let reader = try StoreReader(withShardsOf: workPath).reportingSilence(context)
        guard workPath.exists else {
            if case .list = query { return list(reader, []) }
            throw DownloadError(.notFound, "There are no barrels: the work path \(workPath.root) does not exist.")
        }
        try workPath.open(create: false)
        switch query {
        case .list: return list(reader, try reader.barrelNames())
        case .show(let name): return try show(reader, name)
        case .export(let name, let format, let onlyMissing):
            let (barrel, ids) = try reader.barrelIDs(name)
            return BarrelExport(
                name: name, options: barrel.options, reader: reader, ids: ids, onlyMissing: onlyMissing,
                context: context
            ).write(as: format)
        }
    }

    private func list(_ reader: StoreReader, _ names: [String]) -> Int32 {
        var status = ExitStatus.done
        let views = names.compactMap { name -> BarrelView? in
            do {
                return try BarrelView(reader, name) { Answers(context).warn([$0.description]) }
            } catch let error as DownloadError where error.code == .notFound {
                // Deleted meanwhile.
                return nil
            } catch {
                status = ExitStatus.taskFailed
                let fault = DownloadError(wrapping: error, code: .disk, message: "The barrel \(name) cannot be read.")
                Answers(context).fail(fault)
                return nil
            }
        }
        if global.json {
            JSONOutput(context.output).document(.array(views.map(\.document)))
            return status
        }
        guard !views.isEmpty else {
            if !global.quiet, names.isEmpty { context.errors.writeLine("No barrels.") }
            return status
        }
        var table = TableWriter([
            .init("BARREL", isFlexible: true), .init("FILES", alignsRight: true), .init("FAILED", alignsRight: true),
            .init("BYTES", alignsRight: true, spare: 1), .init("DONE", alignsRight: true),
        ])
        let mark = atLeast
        for view in views {
            table.add([
                .init(view.name), .init("\(view.complete)/\(view.totals.count)"),
                .init("\(view.totals.count(.error))"),
                .init(view.amount(mark)),
                .init(
                    view.totals.isExpectedKnown
                        ? Formatting.percent(view.totals.received, of: view.totals.expected) : ""),
            ])
        }
        table.write(context)
        return status
    }

    private func show(_ reader: StoreReader, _ name: String) throws -> Int32 {
        var status = ExitStatus.done
        let problem: (DownloadError) -> Void = { error in
            status = ExitStatus.taskFailed
            Answers(context).warn([error.description])
        }
        if global.json {
            let (view, records) = try BarrelView.read(reader, name, problem: problem)
            var members = JSONOutput(context.output).beginDocument(view.document, "members")
            records.forEachPortion { members.write($0, TaskDocument.lookingForFile) }
            members.end()
            return status
        }
        var table = TaskTable(context, paths: BarrelPaths(reader, [name]))
        let (view, records) = try BarrelView.read(reader, name, problem: problem) { table.measure($0) }
        table.write(records)
        if let origin = view.options.origin {
            let commit = view.options.commit.map { " at commit \($0)" } ?? ""
            context.output.writeLine("from \(origin.masked)\(commit)".visible)
        }
        let (count, error) = (view.totals.count, view.totals.count(.error))
        let failed = error > 0 ? ", \(error) failed" : ""
        let gone = view.gone > 0 ? ", \(view.gone.plural("file")) gone" : ""
        if let signer = view.options.signedBy {
            context.output.writeLine("lists signed by \(SignatureKey.shown(signer))")
        } else if let signer = view.options.claimedSigner {
            context.output.writeLine(
                "signer \(SignatureKey.shown(signer)), as a lock claims: no signature was verified")
        }
        context.print(
            ("\(view.name): \(view.complete) of \(count) complete\(failed)\(gone), " + view.amount(atLeast)).visible)
        return status
    }

    private var atLeast: String { Formatting.atLeast(usesUnicode: context.outputTerminal(global.color).usesUnicode) }
}
