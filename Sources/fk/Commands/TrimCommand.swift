import FKCore
import FKMiddleware
import Foundation

/// `fk trim`: deletes finished files until the rest fits.
struct TrimCommand: Command {
    /// The bytes that may stay.
    let limit: Int64
    let order: TrimOrder
    let isConfirmed: Bool
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["trim"], summary: "delete finished files until the rest fits",
        discussion: [
            "Deletes files that fk has written and nobody has changed: a barrel with its published set as a whole, and the files of other "
                + "tasks one by one. The tasks stay, so 'fk barrel run' or the same 'fk get' fetches the files again. Barrels that are in use "
                + "stay: with members that wait or are being fetched, or held by an application. A published set stays if it has a file "
                + "that no member of the barrel would fetch again.",
            "With --disk-budget, 'fk get' and 'fk run' do the same before a file that would not fit. Exit status 1: more than SIZE is "
                + "left.",
        ],
        options: [
            .value(
                "to", nil, "SIZE", "bytes that the files may use afterwards (default: the saved disk-budget); 0: none"),
            .value(
                "by", nil, "ORDER", hint: .choices(Order.allCases.map(\.rawValue)),
                "what goes first: the least recently used (used, the default), or the largest (size)"),
            .flag("yes", "y", "delete without asking"),
        ],
        examples: [
            .init("fk trim --to 20G", "the least recently used files go until 20 GiB are left"),
            .init("fk trim --to 0 --yes", "every finished file goes, without a question"),
        ],
        make: { arguments, context in
            TrimCommand(
                limit: try limit(arguments, context),
                order: try arguments.choice("by", "--by", of: Order.self)?.order ?? .lastUsed,
                isConfirmed: arguments.has("yes"), context: context)
        })

    /// The words of `--by`.
    private enum Order: String, CaseIterable {
        case used
        case size

        var order: TrimOrder { self == .used ? .lastUsed : .size }
    }

    private static func limit(_ arguments: ParsedArguments, _ context: CommandContext) throws -> Int64 {
        if let size = try arguments.size("to", "--to", atLeast: 0) { return size }
        var saved = ParsedArguments(command: arguments.command)
        if let text = try Settings.read(workPath: context.global.workPath)["disk-budget"] {
            saved.append(text, to: "disk-budget")
        }
        if let size = try RunOption.orders(saved, context).diskBudget { return size }
        throw arguments.error("--to SIZE is missing: no disk-budget is saved ('fk config set disk-budget SIZE').")
    }

    func run() async throws -> Int32 {
        let question =
            limit == 0
            ? "Delete every finished file?" : "Delete finished files until at most \(Formatting.bytes(limit)) are left?"
        if !isConfirmed, try !Confirmation(context).ask(question) {
            throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
        }
        let place = global.place
        guard place.exists else { return show(TrimmedFiles()) }
        try place.open(create: false)
        return show(try place.trim(to: limit, by: order))
    }

    private static let namedFailures = 20

    private func show(_ trimmed: TrimmedFiles) -> Int32 {
        let isEnough = trimmed.usedBytes <= limit
        for failure in trimmed.failures.prefix(Self.namedFailures) { context.warn(failure.message) }
        if trimmed.failures.count > Self.namedFailures {
            context.warn("\(trimmed.failures.count - Self.namedFailures) more could not be deleted.")
        }
        if global.json {
            JSONOutput(context.output).document(trimmed.document)
        } else {
            if !global.quiet {
                for barrel in trimmed.barrels { context.output.writeLine("barrel \(barrel)".visible) }
                for folder in trimmed.folders { context.output.writeLine("folder \(folder.path)".visible) }
                for file in trimmed.files { context.output.writeLine(file.path.visible) }
            }
            let names = trimmed.inUse.isEmpty ? "" : "; in use: \(trimmed.inUse.joined(separator: ", "))"
            if !global.quiet || !isEnough {
                context.errors.writeLine(
                    ("\(Formatting.bytes(trimmed.freedBytes)) freed, \(Formatting.bytes(trimmed.usedBytes)) in finished files"
                        + "\(isEnough ? "" : names).").visible)
            }
        }
        return isEnough ? ExitStatus.done : ExitStatus.taskFailed
    }
}

extension TrimmedFiles {
    /// `freed`, `used`, `barrels`, `folders`, `files` and `inUse`.
    fileprivate var document: JSON {
        .members([
            "barrels": .array(barrels.map { .string($0) }), "files": .array(files.map { .string($0.path) }),
            "folders": .array(folders.map { .string($0.path) }), "freed": JSON(freedBytes),
            "inUse": .array(inUse.map { .string($0) }), "used": JSON(usedBytes),
        ])
    }
}
