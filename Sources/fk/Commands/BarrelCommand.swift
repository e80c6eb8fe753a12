import FKCore
import FKMiddleware
import Foundation

/// `fk barrel create|add|remove|delete`: commands that change a barrel and fetch nothing.
struct BarrelEditCommand: Command {
    enum Edit: Sendable {
        case create(BarrelCreateOptions)
        case add(BarrelAddOptions)
        case remove(BarrelRemoveOptions)
        case delete(name: String, isConfirmed: Bool)
    }

    let edit: Edit
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        switch edit {
        case .create(let options): return try await create(options)
        case .add(let options): return try await add(options)
        case .remove(let options):
            return try await perform(.removeFromBarrel(name: options.name, urls: options.urls))
        case .delete(let name, let isConfirmed): return try await delete(name, isConfirmed)
        }
    }

    /// Without a terminal it does not ask, because only the list of members is lost.
    private func delete(_ name: String, _ isConfirmed: Bool) async throws -> Int32 {
        if !isConfirmed, Confirmation.isPossible {
            let count = try global.openReader().barrel(name).members.count
            let kept = "\(Formatting.count(count, "task")) \(count == 1 ? "is" : "are") kept, with all files"
            let question = "Forget barrel \(name)? Its \(kept)."
            guard try Confirmation(context).ask(question) else {
                throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
            }
        }
        return try await perform(.deleteBarrel(name: name))
    }

    private func create(_ options: BarrelCreateOptions) async throws -> Int32 {
        let (tasks, refused) = try await options.input.resolve(context)
        let settings = BarrelOptions(directory: options.input.directory, options: options.input.shared)
        let status = try await perform(.createBarrel(name: options.name, options: settings))
        guard status == ExitStatus.done, !tasks.isEmpty else { return status }
        return try await add(tasks, to: options.name, refused)
    }

    private func add(_ options: BarrelAddOptions) async throws -> Int32 {
        let isNew = options.creates && !WorkPath(global.workPath).hasBarrel(options.name)
        let reader = isNew ? nil : try global.openReader()
        let barrel = try reader?.barrel(options.name)
        let folder =
            try options.directory ?? barrel?.options.directory
            ?? Paths.absolute(".", from: context.workingDirectory)
        var settings = ListedTasks.Settings(folder: folder)
        settings.options = barrel?.options.options ?? TaskOptions()
        settings.isFolderGiven = options.directory != nil
        if let barrel, let reader, options.creates { settings.members = KnownMembers(barrel.members, reader) }
        var tasks = try options.urls.map { url in
            var task = TaskDescription(url: try URLNormalizer.normalize(url))
            task.directory = folder
            task.options = settings.options
            return task
        }
        var refused = 0
        var own = barrel?.options ?? BarrelOptions(directory: folder)
        if let listed = try await listed(options, settings) {
            tasks += listed.tasks
            refused = listed.refused
            if isNew { own.directory = listed.folder }
            if let facts = listed.manifest?.facts, options.creates { try own.adopt(facts, options) }
        }
        if isNew || own != barrel?.options {
            let status = try await perform(.createBarrel(name: options.name, options: own), isQuiet: !isNew)
            if status != ExitStatus.done { return status }
        }
        return try await add(tasks, to: options.name, refused)
    }

    private func listed(_ options: BarrelAddOptions, _ settings: ListedTasks.Settings) async throws -> ListedTasks? {
        do {
            if let hub = options.hub {
                let manifest = try await hub.files(settings.options)
                warnOfToken()
                guard !manifest.entries.isEmpty || manifest.faultCount > 0 else {
                    throw options.arguments.error(
                        "\(hub.reference): no file of the repository is chosen. See --include and --exclude.")
                }
                return try ListedTasks(manifest, from: hub.reference.description, settings, context)
            }
            return try options.list.map { try ListedTasks($0, settings, context) }
        } catch let error as ListInput.Fault {
            throw options.arguments.error(error.description)
        }
    }

    /// A token is never stored, so the process that runs the downloads needs one of its own. It is told here, where the token
    /// is, and not by a 401 later.
    private func warnOfToken() {
        let workPath = WorkPath(global.workPath)
        guard HubToken.isPrivate(in: context.environment), EngineLock.isHeld(workPath),
            let pid = EngineLock.holder(workPath)?.pid
        else { return }
        context.warn(
            "process \(pid) runs the downloads of this work path. It has only the hub's token of its own environment, not this "
                + "HF_TOKEN. If the repository needs a token, save it with the hub's client (hf auth login), or run the barrel "
                + "from here once that process has ended.")
    }

    private func add(_ tasks: [TaskDescription], to name: String, _ refused: Int) async throws -> Int32 {
        let status = try await perform(
            .add(tasks: tasks, barrel: name, run: false),
            next: "fetch with: \(global.suggested("fk barrel run \(Paths.shellWord(name))"))")
        return max(status, refused > 0 ? ExitStatus.taskFailed : ExitStatus.done)
    }

    private func perform(
        _ request: EngineRequest, next: String = "", isQuiet: Bool = false
    ) async throws -> Int32 {
        let client = EngineClient.reportingSilence(Configure(workPath: URL(fileURLWithPath: global.workPath)), context)
        let (reply, problems) = try await client.perform(request)
        let answers = Answers(global, context)
        answers.warn(problems)
        if case .added(let list) = reply { return answers.added(list, then: next) }
        if isQuiet, case .done = reply { return ExitStatus.done }
        return answers.status(of: reply)
    }
}

