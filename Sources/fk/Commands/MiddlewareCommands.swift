import FKCore
import FKMiddleware
import Foundation

/// `middleware list`, `add`, `remove`, `trust` and `test`.
enum MiddlewareCommands {
    static let all: [CommandSpec] = [list, add, remove, trust, test]

    static let list = CommandSpec(
        path: ["middleware", "list"], summary: "list the programs that check and change downloads",
        examples: [.init("fk middleware list", "one program a line, in the order in which they were added")],
        make: { MiddlewareCommand(action: .list, context: $1) })

    static let add = CommandSpec(
        path: ["middleware", "add"], summary: "add a program that checks or changes downloads",
        discussion: [
            "The program runs without a shell. It reads a JSON object from standard input: stage, id, url, headers, attempt, "
                + "barrels and attributes; also status (head, failure), state (download), path and digest (response), error and "
                + "received (failure). It may write an object: url and headers of a request, the path of a file that it has "
                + "moved, or, for head and failure, {\"retry\": {\"after\": 5}} or {\"fail\": \"reason\"}, and for failure also "
                + "{\"retry\": {\"from\": \"URL\"}}.",
            "Exit status 0 accepts, 75 asks for a retry, any other refuses, with the first line of standard error as the "
                + "reason. A program that takes too long, crashes, writes anything else or is missing fails its task. At the stage "
                + "download all of that is only recorded, for fk why.",
            "Every process that runs the tasks of this work path runs the program, in the folder of this command, with FK_STAGE, "
                + "FK_TASK_ID, PATH, HOME, LANG and TMPDIR as its environment. fk why shows what it decided.",
        ],
        operands: [
            OperandSpec("program", "the program, after --: a path, or a name to look up in PATH", hint: .file),
            OperandSpec("arg", "its arguments", 0, nil, hint: .file),
        ],
        options: [
            .value(
                "stage", nil, "STAGE", hint: .choices(MiddlewareProgram.Stage.allCases.map(\.rawValue)),
                "request (before each request), head (before the first byte), download (at each change of state), response "
                    + "(after the last byte) or failure (after each failed attempt)"),
            .value("name", nil, "NAME", "the name in fk why and in errors"),
            .value("priority", nil, "N", "lower values run earlier (default: 100)"),
            .value("barrel", "b", "NAME", hint: .barrels, "only for members of this barrel"),
            .value("time-limit", nil, "S", "kill the program after this many seconds (default: 10)"),
        ],
        examples: [
            .init(
                "fk middleware add --stage request --name sign -- python3 sign.py", "sign every request with a script"),
            .init(
                "fk middleware add --stage response --name check -b books -- ./check --strict",
                "check each finished file of a barrel"),
        ], usesSettings: false,
        make: { arguments, context in
            try MiddlewareCommand(action: .add(program(arguments, context)), context: context)
        })

    static let remove = CommandSpec(
        path: ["middleware", "remove"], summary: "remove a program from the middlewares",
        operands: [OperandSpec("name", "the program's name, see fk middleware list")],
        examples: [.init("fk middleware remove sign", "requests are not signed any more")],
        make: { MiddlewareCommand(action: .remove($0.operands[0]), context: $1) })

    static let trust = CommandSpec(
        path: ["middleware", "trust"], summary: "let the programs of a copied work path run",
        discussion: [
            "Programs run only in the work path that they were added to. In a copy, after a restore or on another disk they do not "
                + "run, and tasks that need them fail. fk middleware list shows them: look at them before you trust them."
        ],
        examples: [.init("fk middleware trust", "every program of this work path may run here")],
        make: { MiddlewareCommand(action: .trust, context: $1) })

    static let test = CommandSpec(
        path: ["middleware", "test"], summary: "run a program once and show what it decides",
        discussion: [
            "Nothing is requested, and no task changes. A program of the stage response gets a copy of the task's finished file, "
                + "or an empty file if there is none. Exit status 1: it refuses, asks for a retry, or does not work. The values "
                + "of headers are not shown, because they may be secrets."
        ],
        operands: [
            OperandSpec("name", "the program's name, see fk middleware list"),
            OperandSpec("url", "the URL to ask it about"),
        ],
        examples: [.init("fk middleware test sign https://example.com/a.zip", "what it would change")],
        make: {
            MiddlewareCommand(
                action: .test($0.operands[0], url: try $0.operands[1].normalizedURL()), context: $1)
        })

    private static func program(_ arguments: ParsedArguments, _ context: CommandContext) throws -> MiddlewareProgram {
        guard let name = arguments["name"] else { throw arguments.error("--name is missing: name the program.") }
        guard let stage = try arguments.choice("stage", "--stage", of: MiddlewareProgram.Stage.self) else {
            throw arguments.error("--stage is missing: give request, head, download, response or failure.")
        }
        let barrel = try arguments.barrel()
        let priority = try arguments.integer("priority", "--priority", in: 1...1_000_000)
        let limit = try arguments.seconds("time-limit", "--time-limit", in: 1...3_600)
        var words = arguments.operands
        if words[0].utf8.contains(UInt8(ascii: "/")) {
            words[0] = try Paths.absolute(words[0], from: context.workingDirectory)
        }
        do {
            return try MiddlewareProgram(
                name: name, stage: stage, priority: priority ?? 100, barrel: barrel,
                timeLimit: .milliseconds(Int64((limit ?? 10) * 1_000)), arguments: words,
                directory: context.workingDirectory)
        } catch {
            throw arguments.error(error.message)
        }
    }
}
