/// `get`, `cat`, `run`, `limit` and `trim`.
enum TransferCommands {
    static let all: [CommandSpec] = [get, CatCommand.spec, run, LimitCommand.spec, TrimCommand.spec]

    static let get = CommandSpec(
        path: ["get"], summary: "download URLs",
        discussion: [
            "Downloads the URLs into the folder and exits when all files are finished. To resume after an interruption, run "
                + "the same command again: it continues unfinished files and skips complete ones.",
            "If another process runs the downloads of this work path, that process fetches the files, and this command "
                + "shows their progress.",
            "With -r, the URL is a folder that its server lists, and all of its files are fetched, with their folders. 'fk barrel sync' "
                + "follows it later. Exit status 1: a file could not be fetched, or a part of the folder could not be listed.",
        ],
        operands: [OperandSpec("url", "what to download: http or https", 0, nil)], options: GetOptions.specs,
        examples: [
            .init("fk get https://example.com/a.iso", "one file into the current folder"),
            .init("fk get -d isos -j4 -i list.txt", "the URLs of a list into the folder isos, four files at once"),
            .init("fk get -r https://example.com/pub/", "all files of a folder, into ./pub"),
            .init("fk get --checksum sha-256=2cf2… https://example.com/a.iso", "fail if the digest differs"),
        ],
        make: { arguments, context in
            let options = try GetOptions(arguments, context)
            guard let folder = arguments["extract"] else { return GetCommand(options: options, context: context) }
            return try ExtractCommand(folder, options, arguments, context)
        })

    static let run = CommandSpec(
        path: ["run"], summary: "run everything that is waiting",
        discussion: [
            "Ends when no task is left that can run. It does not wait for suspended tasks. Members of a barrel that is divided among "
                + "shards are left to the shards."
        ],
        options: RunOption.specs,
        examples: [.init("fk run --limit-rate 2M", "everything that waits, together at most 2 MiB a second")],
        make: { try RunCommand(options: RunCommandOptions($0, $1), context: $1) })
}

extension RunOptions {
    /// The options of `fk run` without any, that is, the saved settings.
    init(saved context: CommandContext) throws {
        var arguments = ParsedArguments(command: ["run"])
        let workPath = context.global.workPath
        try Settings.read(workPath: workPath).fill(
            &arguments, of: TransferCommands.run, workPath: workPath, home: context.environment["HOME"])
        try self.init(arguments, context)
    }
}
