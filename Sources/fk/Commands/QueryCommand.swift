import FKCore
import FKMiddleware
import Foundation

/// `fk list`
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
            records.forEachPortion { array.write($0, TaskDocument.json) }
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

/// `fk info`
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
                let document = try InfoFile.rawPayload(reader.home(of: record.id).infoPath(record.id))
                JSONOutput(context.output).line(json: Array(document.utf8))
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
                let places = reader.home(of: record.id).places
                let text = RecordText(record, in: places)
                text.facts.forEach(context.output.writeLine)
                text.history.forEach(context.print)
            }
        }
        return ExitStatus.done
    }

    private func document(_ record: TaskRecord, _ reader: StoreReader) -> [UInt8] {
        TaskDocument.json(record, isExport: false, places: reader.home(of: record.id).places)
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
                engineRuns: EngineLock.isHeld(home), isSilent: reader.isSilent(record.id))
            return (record: record, reason: reason + (limit.map { ", limited by \($0.text)" } ?? ""), limit: limit)
        }
        if global.json {
            let documents = answers.map { Self.document($0.record, $0.reason, $0.limit) }
            JSONOutput(context.output).document(documents.count == 1 ? documents[0] : .array(documents))
            return ExitStatus.done
        }
        for (record, reason, _) in answers {
            context.print(Escaping.visible("\(record.id.short)  \(record.state.shown): \(reason)"))
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
                "by": .string(line.by), "time": .string(Timestamp.text(line.time)), "what": .string(line.what),
            ])
        }
        return .members([
            "error": record.shownError?.document ?? .null, "history": .array(history), "id": .string(record.id.hex),
            "limitedBy": JSON(limit?.kind.rawValue), "reason": .string(reason), "state": .string(record.state.rawValue),
            "url": .string(URLMasking.mask(record.task.url)), "waiting": record.waiting?.document ?? .null,
        ])
    }
}

/// The text about a record.
struct RecordText {
    private let record: TaskRecord
    /// The named base of its place; nil without one.
    private let base: Places.Base?

    /// - Parameter places: the stored form of its places, to tell the base; the default has none.
    init(_ record: TaskRecord, in places: Places = .none) {
        self.record = record
        base = places.base(of: record).flatMap { $0.name == Places.work ? nil : $0 }
    }

    /// The facts and the history.
    var lines: [String] { facts + history }

    /// The values of the record, one a line.
    var facts: [String] {
        var rows: [(String, String)] = [
            ("url", URLMasking.mask(record.task.url)), ("id", record.id.hex), ("state", record.state.shown),
            (
                "bytes",
                Formatting.amount(record.received, of: record.expected)
                    + (record.lengthVerified == false ? ", length not verified" : "")
            ),
        ]
        func add(_ name: String, _ value: String?) { if let value, !value.isEmpty { rows.append((name, value)) } }
        add("path", record.path)
        add("synced", synced)
        add("folder", record.task.directory)
        add("base", base.map { "\($0.name), \($0.root)" })
        add("mirrors", record.task.mirrors.map(URLMasking.mask).joined(separator: " "))
        add("barrels", record.barrels.joined(separator: ", "))
        let shown = DownloadRecord(record)
        add("type", shown.mimeType)
        add("encoding", record.validator?.coding.map { "\($0), which was not asked for: the bytes are kept as sent" })
        add("checksum", record.task.options.checksum?.description)
        add("list", record.task.option { $0.list }.map { $0.name + ($0.signer.map { ", signed by \($0)" } ?? "") })
        add("signed by", record.task.option { $0.signature }.map { SignatureKey.shown($0.key) })
        for (name, value) in record.task.attributes.sorted(by: { $0.key < $1.key }) {
            rows.append(("attribute", "\(name)=\(value)"))
        }
        if record.task.options.insecure == true { rows.append(("insecure", "the server's certificate is not checked")) }
        rows.append(("attempts", "\(record.attempts)"))
        if let rate = record.bytesPerSecond, rate > 0 {
            rows.append(("speed", Formatting.rate(Double(rate)) + (record.state == .action ? "" : ", average")))
        }
        if let waiting = record.waiting { add("waiting", waiting.text) }
        add("error", record.shownError?.shortText)
        add("created", Timestamp.text(record.created))
        add("finished", record.finished.map(Timestamp.text))
        add("last used", record.lastUsed.map(Timestamp.text))
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { "\($0.0.padding(toLength: width, withPad: " ", startingAt: 0))  \(Escaping.visible($0.1))" }
    }

    /// Whether the finished file survives a power cut.
    private var synced: String? {
        guard let isOnDisk = record.isOnDisk else { return nil }
        if isOnDisk { return "yes, it is on the disk itself" }
        return record.needsProof()
            ? "no, and the system went down since: the next fk run checks the file"
            : "not yet; after a power cut the next fk run checks the file"
    }

    /// The task's history, newest last.
    var history: [String] {
        record.history.map { line in
            Escaping.visible("  \(Timestamp.text(line.time))  \(line.by): \(line.what)")
        }
    }

    /// Why the task is not running, in one sentence.
    ///
    /// - Parameter isSilent: true if the process that runs the downloads is stopped or hung; the default is false.
    func reason(engineRuns: Bool, isSilent: Bool = false) -> String {
        switch record.state {
        case .action where isSilent, .idle where isSilent: EngineText.reason
        case .complete:
            "\(record.path ?? "its file")\(base.map { " in base \($0.name)" } ?? ""), since \(record.finished.map(Timestamp.text) ?? "an unknown time")"
                + (record.attempts > 0 ? ", after \(Formatting.count(record.attempts, "attempt"))" : "")
        case .error: record.error?.fullText ?? "it failed"
        case .suspend: "it was suspended; resume it with: fk resume \(record.id.short)"
        case .cancel: "it was cancelled; start again with: fk retry \(record.id.short)"
        case .action: "it is running"
        case .idle, .unknown:
            if let waiting = record.waiting, waiting.reason == .slot {
                "it is queued: \(waiting.text), or it is not part of the current run; fk run takes all"
            } else if let waiting = record.waiting, waiting.reason != .engine {
                waiting.text
            } else if engineRuns {
                "it is queued: all slots are taken, or it is not part of the current run; fk run takes all"
            } else {
                "no process runs the downloads of this work path; start with: fk run"
            }
        }
    }
}
