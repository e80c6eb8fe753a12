import FKCore

/// `config`, `completions`, `man`, `demo` and `help`.
enum ToolCommands {
    static let all: [CommandSpec] = [
        configShow, configGet, configSet, configUnset, configPath, ConfigHostCommand.spec, completions, manual, demo,
        help,
    ]

    static let configShow = CommandSpec(
        path: ["config", "show"], summary: "show all settings with their values and defaults",
        examples: [.init("fk config show", "one setting a line")],
        usesWorkPath: false, make: { ConfigCommand(action: .show, context: $1) })

    static let configGet = CommandSpec(
        path: ["config", "get"], summary: "print the value of a setting, or its default",
        operands: [keyOperand], examples: [.init("fk config get jobs", "3, unless another number was saved")],
        usesWorkPath: false,
        make: { arguments, context in
            let name = arguments.operands[0]
            if let base = Settings.baseName(name) { return ConfigCommand(action: .getBase(base), context: context) }
            return ConfigCommand(
                action: .get(try SavedOption.named(name, arguments)), context: context)
        })

    static let configUnset = CommandSpec(
        path: ["config", "unset"], summary: "remove a saved setting, so that the default counts",
        operands: [keyOperand],
        examples: [.init("fk config unset limit-rate", "no limit, unless --limit-rate says one")],
        usesWorkPath: false,
        make: { arguments, context in
            let name = arguments.operands[0]
            if let base = Settings.baseName(name) {
                return ConfigCommand(action: .setBase(base, folder: nil), context: context)
            }
            return ConfigCommand(
                action: .set(try SavedOption.named(name, arguments), ""), context: context)
        })

    private static let keyOperand = OperandSpec(
        "key", "the setting", hint: .choices(SavedOption.all.map(\.name)))

    static let configSet = CommandSpec(
        path: ["config", "set"], summary: "save a setting; an empty value removes it",
        discussion: [
            "Settings: \(SavedOption.all.map(\.name).joined(separator: ", ")). They are stored in the work path. "
                + "Options on the command line take precedence.",
            "base.NAME names a folder that may move: the info files have the places below it relative to it. Move it with its "
                + "files, set base.NAME to the new place, and its tasks continue.",
        ],
        operands: [
            keyOperand,
            OperandSpec("value", "its value, as the option of that name takes it"),
        ],
        examples: [
            .init("fk config set limit-rate 5M", "the default for commands without --limit-rate"),
            .init("fk config set base.media /mnt/media", "the folder of a disk that is mounted elsewhere at times"),
        ],
        usesWorkPath: false,
        make: { arguments, context in
            var value = arguments.operands[1]
            if let name = Settings.baseName(arguments.operands[0]) {
                let folder = value.isEmpty ? nil : try Paths.absolute(value, from: context.workingDirectory)
                if let fault = Places.fault(name, folder ?? "/-") { throw arguments.error("key: \(fault).") }
                return try ConfigCommand(action: .setBase(name, folder: folder), context: context)
            }
            let option = try SavedOption.named(arguments.operands[0], arguments)
            if !value.isEmpty {
                try option.check(value, arguments)
                value = try option.stored(value, arguments, context)
            }
            return try ConfigCommand(action: .set(option, value), context: context)
        })

    static let configPath = CommandSpec(
        path: ["config", "path"], summary: "print the path of the file with the settings",
        examples: [.init("fk config path", "by default ~/.local/state/fk/config")],
        usesWorkPath: false, make: { ConfigCommand(action: .path, context: $1) })

    static let completions = CommandSpec(
        path: ["completions"], summary: "print a completion script for a shell",
        discussion: [
            "The scripts complete commands, options, states, names of barrels and of tasks' files. They get them "
                + "from 'fk completions barrels', 'tasks' and 'ids'. With a command, such as suspend, only tasks on which it "
                + "acts are offered."
        ],
        operands: [
            OperandSpec(
                "topic", "a script for bash, zsh or fish; or the words barrels, tasks or ids",
                hint: .choices(Shell.allCases.map(\.rawValue))),
            OperandSpec("command", "the command that is completed, for tasks and ids", 0, 1),
        ],
        examples: [
            .init("fk completions bash > /etc/bash_completion.d/fk", "for bash"),
            .init("fk completions zsh > /usr/local/share/zsh/site-functions/_fk", "for zsh"),
            .init("fk completions fish > ~/.config/fish/completions/fk.fish", "for fish"),
        ],
        usesWorkPath: false,
        make: { arguments, context in
            try CompletionsCommand(
                topic: arguments.parseChoice(arguments.operands[0], "topic", of: CompletionTopic.self),
                command: arguments.operands.dropFirst().first, source: CommandTable.completions, context: context)
        })

    static let manual = CommandSpec(
        path: ["man"], summary: "show the manual page fk(1)",
        discussion: [
            "On a terminal, man or mandoc shows the page. Elsewhere the output is its mdoc source. 'make install' installs it."
        ],
        examples: [
            .init("fk man", "read it without an installed copy"), .init("fk man > fk.1", "its source"),
        ],
        usesWorkPath: false, make: { ManualCommand(page: CommandTable.manual, context: $1) })

    static let demo = CommandSpec(
        path: ["demo"], summary: "demonstrate an interrupted and resumed download on this machine",
        discussion: [
            "Starts a server on 127.0.0.1 with files of 200 MiB in all, downloads them as a barrel, kills the download "
                + "halfway, resumes it, and compares the digest of every file. Needs no network."
        ],
        options: DemoOptions.specs, examples: [.init("fk demo", "takes about ten seconds")], usesSettings: false,
        usesWorkPath: false,
        make: { try DemoCommand(options: DemoOptions($0, $1), context: $1) })

    static let help = CommandSpec(
        path: ["help"], summary: "show help for a command",
        operands: [OperandSpec("command", "the words of a command, such as 'barrel create'", 0, nil)],
        examples: [.init("fk help barrel create", "the options of fk barrel create")],
        usesWorkPath: false,
        make: { arguments, context in try HelpCommand(topic: arguments.operands, context: context) })
}
