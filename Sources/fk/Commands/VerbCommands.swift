import FKCore

/// `suspend`, `resume`, `cancel`, `retry`, `toggle`, `forget`, `trash`, `relink` and `set`.
enum VerbCommands {
    static let all: [CommandSpec] = [
        spec(.suspend, "stop tasks and keep their bytes", ["pause"], [.init("fk suspend --all", "stop every task")]),
        spec(
            .resume, "resume suspended tasks", ["start"],
            [.init("fk resume --all", "resume every task; also retries failed and cancelled ones")]),
        spec(
            .cancel, "stop tasks and delete their unfinished bytes", [],
            [.init("fk cancel \(file)", "stop one download")]),
        spec(
            .retry, "queue failed and cancelled tasks again", [],
            [
                .init("fk retry --state failed", "try every failed download again"),
                .init("fk retry --run", "run those again whose failure may pass, such as after a lost connection"),
                .init("fk retry --run last", "the same for the files of the last run with failures"),
            ]),
        toggle,
        spec(
            .forget, "forget tasks and keep their finished files", ["rm"],
            [
                .init("fk forget --state complete", "clear the list; every file stays"),
                .init("fk forget \(file)", "one task: its file stays if it is complete"),
            ]),
        spec(
            .trash, "forget tasks and delete every file they wrote", [],
            [.init("fk trash \(file)", "delete one download; asks first")]),
        RelinkCommand.spec, SetCommand.spec,
    ]

    private static let file = "https://example.com/a.iso"

    private static let toggle = CommandSpec(
        path: ["toggle"], summary: "suspend running and waiting tasks, resume or queue the others",
        discussion: [
            "Suspends running and waiting tasks, resumes suspended ones, and queues failed and cancelled ones again. "
                + "Complete tasks do not change, and the answer says so."
        ],
        operands: [TaskReference.operands(1)],
        examples: [.init("fk toggle \(file)", "suspend a download; again to resume it")],
        make: { arguments, context in
            ToggleCommand(references: arguments.operands.map(TaskReference.init), context: context)
        })

    /// What a verb deletes, for the help.
    ///
    /// - Parameter ofBarrel: true for the command of a barrel, which has no options for other tasks.
    static func warnings(of verb: Verb, ofBarrel: Bool = false) -> [String] {
        // `fk trash -b NAME` is the same as `fk barrel trash NAME`.
        let shared =
            "\(ofBarrel ? "Members" : "With -b, members") that another barrel has too leave the barrel, and stay."
        switch verb {
        case .cancel: return ["The bytes of unfinished files are deleted. To keep them, use 'suspend'."]
        case .forget:
            return [
                "Finished files stay. The bytes of unfinished files are deleted; to keep them, use 'suspend'. "
                    + (ofBarrel ? "Asks before it deletes" : "--all, -b, --state and --run ask before they delete")
                    + " bytes, unless -y is given. To delete finished files, too, use 'trash'. "
                    + shared
            ]
        case .trash:
            return [
                "Deletes finished files, too, except files that were changed or replaced since. Asks for confirmation "
                    + "first, unless -y is given. " + shared
            ]
        default: return []
        }
    }

    private static let runs =
        "A run that ends with failed or suspended files keeps their ids under a name, such as r3, and names it in the commands that "
        + "it offers. 'last' is the newest one. The newest \(RunBook.limit) are kept."

    private static func spec(
        _ verb: Verb, _ summary: String, _ aliases: [String], _ examples: [CommandSpec.Example]
    ) -> CommandSpec {
        var options = VerbTargets.specs
        if verb == .trash || verb == .forget { options.append(.flag("yes", "y", "do not ask for confirmation")) }
        switch verb {
        case .retry:
            options.append(
                .run(
                    "download the tasks now and show their progress; without any named, the failed ones that may pass, "
                        + "with RUN those of that run"))
        case .forget: options.append(.run("the failed tasks of a run, such as r3 or last"))
        case .resume: options.append(.run("the suspended tasks of a run, such as r3 or last"))
        default: break
        }
        return CommandSpec(
            path: [verb.rawValue], aliases: aliases, summary: summary,
            discussion: warnings(of: verb) + [
                "Takes effect within about a second if another process runs the downloads. Tasks in a state to which the "
                    + "verb does not apply do not change, and the answer says so."
            ] + (options.contains { $0.kind == .run } ? [runs] : []),
            operands: [TaskReference.operands(0)], options: options, examples: examples,
            make: { arguments, context in
                try VerbCommand(
                    verb: verb, targets: VerbTargets(arguments, of: verb),
                    isConfirmed: arguments.has("yes"),
                    runs: verb == .retry && arguments.has("run") ? RunOptions(arguments, context) : nil,
                    context: context)
            })
    }
}
