import FKCore

/// `barrel …`: groups of tasks.
enum BarrelCommands {
    static let all: [CommandSpec] =
        [create, add, remove, list, show, watch, run]
        + [
            verb(.suspend, "stop all members and keep their bytes", "stop the members of photos"),
            verb(.resume, "resume suspended members", "queue the suspended members of photos again"),
            verb(.cancel, "stop all members and delete their unfinished bytes", "stop the members of photos"),
            verb(.retry, "queue failed and cancelled members again", "try the failed members of photos again"),
            verb(.trash, "forget all members and delete their files", "delete the files of photos; asks first"),
            delete, importList, export,
        ]

    private static let name = OperandSpec("name", "the barrel")
    private static let yes = OptionSpec.flag("yes", "y", "do not ask for confirmation")

    static let create = CommandSpec(
        path: ["barrel", "create"], summary: "create a barrel, a named group of files",
        discussion: [
            "The folder and the options are stored with the barrel and apply to members added later. "
                + "'fk barrel run' starts the downloads."
        ],
        operands: [name, OperandSpec("url", "URLs of the first members", 0, nil)], options: BarrelCreateOptions.specs,
        examples: [
            .init("fk barrel create photos -d ~/photos -i list.txt", "a barrel with the URLs of a list"),
            .init("fk barrel run photos", "download its members"),
        ],
        make: {
            try BarrelEditCommand(
                edit: .create(BarrelCreateOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let add = CommandSpec(
        path: ["barrel", "add"], summary: "add URLs to a barrel",
        operands: [name, OperandSpec("url", "URLs of the new members", 0, nil)], options: [TaskInput.inputSpec],
        examples: [.init("fk barrel add photos https://example.com/4.jpg", "one more member")],
        make: {
            try BarrelEditCommand(edit: .add(BarrelAddOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let remove = CommandSpec(
        path: ["barrel", "remove"], summary: "remove URLs from a barrel and keep their tasks",
        operands: [name, OperandSpec("url", "URLs of members", 1, nil)],
        examples: [.init("fk barrel remove photos https://example.com/4.jpg", "remove one member")],
        make: {
            try BarrelEditCommand(
                edit: .remove(BarrelRemoveOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let list = CommandSpec(
        path: ["barrel", "list"], summary: "list barrels and their progress",
        examples: [.init("fk barrel list", "every barrel of the work path")],
        make: { try BarrelQueryCommand(query: .list, global: GlobalOptions($0, $1), context: $1) })

    static let show = CommandSpec(
        path: ["barrel", "show"], summary: "show a barrel and its members", operands: [name],
        examples: [.init("fk barrel show photos", "each member with its state")],
        make: {
            try BarrelQueryCommand(
                query: .show(name: NamedBarrelOptions($0, $1).name), global: GlobalOptions($0, $1), context: $1)
        })

    static let watch = CommandSpec(
        path: ["barrel", "watch"], summary: "show the progress of a barrel until Ctrl-C", operands: [name],
        examples: [.init("fk barrel watch photos", "works in a second terminal, too")],
        make: { try WatchCommand(barrel: NamedBarrelOptions($0, $1).name, global: GlobalOptions($0, $1), context: $1) }
    )

    static let run = CommandSpec(
        path: ["barrel", "run"], summary: "download the members of barrels",
        operands: [OperandSpec("name", "the barrels", 1, nil)],
        options: RunOptions.specs,
        examples: [.init("fk barrel run photos -j 4", "four files at once")],
        make: { try RunCommand(options: RunCommandOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let delete = CommandSpec(
        path: ["barrel", "delete"], summary: "forget a barrel and keep its tasks and files", operands: [name],
        options: [yes], examples: [.init("fk barrel delete photos", "asks for confirmation on a terminal")],
        make: {
            try BarrelEditCommand(
                edit: .delete(name: NamedBarrelOptions($0, $1).name, isConfirmed: $0.has("yes")),
                global: GlobalOptions($0, $1), context: $1)
        })

    static let importList = CommandSpec(
        path: ["barrel", "import"], summary: "add the members of an exported list",
        discussion: [
            "FILE is the output of 'fk barrel export' in the format urls or aria2, or any other list of URLs; '-' is "
                + "standard input. A missing barrel is created, with the current folder for files without a folder of "
                + "their own."
        ],
        operands: [name, OperandSpec("file", "the list", hint: .file)],
        examples: [
            .init("fk barrel import photos photos.txt", "add the members of a list that another machine exported")
        ],
        make: {
            try BarrelEditCommand(
                edit: .add(BarrelAddOptions(importing: $0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let export = CommandSpec(
        path: ["barrel", "export"], summary: "print a barrel's members as an input list", operands: [name],
        options: [
            .value(
                "format", nil, "FORMAT", hint: .choices(BarrelExportOptions.Format.allCases.map(\.rawValue)),
                "urls (default), json or aria2")
        ],
        examples: [
            .init("fk barrel export photos --format aria2 > photos.txt", "a list with names, folders and digests")
        ],
        make: {
            try BarrelQueryCommand(
                query: .export(BarrelExportOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    private static func verb(_ verb: Verb, _ summary: String, _ example: String) -> CommandSpec {
        CommandSpec(
            path: ["barrel", verb.rawValue], summary: summary, discussion: VerbCommands.warnings(of: verb),
            operands: [name], options: verb == .trash ? [yes] : [],
            examples: [.init("fk barrel \(verb.rawValue) photos", example)],
            make: { arguments, context in
                let options = try NamedBarrelOptions(arguments, context)
                return try VerbCommand(
                    verb: verb, targets: .barrel(options.name), isConfirmed: options.confirmed,
                    global: GlobalOptions(arguments, context), context: context)
            })
    }
}
