/// `list`, `info`, `why` and `watch`: commands that only read.
enum QueryCommands {
    static let all: [CommandSpec] = [list, info, why, watch]

    private static let task = OperandSpec("url|id", "the task: its URL, or the beginning of its id")

    static let list = CommandSpec(
        path: ["list"], summary: "list tasks", options: ListOptions.specs,
        examples: [.init("fk list --state error", "what failed")],
        make: { try ListCommand(options: ListOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let info = CommandSpec(
        path: ["info"], summary: "all details of a task", operands: [task],
        options: [.flag("raw", nil, "the record as it is stored")],
        make: { try InfoCommand(options: InfoOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let why = CommandSpec(
        path: ["why"], summary: "why a task is not running, and what happened to it", operands: [task],
        make: { try WhyCommand(options: InfoOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let watch = CommandSpec(
        path: ["watch"], summary: "live view of the work path, whichever process runs it",
        make: { try WatchCommand(barrel: nil, global: GlobalOptions($0, $1), context: $1) })
}
