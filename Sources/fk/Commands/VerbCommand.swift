import FKCore
import FKMiddleware
import Foundation

/// `fk suspend|resume|cancel|retry|trash`, also over a barrel.
struct VerbCommand: Command {
    let verb: Verb
    let targets: VerbTargets
    let isConfirmed: Bool
    let global: GlobalOptions
    let context: CommandContext

    /// What was named on the command line.
    enum VerbTargets: Sendable {
        case all
        case tasks([TaskReference])
        case barrel(String)
    }

    func run() async throws -> Int32 {
        let selectors = try selectors()
        if verb == .trash, !isConfirmed, try !Confirmation(context).ask(question(selectors)) {
            throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
        }
        let client = EngineClient(configure: Configure(workPath: URL(fileURLWithPath: global.workPath)))
        return try await client.verbs(selectors.map { .verb(verb, $0) }, Answers(global, context))
    }

    private func selectors() throws -> [TaskSelector] {
        switch targets {
        case .all: [.all]
        case .barrel(let name): [.barrel(name)]
        case .tasks(let references): try references.map { try $0.selector(in: global) }
        }
    }

    private func question(_ selectors: [TaskSelector]) -> String {
        switch targets {
        case .all: "Forget all tasks and delete every file they wrote?"
        case .barrel(let name): "Forget all tasks of barrel \(name) and delete every file they wrote?"
        case .tasks: "Forget \(selectors.count == 1 ? "this task" : "\(selectors.count) tasks") and delete the files?"
        }
    }
}

extension TaskReference {
    /// What the engine understands.
    ///
    /// - Throws: `.notFound` for an id that no task has.
    func selector(in global: GlobalOptions) throws -> TaskSelector {
        switch self {
        case .url(let text): .url(try URLNormalizer.normalize(text))
        case .idPrefix(let prefix): .id(try global.openReader().record(idPrefix: prefix).id)
        }
    }

    /// The records it names, at least one.
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

/// Asks a person before something is deleted.
struct Confirmation {
    private let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    /// - Throws: when nobody can be asked, because standard input is no terminal.
    func ask(_ question: String) throws -> Bool {
        guard isatty(0) == 1 else {
            throw CommandFailure("\(question) Nobody can be asked here: give --yes.", status: ExitStatus.usage)
        }
        context.errors.write("\(Escaping.visible(question)) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
