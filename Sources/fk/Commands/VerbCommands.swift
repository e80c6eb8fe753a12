import FKCore

/// `suspend`, `resume`, `cancel`, `retry`, `toggle`, `trash` and `set`.
enum VerbCommands {
    static let all: [CommandSpec] = [
        spec(.suspend, "stop tasks; their bytes are kept"),
        spec(.resume, "resume suspended tasks"),
        spec(.cancel, "stop tasks and delete their unfinished bytes"),
        spec(.retry, "queue failed and cancelled tasks again"),
        toggle,
        spec(.trash, "forget tasks and delete every file they wrote"),
        SetCommand.spec,
    ]

    private static let toggle = CommandSpec(
        path: ["toggle"], summary: "suspend running and waiting tasks, resume or queue the others",
        discussion: [
            "A running or waiting task is suspended, a suspended one resumed, a failed or cancelled one queued again; a "
                + "complete one stays as it is, and the answer says so."
        ],
        operands: [OperandSpec("url|id", "the tasks: URLs, or beginnings of their ids", 1, nil)],
        make: { arguments, context in
            try ToggleCommand(
                references: arguments.operands.map { try TaskReference.parse($0, arguments) },
                global: GlobalOptions(arguments, context), context: context)
        })

    private static func spec(_ verb: Verb, _ summary: String) -> CommandSpec {
        var options: [OptionSpec] = [.flag("all", nil, "every task of the work path")]
        if verb == .trash { options.append(.flag("yes", "y", "do not ask for confirmation")) }
        return CommandSpec(
            path: [verb.rawValue], summary: summary,
            discussion: [
                "Acts on downloads that another process runs within about a second. A task in a state the verb does not "
                    + "apply to is left as it is, and the answer says so."
            ],
            operands: [OperandSpec("url|id", "the tasks: URLs, or beginnings of their ids", 0, nil)], options: options,
            make: { arguments, context in
                let options = try VerbOptions(verb, arguments, context)
                return try VerbCommand(
                    verb: verb, targets: options.references.isEmpty ? .all : .tasks(options.references),
                    isConfirmed: options.confirmed, global: GlobalOptions(arguments, context), context: context)
            })
    }
}