extension BarrelOptions {
    /// Takes the origin of a list over.
    ///
    /// - Throws: `UsageError` if the barrel is of another commit: its files have the same names.
    fileprivate mutating func adopt(_ facts: Manifest.Facts, _ options: BarrelAddOptions) throws {
        if let commit, let other = facts.commit, other != commit, origin == facts.origin {
            throw options.arguments.error(
                "The barrel \(options.name) has \(origin ?? "") at commit \(commit), and the list is of \(other). Import it "
                    + "into another barrel and folder.")
        }
        origin = facts.origin ?? origin
        commit = facts.commit ?? commit
    }
}

/// `fk barrel list|show|export`
struct BarrelQueryCommand: Command {
    enum Query: Sendable {
        case list
        case show(name: String)
        case export(BarrelExportOptions)
    }

    let query: Query
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let workPath = WorkPath(global.workPath)
        let reader = StoreReader(workPath, addsShards: true)
        guard workPath.exists else {
            if case .list = query { return list(reader, []) }
            throw DownloadError(.notFound, "There are no barrels: the work path \(workPath.root) does not exist.")
        }
        try workPath.open(create: false)
        switch query {
        case .list: return list(reader, reader.barrelNames())
        case .show(let name): return try show(reader, name)
        case .export(let options): return try export(reader, options)
        }
    }

    private func list(_ reader: StoreReader, _ names: [String]) -> Int32 {
        let views = names.compactMap { try? BarrelView(reader, $0) }
        if global.json {
            JSONOutput(context.output).document(views.map(BarrelDocument.init))
            return ExitStatus.done
        }
        guard !views.isEmpty else {
            if !global.quiet { context.errors.writeLine("No barrels.") }
            return ExitStatus.done
        }
        var table = TableWriter([
            .init("BARREL", isFlexible: true), .init("FILES", alignsRight: true), .init("FAILED", alignsRight: true),
            .init("BYTES", alignsRight: true), .init("DONE", alignsRight: true),
        ])
        let mark = atLeast
        for view in views {
            table.add([
                .init(view.name), .init("\(view.complete)/\(view.records.count)"), .init("\(view.failed)"),
                .init(view.amount(mark)),
                .init(view.isExpectedKnown ? Formatting.percent(view.received, of: view.expected) : ""),
            ])
        }
        write(table)
        return ExitStatus.done
    }

    private func show(_ reader: StoreReader, _ name: String) throws -> Int32 {
        let view = try BarrelView(reader, name)
        if global.json {
            JSONOutput(context.output).document(BarrelDocument(view), "members", view.records, TaskDocument.json)
            return ExitStatus.done
        }
        write(TableWriter(of: view.records))
        if let origin = view.options.origin {
            let commit = view.options.commit.map { " at commit \($0)" } ?? ""
            context.output.writeLine(Escaping.visible("from \(origin)\(commit)"))
        }
        let failed = view.failed > 0 ? ", \(view.failed) failed" : ""
        context.output.writeLine(
            Escaping.visible(
                "\(view.name): \(view.complete) of \(view.records.count) complete\(failed), "
                    + view.amount(atLeast)))
        return ExitStatus.done
    }

    private func export(_ reader: StoreReader, _ options: BarrelExportOptions) throws -> Int32 {
        let view = try BarrelView(
            reader, options.name, where: options.missing ? { $0.state != .complete } : { _ in true })
        return BarrelExport(view: view, context: context).write(as: options.format)
    }

    private func write(_ table: TableWriter) { table.write(global, context) }

    private var atLeast: String { Formatting.atLeast(usesUnicode: context.outputTerminal(global.color).usesUnicode) }
}

