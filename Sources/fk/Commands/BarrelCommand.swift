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
        let tasks = try options.input.takeNormalizedTasks()
        let settings = BarrelOptions(directory: options.input.directory, options: options.input.shared)
        let status = try await perform(.createBarrel(name: options.name, options: settings))
        guard status == ExitStatus.done, !tasks.isEmpty else { return status }
        return try await perform(
            .add(tasks: tasks, barrel: options.name, run: false),
            next: "fetch with: \(global.suggested("fk barrel run \(Paths.shellWord(options.name))"))")
    }

    private func add(_ options: BarrelAddOptions) async throws -> Int32 {
        if options.creates, !WorkPath(global.workPath).hasBarrel(options.name) {
            let settings = BarrelOptions(directory: try Paths.absolute(".", from: context.workingDirectory))
            let status = try await perform(.createBarrel(name: options.name, options: settings))
            if status != ExitStatus.done { return status }
        }
        let barrel = try global.openReader().barrel(options.name)
        let tasks = try options.entries.map { entry in
            try entry.task(in: barrel.options, context)
        }
        return try await perform(
            .add(tasks: tasks, barrel: options.name, run: false),
            next: "fetch with: \(global.suggested("fk barrel run \(Paths.shellWord(options.name))"))")
    }

    private func perform(_ request: EngineRequest, next: String = "") async throws -> Int32 {
        let client = EngineClient.reportingSilence(Configure(workPath: URL(fileURLWithPath: global.workPath)), context)
        let (reply, problems) = try await client.perform(request)
        let answers = Answers(global, context)
        answers.warn(problems)
        if case .added(let list) = reply { return answers.added(list, then: next) }
        return answers.status(of: reply)
    }
}

extension InputList.Entry {
    /// The task of this entry. The barrel's settings fill in what the entry leaves out.
    func task(in barrel: BarrelOptions, _ context: CommandContext) throws -> TaskDescription {
        var task = TaskDescription(url: try URLNormalizer.normalize(url))
        task.mirrors = try mirrors.map { try URLNormalizer.normalize($0) }
        task.directory = try directory ?? barrel.directory ?? Paths.absolute(".", from: context.workingDirectory)
        task.options = barrel.options ?? TaskOptions()
        apply(to: &task.options)
        if let fileName, let base = task.directory {
            (task.fileName, task.directory) = try place(fileName, under: base)
        }
        return task
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
        let reader = StoreReader(workPath)
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
        var table = TableWriter.ofTasks
        for record in view.records { table.add(record) }
        write(table)
        let failed = view.failed > 0 ? ", \(view.failed) failed" : ""
        context.output.writeLine(
            Escaping.visible(
                "\(view.name): \(view.complete) of \(view.records.count) complete\(failed), "
                    + view.amount(atLeast)))
        return ExitStatus.done
    }

    private func export(_ reader: StoreReader, _ options: BarrelExportOptions) throws -> Int32 {
        let view = try BarrelView(reader, options.name)
        switch options.format {
        case .urls:
            for record in view.records { context.output.writeLine(record.task.url) }
        case .json:
            JSONOutput(context.output).array(view.records, TaskDocument.json)
        case .aria2:
            for record in view.records {
                let urls = [record.task.url] + record.task.mirrors
                context.output.writeLine(urls.joined(separator: "\t"))
                if let folder = record.task.directory { context.output.writeLine("  dir=\(folder)") }
                if let name = record.task.fileName { context.output.writeLine("  out=\(name)") }
                if let sum = record.task.options.checksum { context.output.writeLine("  checksum=\(sum)") }
            }
        }
        return ExitStatus.done
    }

    private func write(_ table: TableWriter) { table.write(global, context) }

    private var atLeast: String { Formatting.atLeast(usesUnicode: context.outputTerminal(global.color).usesUnicode) }
}

/// A barrel with the records of its members, as they are on disk.
struct BarrelView {
    let name: String
    let records: [TaskRecord]

    init(_ reader: StoreReader, _ name: String) throws {
        self.name = name
        records = reader.records(try reader.barrel(name).members.map(\.id))
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

    init(_ view: BarrelView) {
        name = view.name
        total = view.records.count
        complete = view.complete
        error = view.failed
        received = view.received
        expected = view.expected
        isExpectedKnown = view.isExpectedKnown
    }
}

extension TableWriter {
    /// The columns of `list` and `barrel show`.
    static var ofTasks: TableWriter {
        TableWriter([
            .init("ID"), .init("STATE"), .init("BYTES", alignsRight: true), .init("DONE", alignsRight: true),
            .init("NAME", isFlexible: true),
        ])
    }

    mutating func add(_ record: TaskRecord) {
        let info = DownloadInfo(record)
        let style: Style? =
            switch record.state {
            case .complete: .green
            case .error: .red
            case .action: .cyan
            case .suspend, .cancel: .yellow
            default: nil
            }
        add([
            .init(record.id.short), .init(record.state.rawValue, style),
            .init(Formatting.amount(record.received, of: record.expected)),
            .init(Formatting.percent(record.received, of: record.expected)), .init(info.shownName),
        ])
    }

    func write(_ global: GlobalOptions, _ context: CommandContext) {
        let terminal = context.outputTerminal(global.color)
        let width = terminal.isTerminal ? terminal.size.columns : nil
        for line in lines(width: width, usesColor: terminal.usesColor, usesUnicode: terminal.usesUnicode) {
            context.output.writeLine(line)
        }
    }
}
