/// `get`, `run` and `limit`.
enum TransferCommands {
    static let all: [CommandSpec] = [get, run, LimitCommand.spec]

    static let get = CommandSpec(
        path: ["get"], summary: "download URLs",
        discussion: [
            "Fetches the URLs into the folder and ends when all of them are done. The same command given again continues "
                + "what was interrupted, and only reports files that are complete already.",
            "If another process already runs downloads of this work path, the URLs are handed to it and its progress is "
                + "followed.",
        ],
        operands: [OperandSpec("url", "what to download: http or https", 0, nil)], options: GetOptions.specs,
        examples: [
            .init("fk get https://example.com/a.iso", "into this folder"),
            .init("fk get -d isos -j4 -i list.txt", "a list, four files at once"),
            .init("fk get --checksum sha-256=2cf2… https://example.com/a.iso", "refuse anything else"),
        ],
        make: { try GetCommand(options: GetOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })

    static let run = CommandSpec(
        path: ["run"], summary: "run everything that is waiting",
        discussion: ["Ends when no task is left that can run. It does not wait for suspended tasks."],
        options: RunOptions.specs,
        examples: [.init("fk run --limit-rate 2M", "at most 2 MiB a second, all of its files together")],
        make: { try RunCommand(options: RunCommandOptions($0, $1), global: GlobalOptions($0, $1), context: $1) })
}
