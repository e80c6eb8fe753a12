import FKCore
import FKMiddleware
import Foundation

/// `fk verify`: reads finished files again, and with `--repair` fetches damaged ones.
struct VerifyCommand: Command {
    enum Targets: Sendable, Hashable {
        case all
        case tasks([TaskReference])
        case barrel(String)
    }

    let targets: Targets
    /// The options of the run that repairs; nil without `--repair`.
    let repair: RunOptions?
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["verify"], summary: "read finished files again and compare them",
        discussion: [
            "Compares each finished file with its digest, if one is known, otherwise with the checksums of its pieces, which "
                + "are kept since the bytes arrived. Prints a line for each file: right, damaged, missing or unverifiable, and "
                + "its name below the barrel's folder. Exit status 1: a file is damaged, missing or cannot be read, or one that was named is not "
                + "finished.",
            "--repair fetches only the damaged ranges into a copy, from a mirror first if there is one. The copy replaces the "
                + "file once it has the right digest or checksums; otherwise the file stays as it was. A missing file is "
                + "fetched again. Exit status 1: a file could not be repaired.",
        ],
        operands: [TaskReference.operands(0)],
        options: [
            .value("barrel", "b", "NAME", hint: .barrels, "the members of this barrel"),
            .flag("all", nil, "all tasks"),
            .flag("repair", nil, "fetch damaged ranges and missing files again"),
        ],
        examples: [
            .init("fk verify --all", "every finished file"),
            .init("fk verify -b models --repair", "fetch what is damaged in a barrel"),
        ], usesSettings: false,
        make: { arguments, context in
            try VerifyCommand(
                targets: targets(arguments), repair: arguments.has("repair") ? RunOptions(arguments, context) : nil,
                context: context)
        })

    private static func targets(_ arguments: ParsedArguments) throws -> Targets {
        let given = [!arguments.operands.isEmpty, arguments.has("all"), arguments.has("barrel")].count { $0 }
        guard given == 1 else {
            throw arguments.error(
                given == 0
                    ? "Nothing to verify was given: name tasks, or give -b NAME or --all."
                    : "Tasks, -b and --all exclude each other.")
        }
        if let name = try arguments.barrel() { return .barrel(name) }
        if arguments.has("all") { return .all }
        return .tasks(arguments.operands.map(TaskReference.init))
    }

    func run() async throws -> Int32 {
        let reader = try global.openQuery()
        let ids = try ids(reader)
        var counts: [VerifiedFile.Result: Int] = [:]
        var renewals: [Renewal] = []
        var names: [TaskID: String] = [:]
        let paths = try paths(reader)
        var array = global.json && repair == nil ? JSONOutput(context.output).beginArray() : nil
        var files: [JSON] = []
        var unread = 0
        var unreadable = 0
        let problem: (DownloadError) -> Void = { error in
            unread += 1
            context.errors.writeLine("fk: \(error.message.visible)")
        }
        reader.verify(ids, problem: problem) { file in
            counts[file.result, default: 0] += 1
            if file.isUnreadable { unreadable += 1 }
            let name = file.path.map { paths.name(of: $0) } ?? file.url.masked
            if repair != nil, let renewal = file.renewal {
                renewals.append(renewal)
                names[renewal.id] = name
            }
            if global.json {
                if repair != nil { JSONOutput(context.output).line(file.document(name)) }
                if array != nil { files.append(file.document(name)) }
                if files.count == 256 { write(&files, to: &array) }
            } else if !global.quiet || file.result == .damaged || file.result == .missing || file.isUnreadable {
                context.output.writeLine("\(file.result.rawValue) \(name)".visible)
                if file.result == .damaged || file.isUnreadable, !global.quiet {
                    context.errors.writeLine("  \(file.detail)".visible)
                }
            }
            return context.output.failure == nil
        }
        write(&files, to: &array)
        array?.end()
        let unfinished = context.output.failure == nil ? ids.count - counts.values.reduce(0, +) - unread : 0
        if !global.quiet, !global.json {
            let results: [VerifiedFile.Result] = [.right, .damaged, .missing, .unverifiable]
            var sums = results.compactMap { result in counts[result].map { "\($0) \(result.rawValue)" } }
            if unfinished > 0, targets != .all { sums.append("\(unfinished) not finished") }
            if !sums.isEmpty { context.errors.writeLine(sums.joined(separator: ", ")) }
            if counts.isEmpty, unread == 0, unfinished == 0 || targets == .all {
                context.errors.writeLine("No finished files.")
            }
        }
        // Who names files wants to use them: one that is not there is not right.
        var isLacking = false
        if case .tasks = targets { isLacking = unfinished > 0 }
        guard !renewals.isEmpty, let repair else {
            let isWhole =
                counts[.damaged] == nil && counts[.missing] == nil && unread + unreadable == 0 && !isLacking
            return isWhole ? ExitStatus.done : ExitStatus.taskFailed
        }
        let status = try await perform(renewals, repair, reader)
        let repaired = reader.records(renewals.map(\.id)).filter { $0.state == .complete }
        if !global.json {
            for record in repaired {
                context.output.writeLine("repaired \(names[record.id] ?? "")".visible)
            }
            if !global.quiet {
                let rest = renewals.count - repaired.count
                context.errors.writeLine("\(repaired.count) repaired" + (rest > 0 ? ", \(rest) not repaired" : ""))
            }
        }
        return status == ExitStatus.done && (unread + unreadable > 0 || isLacking) ? ExitStatus.taskFailed : status
    }

    /// Repairs the files, those of a shard in its work path. The first signal ends it.
    private func perform(_ renewals: [Renewal], _ repair: RunOptions, _ reader: StoreReader) async throws -> Int32 {
        var status = ExitStatus.done
        let homes = Dictionary(grouping: renewals) { reader.home(of: $0.id).root }
        for (root, renewals) in homes.sorted(by: { $0.key < $1.key }) {
            var place = context
            if root != reader.workPath.root { (place.global.workPath, place.global.isWorkPathGiven) = (root, true) }
            var transfer = TransferRun(
                context: place, options: repair, goal: .tasks(renewals.map(\.id)),
                requests: [EngineMessage(.renew(renewals))], continueCommand: place.global.suggested("fk run"))
            status = max(status, try await transfer.run())
            if status > ExitStatus.notFound { break }
        }
        return status
    }

    private func write(_ files: inout [JSON], to array: inout JSONArrayOutput?) {
        array?.write(files, \.bytes)
        files = []
    }

    /// The names of the files: below the folder of the barrel, or of the barrel in whose folder each is.
    private func paths(_ reader: StoreReader) throws -> BarrelPaths {
        if case .barrel(let name) = targets { return BarrelPaths(reader, [name]) }
        return BarrelPaths(reader, try reader.barrelNames())
    }

    private func ids(_ reader: StoreReader) throws -> [TaskID] {
        switch targets {
        case .all: return try reader.taskIDs(matching: .all)
        case .barrel(let name): return try reader.taskIDs(matching: .barrel(name))
        case .tasks(let references):
            var seen: Set<TaskID> = []
            return try references.flatMap { try $0.records(reader).map(\.id) }.filter { seen.insert($0).inserted }
        }
    }
}

extension VerifiedFile {
    /// The reason, with the damaged bytes.
    fileprivate var detail: String {
        guard !damaged.isEmpty else { return reason }
        let shown = damaged.prefix(5).map { "\($0.lowerBound)-\($0.upperBound - 1)" }.joined(separator: ", ")
        let more = damaged.count > 5 ? " and \(damaged.count - 5) more ranges" : ""
        return "\(reason); damaged bytes: \(shown)\(more)"
    }

    /// An element of `fk verify --json`. The damaged bytes have the offsets of the first one and after the last one.
    fileprivate func document(_ name: String) -> JSON {
        .members([
            "damaged": .array(
                damaged.map { .members(["end": .integer($0.upperBound), "start": .integer($0.lowerBound)]) }),
            "id": .string(id.hex), "name": .string(name), "path": JSON(path), "reason": .string(reason),
            "result": .string(result.rawValue), "url": .string(url.masked),
        ])
    }
}
