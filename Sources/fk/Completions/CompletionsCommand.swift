/// A shell with completions.
enum Shell: String, Sendable, CaseIterable {
    case bash
    case zsh
    case fish
}

/// `fk completions bash|zsh|fish`
struct CompletionsCommand: Command {
    let shell: Shell
    let output: OutputStream

    func run() async throws -> Int32 {
        output.write(Self.script(shell))
        return ExitStatus.done
    }

    static func script(_ shell: Shell) -> String {
        let source = CompletionSource(commands: CommandTable.all, globalOptions: CommandTable.globalOptions)
        return switch shell {
        case .bash: BashCompletion(source: source).script
        case .zsh: ZshCompletion(source: source).script
        case .fish: FishCompletion(source: source).script
        }
    }
}

/// The table of commands in the form that the three scripts need.
struct CompletionSource: Sendable {
    var commands: [CommandSpec]
    var globalOptions: [OptionSpec]

    /// Every option of any command once. An option has the same meaning in every command.
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

    /// `-d` and `--directory`.
    static func spellings(_ option: OptionSpec) -> [String] {
        (option.short.map { ["-\($0)"] } ?? []) + ["--\(option.long)"]
    }
}
