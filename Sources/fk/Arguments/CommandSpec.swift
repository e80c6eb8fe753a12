/// The values that the shell offers for Tab.
enum CompletionHint: Sendable, Hashable {
    case none
    case file
    case directory
    case choices([String])
    /// The names of barrels, which `fk` itself prints.
    case barrels
    /// The ids of tasks, which `fk` itself prints.
    case tasks
}

/// One option of a command. The parser, the help and the completions read the same table.
struct OptionSpec: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// Takes no value.
        case flag
        /// Takes one value; the last one counts.
        case value
        /// Takes one value each time and keeps all of them in order.
        case repeated
        /// Takes the next word only if that is the name of a run (`RunName`); else it is a flag.
        case run

        /// True if the next word always belongs to the option.
        var takesNextWord: Bool { self == .value || self == .repeated }
    }

    /// The name without its dashes: `limit-rate`.
    var long: String
    /// The one-letter form: `d`.
    var short: Character?
    /// The name of the value in the help: `DIR`. Empty for a flag.
    var valueName: String
    var kind: Kind
    /// One sentence without a full stop, for the help and the completions.
    var help: String
    var hint: CompletionHint
    /// Options with the same non-empty group exclude each other.
    var group: String
    var topic = OptionTopic.general

    static func flag(_ long: String, _ short: Character? = nil, group: String = "", _ help: String) -> Self {
        Self(long: long, short: short, valueName: "", kind: .flag, help: help, hint: .none, group: group)
    }

    static func value(
        _ long: String, _ short: Character? = nil, _ valueName: String, hint: CompletionHint = .none, _ help: String
    ) -> Self {
        Self(long: long, short: short, valueName: valueName, kind: .value, help: help, hint: hint, group: "")
    }

    static func repeated(
        _ long: String, _ short: Character? = nil, _ valueName: String, hint: CompletionHint = .none, _ help: String
    ) -> Self {
        Self(long: long, short: short, valueName: valueName, kind: .repeated, help: help, hint: hint, group: "")
    }

    /// The option `--run`, with or without the name of a run.
    static func run(_ help: String) -> Self {
        Self(long: "run", short: nil, valueName: "[RUN]", kind: .run, help: help, hint: .none, group: "")
    }

    static func under(_ topic: OptionTopic, _ options: [Self]) -> [Self] {
        options.map { option in
            var option = option
            option.topic = topic
            return option
        }
    }

    /// The usual spelling: `-d` if there is a short form, else `--limit-rate`.
    var shownName: String { short.map { "-\($0)" } ?? "--\(long)" }

    /// The spelling in the help: `-d, --directory DIR`.
    var signature: String {
        let names = short.map { "-\($0), --\(long)" } ?? "    --\(long)"
        return valueName.isEmpty ? names : "\(names) \(valueName)"
    }
}

/// An operand of a command: `<url>...`.
struct OperandSpec: Sendable, Hashable {
    var name: String
    var help: String
    /// The minimum number, and the maximum (nil for any number).
    var minimum: Int
    var maximum: Int?
    var hint: CompletionHint

    init(_ name: String, _ help: String, _ minimum: Int = 1, _ maximum: Int? = 1, hint: CompletionHint = .none) {
        self.name = name
        self.help = help
        self.minimum = minimum
        self.maximum = maximum
        self.hint = hint
    }

    /// `<url>`, `<url>...`, `[<url>...]`.
    var shown: String {
        let many = maximum == 1 ? "<\(name)>" : "<\(name)>..."
        return minimum == 0 ? "[\(many)]" : many
    }
}

struct CommandSpec: Sendable {
    struct Example: Sendable, Hashable {
        var line: String
        var meaning: String
        init(_ line: String, _ meaning: String) {
            self.line = line
            self.meaning = meaning
        }
    }

    /// The words of the command: `["barrel", "create"]`.
    var path: [String]
    /// Other names of a command of one word.
    var aliases: [String] = []
    /// One line without a full stop, for the overview.
    var summary: String
    /// More paragraphs for the help, which wraps them.
    var discussion: [String] = []
    /// The operands in order. Only the last one may repeat.
    var operands: [OperandSpec] = []
    /// The command's own options. Those of every command are in `CommandTable.globalOptions`.
    var options: [OptionSpec] = []
    /// The long names of options of every command that this one refuses.
    var refusedOptions: Set<String> = []
    var examples: [Example] = []
    /// False if saved settings do not replace missing options.
    var usesSettings = true
    /// False for a command that runs whatever the work path contains. The saved bases are not read then.
    var usesWorkPath = true
    /// Creates the command from its arguments and checks every value.
    var make: @Sendable (ParsedArguments, CommandContext) throws -> any Command

    var name: String { path.joined(separator: " ") }

    /// `Also: fk ls, fk status`; nil without aliases.
    var aliasText: String? {
        aliases.isEmpty ? nil : "Also: " + aliases.map { "fk \($0)" }.joined(separator: ", ")
    }

    /// `fk barrel add [options] <name> <url>...`
    var usage: String {
        (["fk"] + path + (options.isEmpty ? [] : ["[options]"]) + operands.map(\.shown)).joined(separator: " ")
    }
}
