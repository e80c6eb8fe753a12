import FKCore
import FKMiddleware

enum Shell: String, Sendable, CaseIterable {
    case bash
    case zsh
    case fish
}

/// What `fk completions` prints: a script, or the words for which a script asks.
enum CompletionTopic: String, Sendable, CaseIterable {
    case bash
    case zsh
    case fish
    case barrels
    /// The names of the tasks' files, each with its state and its id.
    case tasks
    /// The ids of the tasks, each with its state and its file's name.
    case ids
}

/// `fk completions bash|zsh|fish|barrels|tasks|ids [COMMAND]`
struct CompletionsCommand: Command {
    let topic: CompletionTopic
    /// Only tasks on which this command acts are offered; nil offers all.
    var command: String?
    let source: CompletionSource
    let context: CommandContext

    /// The most tasks that are offered, the newest ones. Nobody chooses among more.
    static let maxTasks = 200

    func run() async throws -> Int32 {
        switch topic {
        case .bash, .zsh, .fish: context.output.write(source.script(Shell(rawValue: topic.rawValue) ?? .bash))
        case .barrels: write(try reader()?.barrelNames() ?? [])
        case .tasks: write(try tasks { "\($1)\t\($0.state.shown) \($0.id.short)" })
        case .ids: write(try tasks { "\($0.id.short)\t\($0.state.shown) \($1)" })
        }
        return ExitStatus.done
    }

    private func reader() throws -> StoreReader? {
        WorkPath(global.workPath).exists ? try global.openReader() : nil
    }

    /// `part1.bin<Tab>complete 7db1ece609d2`, or the other way round; each word once.
    private func tasks(_ line: (TaskRecord, String) -> String) throws -> [String] {
        var newest: [(number: UInt64, line: String)] = []
        // No more records than that are kept.
        _ = try reader()?.records(where: { record in
            guard Self.acts(command, on: record.state) else { return false }
            newest.append((record.number, line(record, DownloadInfo(record).shownName)))
            if newest.count >= 4 * Self.maxTasks {
                newest.sort { $0.number > $1.number }
                newest.removeLast(newest.count - Self.maxTasks)
            }
            return false
        })
        var words: Set<Substring> = []
        return newest.sorted { $0.number > $1.number }.prefix(Self.maxTasks).map(\.line)
            .filter { words.insert($0.prefix { $0 != "\t" }).inserted }
    }

    /// True if the command does something to a task in this state. Commands that only show tasks act on all.
    static func acts(_ command: String?, on state: DownloadState) -> Bool {
        switch command {
        case "toggle": return state.toggleVerb != nil
        case "verify": return state == .complete
        case "relink": return state != .complete
        case "run": return state != .complete && state != .suspend
        default:
            return command.flatMap(Verb.init(rawValue:))?.applies(in: state) ?? true
        }
    }

    private func write(_ lines: [String]) {
        for line in lines {
            let parts = line.split(separator: "\t", maxSplits: 1).map { String($0).visible }
            context.output.writeLine(parts.joined(separator: "\t"))
        }
    }
}

/// The table of commands in the form that the three scripts need.
struct CompletionSource: Sendable {
    var commands: [CommandSpec]
    var globalOptions: [OptionSpec]

    /// Every option of any command once, as the first command has it. Its values may differ in others.
    var allOptions: [OptionSpec] {
        var seen: Set<String> = []
        return (globalOptions + commands.flatMap(\.options)).filter { seen.insert($0.long).inserted }
    }

    /// The prefixes of command names that another word follows: `""`, `barrel`, `config`.
    var groups: [[String]] {
        var seen: Set<[String]> = []
        return ([[]] + commands.filter { $0.path.count > 1 }.map { Array($0.path.dropLast()) })
            .filter { seen.insert($0).inserted }
    }

    /// The words that may follow a prefix, with their summaries.
    func next(in group: [String]) -> [(word: String, summary: String)] {
        var seen: Set<String> = []
        return commands.filter { $0.path.starts(with: group) && $0.path.count > group.count }
            .map { spec in
                let word = spec.path[group.count]
                let isLeaf = spec.path.count == group.count + 1
                return (word, isLeaf ? spec.summary : "commands of \(word)")
            }
            .filter { seen.insert($0.word).inserted }
    }

    func script(_ shell: Shell) -> String {
        switch shell {
        case .bash: BashCompletion(source: self).script
        case .zsh: ZshCompletion(source: self).script
        case .fish: FishCompletion(source: self).script
        }
    }

    /// `-d` and `--directory`.
    static func spellings(_ option: OptionSpec) -> [String] {
        (option.short.map { ["-\($0)"] } ?? []) + ["--\(option.long)"]
    }
}
