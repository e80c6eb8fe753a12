import FKCore
import FKMiddleware
import Foundation

/// `fk limit`: shows or changes the rate limit of all tasks or of a barrel.
struct LimitCommand: Command {
    enum Action: Sendable, Hashable {
        case show
        /// Bytes per second; nil for no limit.
        case set(Int64?)
    }

    let action: Action
    let barrel: String?
    /// The times of each day in which the limit applies; none for always.
    let daily: [DailyWindow]
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["limit"], summary: "show or change the current rate limit",
        discussion: [
            "The limit applies to all tasks of the work path together, or with -b to the members of a barrel. It takes "
                + "effect at once, also if another process runs the downloads, and lasts until it is changed. The lowest "
                + "of several limits applies; a new limit replaces the --limit-rate of running commands for these tasks.",
            "With --daily the limit applies only in that time of each day, by the local clock, in place of the limit of the other "
                + "times. Windows of other times stay. A limit without --daily removes all windows.",
        ],
        operands: [OperandSpec("RATE|none", "bytes a second, such as 500K or 1.5M; none or 0: no limit", 0, 1)],
        options: [
            .value("barrel", "b", "NAME", hint: .barrels, "the limit of this barrel's members"),
            .repeated(
                "daily", nil, "HH:MM-HH:MM",
                "only in this time of each day, such as 08:00-18:00 or 22:00-06:00; give it several times"),
        ],
        examples: [
            .init("fk limit 2M", "at most 2 MiB a second, everything together"),
            .init("fk limit 500K --daily 08:00-18:00", "at most 500 KiB a second by day"),
            .init("fk limit none -b photos", "lift the limit of a barrel"),
        ],
        make: { arguments, context in
            let command = try LimitCommand(
                action: action(arguments), barrel: arguments.barrel(), daily: arguments.daily(), context: context)
            guard !command.daily.isEmpty else { return command }
            if command.action == .show {
                throw arguments.error("--daily needs a rate: fk limit RATE --daily HH:MM-HH:MM.")
            }
            if command.barrel != nil {
                throw arguments.error("--daily and -b exclude each other: windows are for all tasks together.")
            }
            return command
        })

    private static func action(_ arguments: ParsedArguments) throws -> Action {
        guard let text = arguments.operands.first else { return .show }
        if text == "none" { return .set(nil) }
        var trial = ParsedArguments(command: arguments.command)
        trial.append(text, to: "rate")
        return .set(try trial.rate("rate", "RATE").flatMap { $0 > 0 ? $0 : nil })
    }

    func run() async throws -> Int32 {
        let answers = Answers(context)
        guard case .set(let rate) = action else { return answers.limits(try await report(answers), of: barrel) }
        return try await answers.answer(EngineMessage(.limit(rate: rate, barrel: barrel, daily: daily)))
    }

    /// The limits of a running engine, because only it knows those of other commands; else the stored ones.
    private func report(_ answers: Answers) async throws -> LimitsReport {
        let workPath = WorkPath(global.workPath)
        if let barrel { _ = try global.openReader().barrel(barrel) }
        guard workPath.exists else { return try LimitsReport(stored: workPath) }
        try workPath.open(create: false)
        if EngineLock.isHeld(workPath) {
            switch try await answers.perform(EngineMessage(.limits)) {
            case .limits(let report): return report
            case .failed(let error): throw error
            case .added, .verbs, .done, .count: break
            }
        }
        return try LimitsReport(stored: workPath)
    }
}

extension Answers {
    /// Shows the current limits, one per line; with a barrel's name only its own.
    func limits(_ report: LimitsReport, of barrel: String? = nil) -> Int32 {
        if let barrel {
            let rate = report.barrels.first { $0.name.isExactly(barrel) }?.rate
            return show([line("barrel \(barrel)", rate)], Self.document(barrel, rate))
        }
        var lines = [line("all tasks", report.rate) + (report.window.map { ", daily \($0.text)" } ?? "")]
        if let daily = report.daily {
            lines += daily.filter { $0 != report.window }.map { line("all tasks, daily \($0.text)", $0.rate) }
            if report.window != nil { lines.append(line("all tasks, at other times", report.rateOutside)) }
        }
        if let rate = report.configured { lines.append(line("all tasks, set by the application", rate)) }
        lines += report.barrels.map { line("barrel \($0.name)", $0.rate) }
        lines += report.commands.map { command in
            let jobs = command.jobs.map { ", \($0) at once" } ?? ""
            return line("\(command.tasks.plural("task")) of a running command", command.rate) + jobs
        }
        let commands = report.commands.map { command in
            JSON.members(["jobs": JSON(command.jobs), "rate": JSON(command.rate), "tasks": JSON(command.tasks)])
        }
        return show(
            lines,
            .members([
                "barrels": .array(report.barrels.map { Self.document($0.name, $0.rate) }),
                "commands": .array(commands), "configured": JSON(report.configured),
                "daily": .array(
                    (report.daily ?? []).map { .members(["rate": JSON($0.rate), "time": .string($0.text)]) }),
                "rate": JSON(report.rate), "window": JSON(report.window?.text),
            ]))
    }

    /// The limit of a barrel in bytes per second; null is no limit.
    private static func document(_ barrel: String, _ rate: Int64?) -> JSON {
        .members(["name": .string(barrel), "rate": JSON(rate)])
    }

    private func show(_ lines: [String], _ document: JSON) -> Int32 {
        if global.json {
            JSONOutput(context.output).document(document)
        } else {
            for line in lines { context.output.writeLine(line.visible) }
        }
        return ExitStatus.done
    }

    private func line(_ whose: String, _ rate: Int64?) -> String {
        "\(whose): \(rate.map { "at most \(Formatting.rate(Double($0)))" } ?? "no limit")"
    }
}

extension ParsedArguments {
    /// The values of `--daily`; none if it was not given.
    fileprivate func daily() throws -> [DailyWindow] {
        try all("daily").map { text in
            guard let window = DailyWindow(text) else {
                throw refusal("--daily", text, "the times of a day, such as 08:00-18:00 or 22:00-06:00")
            }
            return window
        }
    }
}
