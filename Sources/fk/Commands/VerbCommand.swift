import FKCore
import FKMiddleware
import Foundation

/// `fk suspend|resume|cancel|retry|trash`, also for a barrel.
struct VerbCommand: Command {
    let verb: Verb
    let targets: VerbTargets
    let isConfirmed: Bool
    let global: GlobalOptions
    let context: CommandContext

    /// The tasks named on the command line.
    enum VerbTargets: Sendable {
        case all
        case tasks([TaskReference])
        case barrel(String)
    }

    func run() async throws -> Int32 {
        let selectors = try selectors()
        if verb == .trash, !isConfirmed {
            let count = try count()
            if count > 0, try !Confirmation(context).ask(question(count)) {
                throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
            }
        }
        let client = EngineClient.reportingSilence(Configure(workPath: URL(fileURLWithPath: global.workPath)), context)
        return try await client.verbs(selectors.map { .verb(verb, $0) }, Answers(global, context))
    }

    private func selectors() throws -> [TaskSelector] {
        switch targets {
        case .all: [.all]
        case .barrel(let name): [.barrel(name)]
        case .tasks(let references): try references.map { try $0.selector(in: global) }
        }
    }

    /// The number of tasks; if there are none, no confirmation is necessary.
    ///
    /// - Throws: `.notFound` if a name matches nothing.
    private func count() throws -> Int {
        switch targets {
        case .all: return WorkPath(global.workPath).allTaskIDs().count
        case .barrel(let name): return try global.openReader().barrel(name).members.count
        case .tasks(let references):
            let reader = try global.openReader()
            return Set(try references.flatMap { try $0.records(reader).map(\.id) }).count
        }
    }

    private func question(_ count: Int) -> String {
        let tasks = count == 1 ? "1 task" : "all \(count) tasks"
        return switch targets {
        case .all: "Forget \(tasks) and delete every file written?"
        case .barrel(let name): "Forget \(tasks) of barrel \(name) and delete every file written?"
        case .tasks: "Forget \(count == 1 ? "this task" : "\(count) tasks") and delete the files?"
        }
    }
}

extension TaskReference {
    /// The selector for the engine.
    ///
    /// - Throws: `.notFound` for an id without a task.
    func selector(in global: GlobalOptions) throws -> TaskSelector {
        switch self {
        case .url(let text): .url(try URLNormalizer.normalize(text))
        case .idPrefix(let prefix): .id(try global.openReader().record(idPrefix: prefix).id)
        }
    }

    /// The records of the tasks, at least one.
    ///
    /// - Throws: `.notFound`.
    func records(_ reader: StoreReader) throws -> [TaskRecord] {
        switch self {
        case .idPrefix(let prefix): return [try reader.record(idPrefix: prefix)]
        case .url(let text):
            let url = try URLNormalizer.normalize(text)
            let records = reader.records(url: url)
            if records.isEmpty {
                throw DownloadError(.notFound, "There is no task of that URL.", url: URLMasking.mask(url))
            }
            return records
        }
    }
}

/// Asks for confirmation before something is deleted.
struct Confirmation {
    private let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    /// True if standard input is a terminal.
    static var isPossible: Bool { isatty(0) == 1 }

    /// Asks and returns the answer.
    ///
    /// - Throws: `CommandFailure` if standard input is not a terminal.
    func ask(_ question: String) throws -> Bool {
        guard Self.isPossible else {
            throw CommandFailure(
                "\(question) Refusing to delete without confirmation; pass --yes.", status: ExitStatus.usage)
        }
        context.errors.write("\(Escaping.visible(question)) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
