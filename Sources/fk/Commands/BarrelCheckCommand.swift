import FKCore
import FKMiddleware
import Foundation

/// `fk barrel missing|refresh`: what a barrel lacks, and what has changed on its servers.
struct BarrelCheckCommand: Command {
    enum Check: Sendable {
        case missing
        case refresh(RunOptions)
    }

    let name: String
    let check: Check
    let global: GlobalOptions
    let context: CommandContext

    static let missing = CommandSpec(
        path: ["barrel", "missing"], summary: "print the members that are not complete",
        discussion: ["One URL a line. Exit status 1: at least one member is not complete."],
        operands: [OperandSpec("name", "the barrel")],
        examples: [.init("fk barrel missing photos", "what 'fk barrel run photos' has yet to fetch")],
        make: { arguments, context in
            try BarrelCheckCommand(
                name: BarrelArgument.check(arguments.operands[0], arguments), check: .missing,
                global: GlobalOptions(arguments, context), context: context)
        })

    static let refresh = CommandSpec(
        path: ["barrel", "refresh"], summary: "ask servers whether finished members have changed",
        discussion: [
            "Asks with conditional requests, and prints a line for each finished member: unchanged, changed or gone, and its "
                + "name. Changed files are fetched again; the old file stays until the new one is whole. Files that are gone "
                + "stay. Exit status 1: a server could not be asked, or a changed file could not be fetched."
        ],
        operands: [OperandSpec("name", "the barrel")], options: RunOptions.specs.filter { $0.long != "detach" },
        examples: [.init("fk barrel refresh photos", "fetch the photos that have changed")],
        make: { arguments, context in
            try BarrelCheckCommand(
                name: BarrelArgument.check(arguments.operands[0], arguments),
                check: .refresh(RunOptions(arguments, context)),
                global: GlobalOptions(arguments, context), context: context)
        })

    func run() async throws -> Int32 {
        let reader = try global.openReader()
        let ids = try reader.taskIDs(matching: .barrel(name))
        switch check {
        case .missing: return missing(reader, ids)
        case .refresh(let options): return try await refresh(ids, options)
        }
    }

    // MARK: Missing

    private func missing(_ reader: StoreReader, _ ids: [TaskID]) -> Int32 {
        var documents: [MissingDocument] = []
        var count = 0
        for start in stride(from: 0, to: ids.count, by: 256) {
            for record in reader.records(ids[start..<min(start + 256, ids.count)]) where record.state != .complete {
                count += 1
                if global.json {
                    documents.append(MissingDocument(record))
                } else {
                    context.output.writeLine(Escaping.visible(URLMasking.mask(record.task.url)))
                }
            }
        }
        if global.json { JSONOutput(context.output).document(documents) }
        return count == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }

    // MARK: Refreshing

    private func refresh(_ ids: [TaskID], _ options: RunOptions) async throws -> Int32 {
        TransportLibrary.prepare()
        let refresher = try FileRefresher(options.configure(global))
        var changed: [TaskID] = []
        var failures = 0
        await refresher.refresh(ids) { file in
            let name = URL(fileURLWithPath: file.path).lastPathComponent
            let result: String
            switch file.result {
            case .unchanged: result = "unchanged"
            case .gone: result = "gone"
            case .changed:
                result = "changed"
                changed.append(file.id)
            case .failed(let error):
                failures += 1
                context.errors.writeLine("fk: \(Escaping.visible("\(name): \(error.fullText)"))")
                return
            }
            if global.json {
                JSONOutput(context.output).line(
                    RefreshedDocument(name: name, url: URLMasking.mask(file.url), result: result))
            } else {
                context.output.writeLine(Escaping.visible("\(result) \(name)"))
            }
        }
        refresher.close()
        var status = failures == 0 ? ExitStatus.done : ExitStatus.taskFailed
        if !changed.isEmpty {
            var transfer = TransferRun(
                global: global, context: context, options: options, goal: .tasks(changed),
                requests: [.renew(changed.map { Renewal($0) })], continueCommand: global.suggested("fk run"))
            let end = try await transfer.run()
            if end != ExitStatus.done { status = end }
        }
        return status
    }
}

/// An element of `fk barrel missing --json`.
private struct MissingDocument: Encodable {
    let id: String
    let url: String
    let state: String

    init(_ record: TaskRecord) {
        id = record.id.hex
        url = URLMasking.mask(record.task.url)
        state = record.state.rawValue
    }
}

/// A line of `fk barrel refresh --json`.
private struct RefreshedDocument: Encodable {
    let name: String
    let url: String
    let result: String
}
