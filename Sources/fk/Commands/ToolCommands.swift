/// `config`, `completions`, `demo` and `help`.
enum ToolCommands {
    static let all: [CommandSpec] = [configShow, configSet, configPath, completions, demo, help]

    static let configShow = CommandSpec(
        path: ["config", "show"], summary: "show the saved settings",
        make: { try ConfigCommand(action: .show, global: GlobalOptions($0, $1), context: $1) })

    static let configSet = CommandSpec(
        path: ["config", "set"], summary: "save a setting; an empty value removes it",
        discussion: [
            "Settings: \(Settings.Key.allCases.map(\.rawValue).joined(separator: ", ")). They are kept with the work path; "
                + "an option given on the command line wins."
        ],
        operands: [
            OperandSpec("key", "the setting", hint: .choices(Settings.Key.allCases.map(\.rawValue))),
            OperandSpec("value", "its value, as the option of that name takes it"),
        ],
        examples: [.init("fk config set limit-rate 5M", "from now on, unless --limit-rate is given")],
        make: { arguments, context in
            let key = try arguments.parseChoice(arguments.operands[0], "key", of: Settings.Key.self)
            var value = arguments.operands[1]
            if !value.isEmpty {
                try Settings.check(key, value, arguments)
                if key.isPath { value = try Paths.absolute(value, from: context.workingDirectory) }
                if key == .cacert { value = try CertificateFile.check(value, arguments, context) }
            }
            return try ConfigCommand(
                action: .set(key, value), global: GlobalOptions(arguments, context), context: context)
        })

    static let configPath = CommandSpec(
        path: ["config", "path"], summary: "print where the settings are saved",
        make: { try ConfigCommand(action: .path, global: GlobalOptions($0, $1), context: $1) })

    static let completions = CommandSpec(
        path: ["completions"], summary: "print a completion script for a shell",
        operands: [OperandSpec("shell", "bash, zsh or fish", hint: .choices(Shell.allCases.map(\.rawValue)))],
        examples: [
            .init("fk completions bash > /etc/bash_completion.d/fk", "for bash"),
            .init("fk completions zsh > /usr/local/share/zsh/site-functions/_fk", "for zsh"),
            .init("fk completions fish > ~/.config/fish/completions/fk.fish", "for fish"),
        ],
        make: { arguments, context in
            CompletionsCommand(
                shell: try arguments.parseChoice(arguments.operands[0], "shell", of: Shell.self), output: context.output
            )
        })

    static let demo = CommandSpec(
        path: ["demo"], summary: "show a download on this machine: serve, interrupt, resume, verify",
        discussion: [
            "Starts a server of its own on 127.0.0.1 with files of 200 MiB in all, fetches them as a barrel, is "
                + "interrupted halfway, continues, and compares the digest of every file. Needs no network."
        ],
        options: DemoOptions.specs, usesSettings: false,
        make: { try DemoCommand(options: DemoOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let help = CommandSpec(
        path: ["help"], summary: "show help for a command",
        operands: [OperandSpec("command", "its words, such as 'barrel create'", 0, nil)],
        make: { arguments, context in
            try HelpCommand(topic: arguments.operands, global: GlobalOptions(arguments, context), context: context)
        })
}
