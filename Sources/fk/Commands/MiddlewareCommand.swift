import FKCore
import FKMiddleware
import Foundation

/// `fk middleware`: the programs in the middleware chains of a work path.
struct MiddlewareCommand: Command {
    enum Action: Sendable, Hashable {
        case list
        case add(MiddlewareProgram)
        case remove(String)
        case trust
        case test(String, url: String)
    }

    let action: Action
    let context: CommandContext

    func run() async throws -> Int32 {
        switch action {
        case .list: return list(try programs())
        case .trust: return try await Answers(context).answer(EngineMessage(.trustPrograms))
        case .add(let program):
            let status = try await Answers(context).answer(EngineMessage(.addProgram(program)))
            if status == ExitStatus.done { warn(about: program) }
            return status
        case .remove(let name): return try await Answers(context).answer(EngineMessage(.removeProgram(name: name)))
        case .test(let name, let url): return try await test(name, url)
        }
    }

    private func programs() throws -> MiddlewareProgram.List {
        let workPath = global.place
        guard workPath.exists else { return MiddlewareProgram.List() }
        try workPath.open(create: false)
        return try MiddlewareProgram.List(in: workPath)
    }

    /// The program or its barrel may come later, so a missing one is no error.
    private func warn(about program: MiddlewareProgram) {
        if let barrel = program.barrel, !global.place.hasBarrel(barrel) {
            context.warn("\(program.name): there is no barrel named \"\(barrel)\". The program runs once there is one.")
        }
        do throws(DownloadError) { _ = try program.locate() } catch {
            context.warn("\(program.name): \(error.message). Tasks that need it fail until it can run.")
        }
    }

    // MARK: Listing

    private func list(_ list: MiddlewareProgram.List) -> Int32 {
        let untrusted = list.untrusted(in: global.place).map(\.name)
        if global.json {
            let documents = list.programs.map { program in
                // The time limit is in seconds, and the program has its arguments.
                JSON.members([
                    "barrel": JSON(program.barrel), "directory": .string(program.directory),
                    "name": .string(program.name), "priority": JSON(program.priority),
                    "program": JSON(program.arguments),
                    "stage": .string(program.stage.rawValue), "timeLimit": JSON(program.timeLimit.inSeconds),
                    "trusted": .bool(!untrusted.contains(program.name)),
                ])
            }
            JSONOutput(context.output).document(.array(documents))
            return ExitStatus.done
        }
        guard !list.programs.isEmpty else {
            if !global.quiet { context.errors.writeLine("No middleware programs.") }
            return ExitStatus.done
        }
        var table = TableWriter([
            .init("NAME"), .init("STAGE"), .init("PRIORITY", alignsRight: true), .init("BARREL"),
            .init("LIMIT", alignsRight: true), .init("PROGRAM", isFlexible: true),
        ])
        for program in list.programs {
            table.add([
                .init(program.name), .init(program.stage.rawValue), .init("\(program.priority)"),
                .init(program.barrel ?? ""), .init(Self.seconds(program.timeLimit)),
                .init(program.arguments.map(\.shellWord).joined(separator: " ")),
            ])
        }
        table.write(context)
        if !untrusted.isEmpty {
            context.warn(
                "This work path came from elsewhere (copied, restored or moved), so that \(untrusted.joined(separator: ", ")) "
                    + "\(untrusted.count == 1 ? "is" : "are") not run, and the tasks fail. Look at the programs above, then let them "
                    + "run with: \(global.suggested("fk middleware trust"))")
        }
        return ExitStatus.done
    }

    private static func seconds(_ duration: Duration) -> String {
        let seconds = duration.inSeconds
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
    }

    // MARK: Trying

    private func test(_ name: String, _ url: String) async throws -> Int32 {
        guard let program = try programs()[name] else { throw MiddlewareProgram.List.missing(name) }
        guard let address = URL(string: url) else {
            throw DownloadError(.invalidURL, "\(url.masked) is not a URL.")
        }
        let record = try StoreReader(global.place).records(url: url).first
        let task = TaskContext(
            id: record?.id ?? TaskDescription(url: url).id, originalURL: address,
            attempt: record.map { max(1, $0.attempts) } ?? 1,
            barrels: record?.barrels ?? [], attributes: record?.task.attributes ?? [:])
        guard program.stage == .response else {
            return show(try await program.tried(task), of: program)
        }
        let folder = try ScratchFolder.make("fk-middleware", context)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let place = record?.state == .complete ? record?.path : nil
        let file =
            "\(folder)/\(place.map { URL(fileURLWithPath: $0).lastPathComponent } ?? FileNameRules.name(url: url, head: nil))"
        if let place {
            try FileManager.default.copyItem(atPath: place, toPath: file)
        } else {
            try Data().write(to: URL(fileURLWithPath: file))
            if !global.quiet {
                context.errors.writeLine("No finished file of this URL: the program gets an empty one.")
            }
        }
        return show(try await program.tried(task, file: file), of: program)
    }

    private func show(_ trial: MiddlewareProgram.Trial, of program: MiddlewareProgram) -> Int32 {
        if global.json {
            let headers = trial.headers.sorted { $0.key < $1.key }.map { JSON.Member($0.key, JSON($0.value)) }
            JSONOutput(context.output).document(
                .members([
                    "headers": .object(headers), "name": .string(program.name), "path": JSON(trial.path),
                    "reason": JSON(trial.reason), "result": .string(trial.result.rawValue),
                    "stage": .string(program.stage.rawValue), "url": JSON(trial.url),
                ]))
        } else {
            for line in Self.lines(trial, program.name) { context.output.writeLine(line.visible) }
        }
        return trial.result == .accept ? ExitStatus.done : ExitStatus.taskFailed
    }

    private static func lines(_ trial: MiddlewareProgram.Trial, _ name: String) -> [String] {
        let reason = trial.reason ?? ""
        switch trial.result {
        case .accept:
            var lines = trial.url.map { ["  url: \($0)"] } ?? []
            for (header, length) in trial.headers.sorted(by: { $0.key < $1.key }) {
                lines.append("  header \(header): \(length.map { $0.plural("character") } ?? "removed")")
            }
            if let path = trial.path { lines.append("  path: \(path)") }
            return ["\(name) accepts" + (lines.isEmpty ? " and changes nothing" : "")] + lines
        case .retry: return ["\(name) asks for a retry: \(reason)"]
        case .reject: return ["\(name) refuses: \(reason)"]
        case .broken: return ["\(name) \(reason)"]
        }
    }
}