/// A barrel with the records of its members, as they are on disk.
struct BarrelView {
    let name: String
    let options: BarrelOptions
    let records: [TaskRecord]
    let workPath: WorkPath

    /// - Parameter isWanted: chooses members; the default takes all.
    init(_ reader: StoreReader, _ name: String, where isWanted: (TaskRecord) -> Bool = { _ in true }) throws {
        self.name = name
        workPath = reader.workPath
        let barrel = try reader.barrel(name)
        options = barrel.options
        records = reader.records(barrel.members.map(\.id)).filter(isWanted)
    }

    var complete: Int { records.count { $0.state == .complete } }
    var failed: Int { records.count { $0.state == .error } }
    var received: Int64 { records.reduce(0) { $0 + $1.received } }
    /// The sum of the known lengths in bytes; nil while no length is known.
    var expected: Int64? {
        let known = records.compactMap(\.expected)
        return known.isEmpty ? nil : known.reduce(0, &+)
    }

    /// False while the length of any member is unknown. `expected` is then a lower bound.
    var isExpectedKnown: Bool { !records.isEmpty && records.allSatisfy { $0.expected != nil || $0.state == .complete } }

    /// The received and expected bytes for display.
    ///
    /// - Parameter mark: precedes a lower bound.
    func amount(_ mark: String) -> String {
        Formatting.amount(received, of: expected, orMore: isExpectedKnown ? nil : mark)
    }
}

/// The `--json` fields of a barrel, without its members.
private struct BarrelDocument: Encodable {
    let name: String
    let total: Int
    let complete: Int
    let error: Int
    let received: Int64
    @OrNull var expected: Int64?
    let isExpectedKnown: Bool
    @OrNull var origin: String?
    @OrNull var commit: String?

    init(_ view: BarrelView) {
        name = view.name
        total = view.records.count
        complete = view.complete
        error = view.failed
        received = view.received
        expected = view.expected
        isExpectedKnown = view.isExpectedKnown
        origin = view.options.origin
        commit = view.options.commit
    }
}

extension TableWriter {
    /// The columns of `list` and `barrel show`.
    /// A table of tasks. If any has failed, it has a column for the reasons.
    init(of records: [TaskRecord]) {
        let hasReasons = records.contains { $0.state == .error }
        self.init(
            [
                .init("ID"), .init("STATE"), .init("BYTES", alignsRight: true), .init("DONE", alignsRight: true),
                .init("NAME", isFlexible: true),
            ] + (hasReasons ? [.init("REASON", isFlexible: true)] : []))
        for record in records { add(record, hasReasons: hasReasons) }
    }

    private mutating func add(_ record: TaskRecord, hasReasons: Bool) {
        let info = DownloadInfo(record)
        let style: Style? =
            switch record.state {
            case .complete: .green
            case .error: .red
            case .action: .cyan
            case .suspend, .cancel: .yellow
            default: nil
            }
        let reason = record.state == .error ? record.error?.shortText ?? "" : ""
        add(
            [
                .init(record.id.short), .init(record.state.rawValue, style),
                .init(Formatting.amount(record.received, of: record.expected)),
                .init(Formatting.percent(record.received, of: record.expected)), .init(info.shownName),
            ] + (hasReasons ? [.init(reason)] : []))
    }

    func write(_ global: GlobalOptions, _ context: CommandContext) {
        let terminal = context.outputTerminal(global.color)
        let width = terminal.isTerminal ? terminal.size.columns : nil
        for line in lines(width: width, usesColor: terminal.usesColor, usesUnicode: terminal.usesUnicode) {
            context.output.writeLine(line)
        }
    }
}
