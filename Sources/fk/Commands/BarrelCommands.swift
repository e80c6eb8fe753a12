import FKCore

/// `barrel …`: groups of tasks.
enum BarrelCommands {
    static let all: [CommandSpec] =
        [create, add, remove, list, show, watch, run]
        + [
            verb(.suspend, "stop all members; their bytes are kept"), verb(.resume, "resume suspended members"),
            verb(.cancel, "stop all members and delete their unfinished bytes"),
            verb(.retry, "queue failed and cancelled members again"),
            verb(.trash, "forget all members and delete their files"), delete, importList, export,
        ]

    private static let name = OperandSpec("name", "the barrel")
    private static let yes = OptionSpec.flag("yes", "y", "do not ask for confirmation")

    static let create = CommandSpec(
        path: ["barrel", "create"], summary: "make a barrel, a named group of files",
        discussion: [
            "The folder and the options are kept with the barrel: members added later get them too. Nothing is fetched "
                + "before 'fk barrel run'."
        ],
        operands: [name, OperandSpec("url", "first members", 0, nil)], options: BarrelCreateOptions.specs,
        examples: [
            .init("fk barrel create photos -d ~/photos -i list.txt", "members from a list"),
            .init("fk barrel run photos", "fetch them"),
        ],
        make: {
            try BarrelEditCommand(
                edit: .create(BarrelCreateOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let add = CommandSpec(
        path: ["barrel", "add"], summary: "add URLs to a barrel",
        operands: [name, OperandSpec("url", "further members", 0, nil)], options: [TaskInput.inputSpec],
        make: {
            try BarrelEditCommand(edit: .add(BarrelAddOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let remove = CommandSpec(
        path: ["barrel", "remove"], summary: "take URLs out of a barrel; their tasks stay",
        operands: [name, OperandSpec("url", "members", 1, nil)],
        make: {
            try BarrelEditCommand(
                edit: .remove(BarrelRemoveOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    static let list = CommandSpec(
        path: ["barrel", "list"], summary: "list barrels with their sums",
        make: { try BarrelQueryCommand(query: .list, global: GlobalOptions($0, $1), context: $1) })

    static let show = CommandSpec(
        path: ["barrel", "show"], summary: "show a barrel and its members", operands: [name],
        make: {
            try BarrelQueryCommand(
                query: .show(name: NamedBarrelOptions($0, $1).name), global: GlobalOptions($0, $1), context: $1)
        })

    static let watch = CommandSpec(
        path: ["barrel", "watch"], summary: "live view of a barrel, whichever process runs it", operands: [name],
        make: { try WatchCommand(barrel: NamedBarrelOptions($0, $1).name, global: GlobalOptions($0, $1), context: $1) }
    )

    static let run = CommandSpec(
        path: ["barrel", "run"], summary: "run barrels", operands: [OperandSpec("name", "the barrels", 1, nil)],
        options: RunOptions.specs,
        make: { try RunCommand(options: RunCommandOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let delete = CommandSpec(
        path: ["barrel", "delete"], summary: "forget a barrel; its tasks and files stay", operands: [name],
        options: [yes],
        make: {
            try BarrelEditCommand(
                edit: .delete(name: NamedBarrelOptions($0, $1).name, isConfirmed: $0.has("yes")),
                global: GlobalOptions($0, $1), context: $1)
        })

    static let importList = CommandSpec(
        path: ["barrel", "import"], summary: "add the members of an exported list",
        discussion: [
            "FILE is what 'fk barrel export' writes as urls or aria2, or any other list of URLs; '-' is standard input. The "
                + "barrel is made when there is none; files without a folder of their own then go to this one."
        ],
        operands: [name, OperandSpec("file", "the list", hint: .file)],
        examples: [.init("fk barrel import photos photos.txt", "on another machine")],
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
        examples: [.init("fk barrel export photos --format aria2 > photos.txt", "with names, folders, digests")],
        make: {
            try BarrelQueryCommand(
                query: .export(BarrelExportOptions($0, $1)), global: GlobalOptions($0, $1), context: $1)
        })

    private static func verb(_ verb: Verb, _ summary: String) -> CommandSpec {
        CommandSpec(
            path: ["barrel", verb.rawValue], summary: summary, operands: [name], options: verb == .trash ? [yes] : [],
            make: { arguments, context in
                let options = try NamedBarrelOptions(arguments, context)
                return try VerbCommand(
                    verb: verb, targets: .barrel(options.name), isConfirmed: options.confirmed,
                    global: GlobalOptions(arguments, context), context: context)
            })
    }
}
