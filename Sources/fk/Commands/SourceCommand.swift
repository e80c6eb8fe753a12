import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk source`: the programs of a work path that list the files of places.
struct SourceCommand: Command {
    enum Action: Sendable, Hashable {
        case list
        case add(SourceProgram)
        case remove(String)
        case trust
        case test(String, include: [String], exclude: [String], TaskOptions)
    }

    let action: Action
    let context: CommandContext

    func run() async throws -> Int32 {
        switch action {
        case .list: return try list()
        case .add(let program): return try add(program)
        case .remove(let scheme):
            try change { try $0.remove(scheme: scheme) }
            say("\(scheme) removed")
        case .trust:
            var schemes: [String] = []
            try change { schemes = $0.trust() }
            say(schemes.isEmpty ? "every program may run already" : "may run now: \(schemes.joined(separator: ", "))")
        case .test(let text, let include, let exclude, let options):
            return try await test(text, include, exclude, options)
        }
        return ExitStatus.done
    }

    private func say(_ text: String) {
        if global.json {
            JSONOutput(context.output).line(.members(["done": true, "note": .string(text)]))
        } else if !global.quiet {
            context.output.writeLine(text.visible)
        }
    }

    private func change(_ change: (inout SourceProgram.List) throws -> Void) throws {
        let workPath = global.place
        try workPath.open(create: true)
        try SourceProgram.List.change(in: workPath, change)
    }

    private func add(_ program: SourceProgram) throws -> Int32 {
        var isNew = false
        try change { isNew = try $0.add(program) }
        say(isNew ? "\(program.scheme) added" : "\(program.scheme) is there already")
        // The program may come later, so a missing one is no error.
        do throws(DownloadError) { _ = try program.locate() } catch {
            context.warn("\(program.scheme): \(error.message). Its places cannot be listed until it can run.")
        }
        return ExitStatus.done
    }

    private func programs() throws -> SourceProgram.List {
        let workPath = global.place
        if workPath.exists { try workPath.open(create: false) }
        return try SourceProgram.List(in: workPath)
    }

    // MARK: Listing

    private func list() throws -> Int32 {
        let list = try programs()
        let untrusted = list.programs.filter { !list.isTrusted($0) }.map(\.scheme)
        if global.json {
            let documents = list.programs.map { program in
                JSON.members([
                    "directory": .string(program.directory), "program": JSON(program.arguments),
                    "scheme": .string(program.scheme), "timeLimit": JSON(program.timeLimit.inSeconds),
                    "trusted": .bool(!untrusted.contains(program.scheme)),
                ])
            }
            JSONOutput(context.output).document(.array(documents))
            return ExitStatus.done
        }
        guard !list.programs.isEmpty else {
            if !global.quiet {
                context.errors.writeLine(
                    "No source programs. The schemes that need none: \(SourceRegistry().schemes.joined(separator: ", "))."
                )
            }
            return ExitStatus.done
        }
        var table = TableWriter([
            .init("SCHEME"), .init("LIMIT", alignsRight: true), .init("PROGRAM", isFlexible: true),
        ])
        for program in list.programs {
            table.add([
                .init(program.scheme), .init("\(Int(program.timeLimit.inSeconds.rounded(.up))) s"),
                .init(program.arguments.map(\.shellWord).joined(separator: " ")),
            ])
        }
        table.write(context)
        if !untrusted.isEmpty {
            context.warn(
                "This work path came from elsewhere (copied, restored or moved), so that \(untrusted.joined(separator: ", ")) "
                    + "\(untrusted.count == 1 ? "is" : "are") not run. Look at the programs above, then let them run with: "
                    + global.suggested("fk source trust"))
        }
        return ExitStatus.done
    }

    // MARK: Trying

    /// Lists a place of any source, and fetches nothing.
    private func test(
        _ text: String, _ include: [String], _ exclude: [String], _ options: TaskOptions
    ) async throws -> Int32 {
        ReadingTrap.set(context)
        guard let place = try ListedPlace(text, in: SourceImport.registry(context), context.environment) else {
            throw CommandFailure(
                "'\(text.visible)' is no place of a source: write SCHEME:REST.", status: ExitStatus.usage)
        }
        let transport = try PacedTransport(global.configure, onWait: context.tellWait)
        defer { transport.shutdown() }
        var count = 0
        var bytes: Int64 = 0
        let list = try await place.files(include: include, exclude: exclude, options, over: transport) {
            files, _ in
            for file in files {
                count += 1
                bytes += file.size ?? 0
                show(file)
            }
        }
        for fault in list.faults { context.errors.writeLine("fk: \(fault.reason.visible)") }
        for note in list.notes where !global.quiet { context.errors.writeLine("fk: \(note).".visible) }
        if list.faultCount > list.faults.count {
            context.errors.writeLine("fk: and \((list.faultCount - list.faults.count).plural("more fault"))")
        }
        if !global.quiet, !global.json {
            let version = list.commit.map { ", version \($0)" } ?? ""
            context.errors.writeLine("\(count.plural("file")), \(Formatting.bytes(bytes))\(version)".visible)
        }
        return list.faultCount > 0 || list.isIncomplete ? ExitStatus.taskFailed : ExitStatus.done
    }

    private func show(_ file: Manifest.FileFacts) {
        let url = (file.sources.first?.url ?? "").masked
        let name = file.name ?? ""
        guard global.json else {
            return context.output.writeLine("\(file.size.map(String.init) ?? "-") \(name) \(url)".visible)
        }
        JSONOutput(context.output).line(
            .members(
                [
                    "checksum": JSON(file.checksum?.description), "name": .string(name), "size": JSON(file.size),
                    "url": .string(url), "version": JSON(file.version),
                ], omittingNull: true))
    }
}
