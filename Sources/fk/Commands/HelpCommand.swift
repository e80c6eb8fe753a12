import FKCore
import FKMiddleware

/// `fk help [command]` and `-h`.
struct HelpCommand: Command {
    let topic: [String]
    let context: CommandContext

    /// Creates the command for a topic, which is empty for the overview.
    ///
    /// - Throws: `UsageError` if there is no such command.
    init(topic: [String], context: CommandContext) throws {
        let topic = CommandTable.resolvingAlias(topic)
        let known = CommandTable.commands(under: topic)
        guard !known.isEmpty else {
            let names = CommandTable.all.map(\.name) + Set(CommandTable.all.map { $0.path[0] }).sorted()
            let guess = Suggestion.nearest(to: topic.joined(separator: " "), among: names)
            throw UsageError(
                "There is no command '\(topic.joined(separator: " ").visible)'."
                    + (guess.map { " Did you mean '\($0)'?" } ?? ""))
        }
        self.topic = topic
        self.context = context
    }

    func run() async throws -> Int32 {
        let terminal = context.outputTerminal(global.color)
        var text = HelpText(usesColor: terminal.usesColor)
        if terminal.isTerminal { text.width = min(text.width, max(HelpText.leastWidth, terminal.size.columns - 1)) }
        context.output.write(text.text(topic))
        return ExitStatus.done
    }
}

/// The text of the help, at most 79 columns wide. Commands of examples and long names of options are not divided.
struct HelpText: Sendable {
    static let leastWidth = 30
    /// The columns that the meaning of a term has at least.
    private static let leastMeaning = 24
    var usesColor: Bool
    var width = 79

    func text(_ topic: [String]) -> String {
        let lines =
            if let spec = CommandTable.all.first(where: { $0.path == topic }) {
                command(spec)
            } else if topic.isEmpty {
                overview()
            } else {
                group(topic)
            }
        return lines.joined(separator: "\n") + "\n"
    }

    private func overview() -> [String] {
        var lines =
            Columns.wrap("fk \(Version.text) - downloads that resume after interruptions", to: width, indent: "  ") + [
                ""
            ]
        lines += [heading("Usage"), "  fk <command> [options] [arguments]", ""]
        for (title, specs) in CommandTable.sections {
            lines.append(heading(title))
            lines += list(specs.map { ($0.name, $0.summary) })
            lines.append("")
        }
        lines += options(CommandTable.globalOptions, title: "Options of every command")
        lines.append(heading("Exit status"))
        lines += list(ExitStatus.meanings)
        return lines + [""] + Columns.wrap("Run 'fk help <command>' for the details of a command.", to: width)
    }

    private func group(_ topic: [String]) -> [String] {
        let specs = CommandTable.commands(under: topic)
        let name = topic.joined(separator: " ")
        return [heading("Usage"), "  fk \(name) <command> [options] [arguments]", "", heading("Commands")]
            + list(specs.map { ($0.name, $0.summary) }) + [""]
            + Columns.wrap("Run 'fk help \(name) <command>' for the details of a command.", to: width)
    }

    private func command(_ spec: CommandSpec) -> [String] {
        var lines = Columns.wrap("fk \(spec.name) - \(spec.summary)", to: width, indent: "  ") + ["", heading("Usage")]
        lines += Columns.wrap(spec.usage, to: width - 2, indent: "    ").map { "  \($0)" }
        lines.append("")
        if let aliases = spec.aliasText { lines += Columns.wrap(aliases, to: width, indent: "  ") + [""] }
        for paragraph in spec.discussion { lines += Columns.wrap(paragraph, to: width) + [""] }
        if !spec.operands.isEmpty {
            lines.append(heading("Arguments"))
            lines += list(spec.operands.map { ("<\($0.name)>", $0.help) }) + [""]
        }
        for (topic, specs) in OptionTopic.sections(spec.options) { lines += options(specs, title: topic.title) }
        if !spec.examples.isEmpty {
            lines.append(heading("Examples"))
            for example in spec.examples {
                lines.append("  \(example.line)")
                lines += Columns.wrap(example.meaning, to: width - 6).map { "      \(dim($0))" }
            }
            lines.append("")
        }
        return lines
            + options(
                CommandTable.globalOptions.filter { $0.long != "version" && !spec.refusedOptions.contains($0.long) },
                title: "Options of every command"
            )
            .dropLast()
    }

    private func options(_ specs: [OptionSpec], title: String) -> [String] {
        [heading(title)] + list(specs.map { ($0.signature, $0.help) }) + [""]
    }

    /// Terms on the left, their meaning on the right. The meaning of a long term starts on the next line.
    private func list(_ entries: [(String, String)]) -> [String] {
        let longest = entries.map { Columns.width(of: $0.0) }.max() ?? 0
        // On a narrow terminal more terms have a line of their own, so that meanings have room.
        let column = min(longest, 26, width - 4 - Self.leastMeaning)
        var lines: [String] = []
        for (term, meaning) in entries {
            var rest = Columns.wrap(meaning, to: width - column - 4)[...]
            if Columns.width(of: term) <= column {
                let blanks = String(repeating: " ", count: column - Columns.width(of: term))
                lines.append("  \(styled(term))\(blanks)  \(rest.popFirst() ?? "")")
            } else {
                lines.append("  \(styled(term))")
            }
            lines += rest.map { String(repeating: " ", count: column + 4) + $0 }
        }
        return lines
    }

    private func heading(_ text: String) -> String {
        Columns.wrap("\(text):", to: width).map { Style.bold($0, usesColor) }.joined(separator: "\n")
    }
    private func styled(_ text: String) -> String { Style.cyan(text, usesColor) }
    private func dim(_ text: String) -> String { Style.dim(text, usesColor) }
}
