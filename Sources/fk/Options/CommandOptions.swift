import FKCore
import FKManifests
import FKMiddleware

/// `fk get`
struct GetOptions: Sendable {
    var input: TaskInput
    var run: RunOptions
    var barrel: String?
    /// The part of the list that this process takes; nil for all of it.
    var shard: ShardOptions?
    /// The repositories and records among the operands.
    var sources: [SourceImport] = []

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [.value("barrel", "b", "NAME", hint: .barrels, "add the files to this barrel; it is created if missing")])
        + TaskInput.specs + RunOptions.specs + ShardOptions.specs

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        let names = arguments.operands.filter(NamedSources.isName)
        let urls = arguments.operands.filter { !NamedSources.isName($0) }
        barrel = try arguments.barrel()
        if let name = names.first, barrel == nil {
            throw arguments.error(
                "\(Escaping.visible(name)) stands for several files: name a barrel for them with -b NAME.")
        }
        for option in ["output", "mirror", "checksum", "metalink", "signed-by"]
        where arguments.has(option) && !names.isEmpty {
            throw arguments.error("--\(option) is about a list or a URL, and \(Escaping.visible(names[0])) is neither.")
        }
        sources = try names.compactMap { try SourceImport($0, arguments, context) }
        input = try TaskInput(arguments, urls: urls, context: context, needsTask: sources.isEmpty)
        run = try RunOptions(arguments, context)
        shard = try ShardOptions(arguments)
    }
}

/// `fk run`, `fk barrel run`
struct RunCommandOptions: Sendable {
    /// The barrels to run; empty runs all waiting tasks.
    var barrels: [String]
    var run: RunOptions
    /// The part of the barrel that this process takes; nil for all of it.
    var shard: ShardOptions?

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        barrels = try arguments.operands.map(arguments.barrelName)
        run = try RunOptions(arguments, context)
        shard = try ShardOptions(arguments)
        if shard != nil, barrels.count > 1 {
            throw arguments.error("--shard takes a part of one barrel. Run the barrels one after the other.")
        }
    }
}

/// `fk barrel create`
struct BarrelCreateOptions: Sendable {
    var name: String
    var input: TaskInput

    static let specs: [OptionSpec] =
        TaskInput.specs + OptionSpec.under(.speed, [RunOptions.connectionsSpec])
        + OptionSpec.under(.files, [RunOptions.minFreeSpec])

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        name = try arguments.namedBarrel()
        input = try TaskInput(
            arguments, urls: Array(arguments.operands.dropFirst()), context: context, needsTask: false)
    }
}

/// `fk barrel add` and `import`. The files get the barrel's folder and options.
struct BarrelAddOptions: Sendable {
    var name: String
    var urls: [String]
    var list: ListInput?
    var source: SourceImport?
    /// The key of `--signed-by`; nil for none.
    let signature: SignatureOptions?
    /// The absolute path of the folder given with `-d`; nil for the barrel's.
    var directory: String?
    /// True creates a missing barrel.
    var creates = false
    /// Makes errors that refer to the command's help.
    let arguments: ParsedArguments

    static let addSpecs = [TaskInput.inputSpec] + ListInput.specs + SignatureOptions.specs
    static let importSpecs: [OptionSpec] =
        [
            .value(
                "directory", "d", "DIR", hint: .directory,
                "folder for the files (default: the barrel's; for a new barrel the current folder, for a bag the bag's own)"
            )
        ] + ListInput.specs + SignatureOptions.specs + [
            .repeated(
                "include", nil, "GLOB", "only files of the repository or record that match, such as '*.safetensors'"),
            .repeated("exclude", nil, "GLOB", "leave out files of the repository or record that match"),
            .value(
                "layout", nil, "LAYOUT", hint: .choices(HubLayout.Choice.allCases.map(\.rawValue)),
                "plain (default), or hub: the cache of the hub's own client, which finds the files offline"),
        ]

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        self.arguments = arguments
        name = try arguments.namedBarrel()
        urls = try arguments.memberURLs()
        signature = try SignatureOptions(arguments, context)
        if let path = arguments["input"] {
            list = try ListInput(path, arguments)
        } else if signature != nil {
            throw arguments.error("--signed-by is about a list: give one with -i FILE.")
        } else if urls.isEmpty {
            throw arguments.error("<url> is missing: give URLs, or a list with -i FILE.")
        }
    }

    /// The options of `import <name> FILE`.
    init(importing arguments: ParsedArguments, _ context: CommandContext) throws {
        self.arguments = arguments
        name = try arguments.namedBarrel()
        creates = true
        urls = []
        signature = try SignatureOptions(arguments, context)
        if let given = arguments["directory"] {
            guard !given.isEmpty else { throw arguments.error("-d: the folder's name is empty.") }
            directory = try Paths.absolute(given, from: context.workingDirectory)
        }
        // What a key has signed is one document: a list, and not the record that its page may link to.
        let isSignedList = signature != nil && NearbyFile.isURL(arguments.operands[1])
        source = isSignedList ? nil : try SourceImport(arguments.operands[1], arguments, context)
        if let source {
            for option in ["format", "base", "skip-bad", "signed-by"] where arguments.has(option) {
                throw arguments.error(
                    "--\(option) is about a list in a file: download \(Escaping.visible(source.source.title)) first.")
            }
        } else {
            for option in ["include", "exclude", "layout"] where arguments.has(option) {
                throw arguments.error("--\(option) is about a repository or record, such as hf:OWNER/REPO.")
            }
            list = try ListInput(arguments.operands[1], arguments)
        }
    }
}

/// `fk demo`
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

extension ParsedArguments {
    /// The barrel that the first operand names.
    func namedBarrel() throws -> String { try barrelName(operands[0]) }

    /// The value of `--barrel`; nil if it was not given.
    func barrel() throws -> String? { try self["barrel"].map(barrelName) }

    /// The URLs that follow a barrel's name as operands.
    func memberURLs() throws -> [String] {
        try operands.dropFirst().map { url in
            if let reason = InputURL.fault(in: url) { throw error("Not a URL to download: \(reason).") }
            return url
        }
    }

    /// Checks the name of a barrel.
    func barrelName(_ name: String) throws -> String {
        do {
            try BarrelName.validate(name)
            return name
        } catch let fault as DownloadError {
            throw error(fault.message)
        }
    }
}
