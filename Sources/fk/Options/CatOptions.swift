import FKCore
import FKManifests
import FKMiddleware

struct CatOptions: Sendable {
    /// What an operand names.
    enum Item: Sendable {
        /// The next task of `input`.
        case url
        case task(TaskReference)
    }

    /// The operands in order; further tasks of `input` are those of a list.
    var items: [Item]
    var input: TaskInput
    var run: RunOptions
    /// The bytes of each file; nil for all.
    var range: Range<Int64>?
    /// The bytes on the disk.
    var window: Int64
    var keep: Bool
    /// True if a digest was given on the command line.
    var hasChecksum: Bool

    /// The options of other commands that have no meaning here: nothing gets a name.
    private static let otherInput: Set<String> = [
        "adopt",
        "output", "overwrite", "rename", "skip", "reuse", "attribute", "signed-by", "signature",
    ]
    private static let runOptions: Set<String> = [
        "min-free", "connections", "limit-rate", "per-host", "transport", "no-private",
    ]

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                .value(
                    "range", nil, "A-B",
                    "only the bytes from A to B, both counted from 0 and included; A- goes to the end of the file"),
                .value(
                    "window", nil, "SIZE",
                    "bytes that are fetched ahead of the reader and kept on the disk meanwhile (default: 64M; less than 1M counts as 1M)"
                ),
                .flag(
                    "keep", nil,
                    "keep each file in the folder of -d, as 'fk get' does; without it nothing is left at the end"),
            ])
        + TaskInput.specs.filter { !otherInput.contains($0.long) }
        + RunOption.specs.filter { runOptions.contains($0.long) }

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        if arguments.has("json") {
            throw arguments.error(
                "--json has no place here: standard output has the bytes of the files, and nothing else.")
        }
        if arguments.operands.isEmpty, !arguments.has("input") {
            throw arguments.error("<url> is missing: give URLs, tasks, or a list with -i FILE.")
        }
        if let name = arguments.operands.first(where: { SourceReference($0)?.isPublication == true }) {
            throw arguments.error(
                "\(name.visible) stands for several files: name them by their URLs, or fetch them with fk get -b NAME."
            )
        }
        if let name = arguments.operands.first(where: { name in
            SourceReference(name).map { $0.rest.hasPrefix("//") && !["http", "https"].contains($0.scheme) } == true
        }), try SourceImport.registry(context)[SourceReference(name)?.scheme ?? ""] != nil {
            throw arguments.error("fk cat reads http and https URLs: fk get \(name.shellWord) fetches \(name.visible).")
        }
        items = arguments.operands.map { $0.contains("://") ? .url : .task(TaskReference($0)) }
        let urls = arguments.operands.filter { $0.contains("://") }
        if arguments.has("metalink"), urls.count < items.count {
            throw arguments.error("--metalink is about URLs: read tasks with another command.")
        }
        input = try TaskInput(arguments, urls: urls, context: context, needsTask: false)
        run = try RunOptions(arguments, context)
        hasChecksum = arguments.has("checksum")
        keep = arguments.has("keep")
        if arguments.isGiven("directory"), !keep {
            throw arguments.error("-d is the folder of --keep: without it no file is kept.")
        }
        window = try arguments.size("window", "--window") ?? 64 << 20
        range = try Self.range(arguments)
        if range != nil, keep {
            throw arguments.error("--keep keeps whole files, and --range is a part: give one of them.")
        }
        if range != nil, hasChecksum, arguments["checksum"] != TaskInput.noChecksum {
            throw arguments.error("--checksum is about the whole file, and --range is a part: give one of them.")
        }
    }

    private static func range(_ arguments: ParsedArguments) throws -> Range<Int64>? {
        guard let text = arguments["range"] else { return nil }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = number(parts[0]) else { throw wrongRange(text, arguments) }
        if parts[1].isEmpty { return first..<Int64.max }
        guard let last = number(parts[1]), last >= first, last < .max else { throw wrongRange(text, arguments) }
        return first..<last + 1
    }

    private static func number(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text).flatMap { $0 < .max ? $0 : nil } : nil
    }

    private static func wrongRange(_ text: String, _ arguments: ParsedArguments) -> UsageError {
        arguments.error(
            "--range: '\(text.visible)' is not allowed here. Give A-B or A-, in bytes from 0, such as 0-499 for the first 500."
        )
    }
}
