import FKCore
import FKMiddleware
import Foundation

struct ListCommand: Command {
    let options: ListOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let workPath = global.place
        guard workPath.exists else {
            if let name = options.query.barrel {
                throw DownloadError(.notFound, "There is no barrel named \"\(name)\".")
            }
            if global.json { JSONOutput(context.output).beginArray().end() }
            return nothing()
        }
        try workPath.open(create: false)
        let records = try records(StoreReader(withShardsOf: workPath).reportingSilence(context))
        if global.json {
            var array = JSONOutput(context.output).beginArray()
            records.forEachPortion { array.write($0, TaskDocument.lookingForFile) }
            array.end()
            return ExitStatus.done
        }
        guard !records.isEmpty else { return nothing() }
        var table = TaskTable(context)
        records.forEach { table.measure($0) }
        table.write(records)
        return ExitStatus.done
    }

    private func nothing() -> Int32 {
        if !global.json, !global.quiet { context.errors.writeLine("No tasks.") }
        return ExitStatus.done
    }

    private func records(_ reader: StoreReader) throws -> RecordList {
        let answers = Answers(context)
        var warned: Set<String> = []
        let warn: (DownloadError) -> Void = { if warned.insert($0.fullText).inserted { answers.warn([$0.fullText]) } }
        guard let name = options.query.barrel else { return try RecordList(reader, options.query, problem: warn) }
        let ids = try reader.barrelIDs(name).ids
        var query = options.query
        // The members were selected by name, whatever their own records contain.
        query.barrel = nil
        if query == RecordQuery() { return RecordList(reader, inOrder: ids, problem: warn) { _ in } }
        return try RecordList(reader, query, ids: ids, problem: warn)
    }
}

struct InfoCommand: Command {
    let reference: TaskReference
    /// True prints the record as it is stored.
    let raw: Bool
    let context: CommandContext

    func run() async throws -> Int32 {
        let reader = try global.openQuery().reportingSilence(context)
        let records = try reference.records(reader)
        if raw {
            for record in records {
                JSONOutput(context.output).line(json: Array(try reader.storedText(of: record.id).utf8))
            }
        } else if global.json {
            // A URL with several destinations has several documents; usually there is one.
            let output = JSONOutput(context.output)
            if records.count == 1 {
                output.document(json: document(records[0], reader))
            } else {
                output.array(records) { document($0, reader) }
            }
        } else {
            for (index, record) in records.enumerated() {
                if index > 0 { context.output.writeLine("") }
                let text = RecordText(record, in: reader.home(of: record.id).places)
                text.facts.forEach(context.output.writeLine)
                text.history.forEach(context.print)
            }
        }
        return ExitStatus.done
    }

    private func document(_ record: TaskRecord, _ reader: StoreReader) -> [UInt8] {
        TaskDocument.json(
            record, isExport: false, places: reader.home(of: record.id).places, isGone: record.hasLostFile)
    }
}

/// `fk why`: shows why a task is not running, and its history.
struct WhyCommand: Command {
    let references: [TaskReference]
    let context: CommandContext

    func run() async throws -> Int32 {
        let reader = try global.openQuery().reportingSilence(context)
        var seen: Set<TaskID> = []
        var records = try references.flatMap { try $0.records(reader) }.filter { seen.insert($0.id).inserted }
        let running = records.filter { $0.state == .action && !reader.isSilent($0.id) }.map(\.id)
        var limits: [TaskID: Bottleneck] = [:]
        for (home, ids) in Dictionary(grouping: running, by: reader.home) {
            for (id, measures) in try await measures(of: ids, home) { limits[id] = .find(measures) }
        }
        // A task may have ended meanwhile.
        if !running.isEmpty { records = reader.records(records.map(\.id)) }
        let answers = records.map { record in
            let limit = limits[record.id]
            let home = reader.home(of: record.id)
            let reason = RecordText(record, in: home.places).reason(
                engineRuns: EngineLock.isHeld(home), isSilent: reader.isSilent(record.id), suggested: global.suggested)
            return (record: record, reason: reason + (limit.map { ", limited by \($0.text)" } ?? ""), limit: limit)
        }
        if global.json {
            let documents = answers.map { Self.document($0.record, $0.reason, $0.limit) }
            JSONOutput(context.output).document(documents.count == 1 ? documents[0] : .array(documents))
            return ExitStatus.done
        }
        for (record, reason, _) in answers {
            context.print("\(record.id.short)  \(record.state.shown): \(reason)".visible)
            RecordText(record).history.forEach(context.print)
        }
        return ExitStatus.done
    }
}

extension WhyCommand {
    /// The measures of running tasks; none if no process runs them.
    private func measures(of ids: [TaskID], _ home: WorkPath) async throws -> [TaskID: Bottleneck.Measures] {
        guard let pid = EngineLock.holder(home)?.pid else { return [:] }
        var configure = global.configure
        configure.workPath = home.url
        var client = EngineClient(configure: configure)
        client.patience = EngineWatch.limit
        var limits: LimitsReport?
        if case .limits(let report)? = try? await client.perform(.limits).0 { limits = report }
        return try await EngineProbe(reader: StoreReader(home), pid: pid, limits: limits).measure(ids)
    }

    /// The document of `fk why --json`. `limitedBy` is what limits a running task: `limit`, `middleware`, `processor`, `disk`,
    /// `server`, `network` or `unknown`.
    private static func document(_ record: TaskRecord, _ reason: String, _ limit: Bottleneck?) -> JSON {
        let history = record.history.map { line in
            JSON.members([
                "by": .string(line.by), "time": .string(line.time.timestamp), "what": .string(line.what),
            ])
        }
        return .members([
            "error": record.shownError?.document ?? .null, "history": .array(history), "id": .string(record.id.hex),
            "limitedBy": JSON(limit?.kind.rawValue), "reason": .string(reason), "state": .string(record.state.rawValue),
            "url": .string(record.task.url.masked), "waiting": record.waiting?.document ?? .null,
        ])
    }
}
