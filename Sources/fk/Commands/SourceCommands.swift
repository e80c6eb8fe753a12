import FKCore
import FKManifests
import FKMiddleware

/// `source list`, `add`, `remove`, `trust` and `test`.
enum SourceCommands {
    static let all: [CommandSpec] = [list, add, remove, trust, test]

    static let list = CommandSpec(
        path: ["source", "list"], summary: "list the programs that list files",
        examples: [.init("fk source list", "one program a line, with its scheme")],
        make: { SourceCommand(action: .list, context: $1) })

    static let add = CommandSpec(
        path: ["source", "add"], summary: "add a program that lists the files of a scheme's places",
        discussion: [
            "fk get -r SCHEME:REST then runs the program, without a shell. It reads one JSON object from standard input, {\"source\": "
                + "\"SCHEME:REST\", \"include\": [...], \"exclude\": [...]}, and writes an object for each file, on a line of its own: url, "
                + "and name, size, sha256, mirrors and version where it knows them. It may end with {\"version\": \"...\"} for the "
                + "whole place.",
            "Another exit status than 0 is a failure, with the first line of standard error as the reason: nothing of the list is used "
                + "then. A program that takes too long or writes anything else is a failure too.",
            "The program belongs to the work path, as middleware programs do. It runs in the folder of this command, with FK_STAGE, PATH, "
                + "HOME, LANG and TMPDIR as its environment. What it says are facts about files: it cannot choose folders outside of "
                + "-d, header fields or options.",
        ],
        operands: [
            OperandSpec("scheme", "the scheme of its places: 2 to 32 letters, digits, '+', '-' and '.'"),
            OperandSpec(
                "program", "the program: a path, or a name to look up in PATH; after -- if an argument begins with -",
                hint: .file),
            OperandSpec("arg", "its arguments", 0, nil, hint: .file),
        ],
        options: [.value("time-limit", nil, "S", "kill the program after this many seconds (default: 10)")],
        examples: [
            .init("fk source add lab -- python3 lab.py", "fk get -r lab:RUN7 asks the program for the files"),
            .init("fk source add --time-limit 300 tape /usr/local/bin/tape-list", "a program that takes its time"),
        ], usesSettings: false,
        make: { arguments, context in
            try SourceCommand(action: .add(program(arguments, context)), context: context)
        })

    static let remove = CommandSpec(
        path: ["source", "remove"], summary: "remove a program that lists files",
        operands: [OperandSpec("scheme", "the scheme, see fk source list")],
        examples: [.init("fk source remove lab", "lab: is no source any more; its files and barrels stay")],
        make: { SourceCommand(action: .remove($0.operands[0].lowercased()), context: $1) })

    static let trust = CommandSpec(
        path: ["source", "trust"], summary: "let the source programs of a copied work path run",
        discussion: [
            "Programs run only in the work path that they were added to. In a copy, after a restore or on another disk they do not run. "
                + "fk source list shows them: look at them before you trust them."
        ],
        examples: [.init("fk source trust", "every source program of this work path may run here")],
        make: { SourceCommand(action: .trust, context: $1) })

    static let test = CommandSpec(
        path: ["source", "test"], summary: "list a place of any source, and fetch nothing",
        discussion: [
            "Prints SIZE NAME URL for each file. No task is made. Exit status 1: a part of the place could not be listed, or an entry was "
                + "refused."
        ],
        operands: [OperandSpec("source", "SCHEME:REST, such as lab:RUN7 or s3://BUCKET/PREFIX")],
        options: Array(SourceImport.specs.prefix(2)) + TaskInput.connectionSpecs,
        examples: [.init("fk source test lab:RUN7", "what the program says")],
        make: {
            SourceCommand(
                action: .test(
                    $0.operands[0], include: $0.all("include"), exclude: $0.all("exclude"),
                    try TaskInput.connection($0, $1)), context: $1)
        })

    private static func program(_ arguments: ParsedArguments, _ context: CommandContext) throws -> SourceProgram {
        let limit = try arguments.seconds("time-limit", "--time-limit", in: 1...3_600)
        let scheme = arguments.operands[0]
        var words = Array(arguments.operands.dropFirst())
        if words[0].utf8.contains(UInt8(ascii: "/")) {
            words[0] = try Paths.absolute(words[0], from: context.workingDirectory)
        }
        do {
            return try SourceProgram(
                scheme: scheme.hasSuffix(":") ? String(scheme.dropLast()) : scheme, arguments: words,
                timeLimit: .milliseconds(Int64((limit ?? 10) * 1_000)), directory: context.workingDirectory)
        } catch {
            throw arguments.error(error.message)
        }
    }
}
