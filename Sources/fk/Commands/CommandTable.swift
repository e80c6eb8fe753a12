/// Every command of `fk`. The parser, the help and the completions use this table.
enum CommandTable {
    static let globalOptions: [OptionSpec] = [
        .value("work-path", nil, "DIR", hint: .directory, "folder of the tasks' records (or FK_WORK_PATH)"),
        .flag("json", nil, "print JSON: one document, or one object a line for a run"),
        .flag("quiet", "q", "print errors only"),
        .flag("no-progress", nil, "no live view; one line for each finished file"),
        .value("color", nil, "WHEN", hint: .choices(ColorChoice.allCases.map(\.rawValue)), "auto, always or never"),
        .flag("help", "h", "show help"),
        .flag("version", nil, "show the version"),
    ]

    /// The commands in the order of the overview.
    static let all: [CommandSpec] =
        TransferCommands.all + BarrelCommands.all + QueryCommands.all + VerbCommands.all + ToolCommands.all

    static let parser = ArgumentParser(commands: all, globalOptions: globalOptions)

    /// The commands that start with these words; all commands if there are no words.
    static func commands(under path: [String]) -> [CommandSpec] {
        all.filter { $0.path.starts(with: path) }
    }
}
