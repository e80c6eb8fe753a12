/// Every command of `fk`. The parser, the help and the completions use this table.
enum CommandTable {
    static let globalOptions: [OptionSpec] = [
        .value("work-path", nil, "DIR", hint: .directory, "folder of the task records (default: FK_WORK_PATH)"),
        .flag("json", nil, "print JSON: a document for a query, an object a line for a run"),
        .flag("quiet", "q", "print errors only"),
        .flag("no-progress", nil, "no live view; print a line for each finished file"),
        .value(
            "color", nil, "WHEN", hint: .choices(ColorChoice.allCases.map(\.rawValue)),
            "use colours: auto (default), always or never"),
        .flag("help", "h", "show help"),
        .flag("version", "V", "show the version"),
    ]

    /// The commands under the headings of the overview.
    static let sections: [(title: String, commands: [CommandSpec])] = [
        ("Download", TransferCommands.all), ("Inspect", QueryCommands.all), ("Control", VerbCommands.all),
        ("Barrels (named groups)", BarrelCommands.all),
        ("Programs that check and change downloads", MiddlewareCommands.all),
        ("Programs that list files", SourceCommands.all),
        ("Serve", RPCCommand.all),
        ("Tools", ToolCommands.all),
    ]

    /// The commands in the order of the overview.
    static let all: [CommandSpec] = sections.flatMap(\.commands)

    static let parser = ArgumentParser(commands: all, globalOptions: globalOptions)

    /// The parser for a command line. `fk get` needs no other command's options, whose tables take 2 % of its start.
    static func parser(for words: [String]) -> ArgumentParser {
        words.first == "get" ? ArgumentParser(commands: [TransferCommands.get], globalOptions: globalOptions) : parser
    }

    static var completions: CompletionSource { CompletionSource(commands: all, globalOptions: globalOptions) }

    /// The manual page, as mdoc.
    static var manual: String { ManualPage.text(all, globalOptions: globalOptions) }

    /// The words of a command; an alias is replaced by the command's name.
    static func resolvingAlias(_ path: [String]) -> [String] {
        guard path.count == 1, let spec = all.first(where: { $0.aliases.contains(path[0]) }) else { return path }
        return spec.path
    }

    /// The commands that start with these words; all commands if there are no words.
    static func commands(under path: [String]) -> [CommandSpec] {
        all.filter { $0.path.starts(with: path) }
    }
}
