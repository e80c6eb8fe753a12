import FKCore

struct DemoOptions: Sendable {
    /// The absolute path of the folder for the files; nil uses a temporary folder that is removed at the end.
    var directory: String?
    /// The rate of each connection of the demo's server in bytes per second, so that progress is visible; nil uses
    /// the demo's default, and 0 sets no limit.
    var rate: Int64?
    var jobs: Int?

    static let specs: [OptionSpec] = [
        .value(
            "directory", "d", "DIR", hint: .directory,
            "keep the files in DIR (default: a temporary folder, which is removed)"),
        .value("jobs", "j", "N", "download N files at once (1 to 64)"),
        .value("limit-rate", nil, "RATE", "limit of each connection of the server; 0: no limit"),
    ]

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        directory = try arguments["directory"].map { try Paths.absolute($0, from: context.workingDirectory) }
        rate = try arguments.rate("limit-rate", "--limit-rate")
        jobs = try arguments.integer("jobs", "-j", in: 1...64)
    }
}
