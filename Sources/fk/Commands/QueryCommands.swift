/// `list`, `info`, `why`, `verify`, `provenance`, `watch` and `metrics`: commands that only read, but for `verify --repair`.
enum QueryCommands {
    static let all: [CommandSpec] = [
        list, info, why, VerifyCommand.spec, ProvenanceCommand.spec, watch, MetricsCommand.spec,
    ]

    static let list = CommandSpec(
        path: ["list"], aliases: ["ls", "status"], summary: "list tasks", options: ListOptions.specs,
        examples: [.init("fk list --state failed", "the failed tasks")],
        make: { try ListCommand(options: ListOptions($0, $1), context: $1) })

    static let info = CommandSpec(
        path: ["info"], summary: "show all details of a task", operands: [TaskReference.operand],
        options: [.flag("raw", nil, "print the record as it is stored")],
        examples: [.init("fk info https://example.com/a.iso", "path, size, attempts and times")],
        make: { InfoCommand(reference: TaskReference($0.operands[0]), raw: $0.has("raw"), context: $1) })

    static let why = CommandSpec(
        path: ["why"], summary: "explain why a task does not run, or runs no faster",
        discussion: [
            "Prints the state of the task, what it waits for, and the history of its attempts. For a running task it measures "
                + "for two seconds what limits it: our own limit, a middleware, the processor, the disk, the server or the network."
        ],
        operands: [TaskReference.operands(1)],
        examples: [.init("fk why https://example.com/a.iso", "the reason and the attempts")],
        make: { WhyCommand(references: $0.operands.map { TaskReference($0) }, context: $1) })

    static let watch = CommandSpec(
        path: ["watch"], summary: "watch and steer all tasks on the full screen",
        discussion: [
            "Works for downloads of every process, and says when none runs. Keys:",
            WatchModel.help.map { "\($0.keys): \($0.meaning)." }.joined(separator: " "),
            "Into a pipe it prints one table and ends; with --json an event a line until Ctrl-C.",
        ],
        examples: [.init("fk watch", "in a second terminal")],
        make: { WatchCommand(barrel: nil, context: $1) })
}
