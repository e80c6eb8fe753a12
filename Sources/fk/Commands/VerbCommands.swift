import FKCore

/// `suspend`, `resume`, `cancel`, `retry`, `toggle`, `trash` and `set`.
enum VerbCommands {
    static let all: [CommandSpec] = [
        spec(.suspend, "stop tasks and keep their bytes", "--all", "stop every task"),
        spec(.resume, "resume suspended tasks", "--all", "resume every task; also retries failed and cancelled ones"),
        spec(.cancel, "stop tasks and delete their unfinished bytes", file, "stop one download"),
        spec(.retry, "queue failed and cancelled tasks again", "--all", "try every failed download again"),
        toggle,
        spec(.trash, "forget tasks and delete every file they wrote", file, "delete one download; asks first"),
        SetCommand.spec,
    ]

    private static let file = "https://example.com/a.iso"

    private static let toggle = CommandSpec(
        path: ["toggle"], summary: "suspend running and waiting tasks, resume or queue the others",
        discussion: [
            "Suspends running and waiting tasks, resumes suspended ones, and queues failed and cancelled ones again. "
                + "Complete tasks do not change, and the answer says so."
        ],
        operands: [OperandSpec("url|id", "the tasks: URLs, or beginnings of their ids", 1, nil)],
        examples: [.init("fk toggle \(file)", "suspend a download; again to resume it")],
        make: { arguments, context in
            try ToggleCommand(
                references: arguments.operands.map { try TaskReference.parse($0, arguments) },
                global: GlobalOptions(arguments, context), context: context)
        })

    /// What a verb deletes, for the help.
    static func warnings(of verb: Verb) -> [String] {
        switch verb {
        case .cancel: ["The bytes of unfinished files are deleted. To keep them, use 'suspend'."]
        case .trash:
            [
                "Deletes finished files, too, except files that were changed or replaced since. Asks for confirmation "
                    + "first, unless -y is given."
            ]
        default: []
        }
    }

    private static func spec(_ verb: Verb, _ summary: String, _ target: String, _ example: String) -> CommandSpec {
        var options: [OptionSpec] = [.flag("all", nil, "every task of the work path")]
        if verb == .trash { options.append(.flag("yes", "y", "do not ask for confirmation")) }
        return CommandSpec(
            path: [verb.rawValue], summary: summary,
            discussion: warnings(of: verb) + [
                "Takes effect within about a second if another process runs the downloads. Tasks in a state to which the "
                    + "verb does not apply do not change, and the answer says so."
            ],
            operands: [OperandSpec("url|id", "the tasks: URLs, or beginnings of their ids", 0, nil)], options: options,
            examples: [.init("fk \(verb.rawValue) \(target)", example)],
            make: { arguments, context in
                let options = try VerbOptions(verb, arguments, context)
                return try VerbCommand(
                    verb: verb, targets: options.references.isEmpty ? .all : .tasks(options.references),
                    isConfirmed: options.confirmed, global: GlobalOptions(arguments, context), context: context)
            })
    }
}
