import FKCore
import FKMiddleware

/// `fk barrel publish`: the files of a barrel appear together in a folder.
struct BarrelPublishCommand: Command {
    let name: String
    let folder: String
    let durability: Configure.Durability
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["barrel", "publish"], summary: "make the files of a barrel appear together in a folder",
        discussion: [
            "DIR has no set, the old one or the whole new one, at every moment, also if fk is killed. All members have to be complete. Their "
                + "files stay where they are: those in DIR share their blocks or are hard links to them, and are copied only where neither "
                + "is possible. Do not write into them.",
            "DIR is missing, empty, or was published from this barrel; links in it are followed. The old set is exchanged with the new one and removed. Other files in it "
                + "stay there; if the new set has a file of that name, or the files of the set were changed, nothing is done. What a killed "
                + "fk has left beside DIR is removed when the barrel is next published or the work path is next used for downloads.",
            "On a file system that cannot exchange folders, DIR is missing for a moment between two renames. Exit status 1: nothing was "
                + "published.",
        ],
        operands: [
            OperandSpec("name", "the barrel", hint: .barrels), OperandSpec("dir", "the folder", hint: .directory),
        ],
        options: [
            .value(
                "durability", nil, "KIND", hint: .choices(Configure.Durability.allCases.map(\.rawValue)),
                "what DIR survives: the end of processes (process, the default), or a power cut, too (power)")
        ],
        examples: [
            .init("fk barrel publish model /srv/model", "the new version, with one rename"),
            .init("fk barrel sync pub && fk barrel publish pub /srv/pub", "a mirror whose readers see whole versions"),
        ],
        make: { arguments, context in
            let folder = arguments.operands[1]
            guard !folder.isEmpty else { throw arguments.error("The folder's name is empty.") }
            return try BarrelPublishCommand(
                name: arguments.namedBarrel(), folder: Paths.absolute(folder, from: context.workingDirectory),
                durability: arguments.choice("durability", "--durability", of: Configure.Durability.self) ?? .process,
                context: context)
        })

    func run() async throws -> Int32 {
        let workPath = try global.openReader().workPath
        let word = name.shellWord
        try global.refuseDivided(name) { _ in
            "To publish its files, take them into another work path: \(global.suggested("fk barrel export \(word) --format lock")) > LOCK, "
                + "then fk get -b \(word) -i LOCK --skip -d DIR --work-path OTHER, with the folder of the files, and publish there."
        }
        let result: PublishedFiles
        do {
            result = try workPath.publish(name, to: folder, durability: durability)
        } catch let error as DownloadError where error.code == .incompleteBody {
            throw CommandFailure(
                error.message + " To download or compare them: "
                    + global.suggested("fk barrel run", [name]),
                status: ExitStatus.taskFailed)
        } catch let error as DownloadError where error.code == .workPathBusy || error.code == .noSpace {
            throw CommandFailure(error.fullText, status: ExitStatus.taskFailed)
        }
        if global.json {
            JSONOutput(context.output).line(
                .members([
                    "changed": .bool(result.isChanged), "cloned": .integer(Int64(result.cloned)),
                    "copied": .integer(Int64(result.copied)), "directory": .string(folder),
                    "files": .integer(Int64(result.total)),
                    "kept": .integer(Int64(result.kept)), "linked": .integer(Int64(result.linked)),
                    "name": .string(name),
                    "oldRemoved": .bool(result.isOldRemoved), "reused": .integer(Int64(result.reused)),
                    "version": .string(result.version),
                ]))
        } else if !global.quiet {
            context.output.writeLine((result.isChanged ? published(result) : same(result)).visible)
        }
        warn(result)
        return ExitStatus.done
    }

    private func warn(_ result: PublishedFiles) {
        if let first = result.renamed.first {
            let others = result.renamed.count > 1 ? ", and \(result.renamed.count - 1) more have other names" : ""
            let reason = result.base.map { ", because the files' common folder is now \($0)" } ?? ""
            context.warn("\(first.old) is now \(first.new)\(others)\(reason).")
        }
        if let former = result.formerFolder {
            context.warn(
                "\(name) was published to \(former) before. fk knows only the last folder, so it no longer counts, updates or deletes "
                    + "\(former): delete it if you do not need it.")
        }
        for file in result.hidden {
            context.warn(
                "another program replaced a file while \(folder) was published, and the file cannot be moved there: \(file). Move it "
                    + "yourself.")
        }
        if !result.isOldRemoved, result.hidden.isEmpty {
            context.warn(
                "the old set is still in use, or cannot be deleted: it stays hidden beside \(folder). The next publish, run or trim tries "
                    + "again.")
        }
    }

    private func same(_ result: PublishedFiles) -> String {
        "\(folder) has version \(result.version) of \(name) already"
    }

    private func published(_ result: PublishedFiles) -> String {
        let ways = [
            (result.reused, "reused"), (result.cloned, "cloned"), (result.linked, "linked"), (result.copied, "copied"),
            (result.kept, "kept"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return "\(folder): version \(result.version) of \(name), \(result.total.plural("file")) ("
            + ways.joined(separator: ", ") + ")"
    }
}
