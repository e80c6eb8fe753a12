import FKCore
import FKManifests
import FKMiddleware

struct GetOptions: Sendable {
    var input: TaskInput
    var run: RunOptions
    var barrel: String?
    /// The part of the list that this process takes; nil for all of it.
    var shard: ShardOptions?
    /// The repositories, records and places among the operands.
    var sources: [SourceImport] = []
    /// The objects of buckets among the operands.
    var objects: [SourceImport] = []
    /// True for all files of one source (`-r`).
    let isRecursive: Bool
    /// The URLs among the operands that may be folders: their last part has no dot.
    var folders: [String]
    /// True prints what the sources have, and fetches nothing.
    var isDryRun: Bool

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                .value("barrel", "b", "NAME", hint: .barrels, "add the files to this barrel; it is created if missing"),
                .flag(
                    "recursive", "r",
                    "the URL is a folder, or the name a source such as s3://BUCKET/PREFIX: all its files, below -d (default: ./LAST-PART), "
                        + "in the barrel of that name"),
                ExtractCommand.spec,
            ] + SourceImport.specs + [dryRunSpec]) + TaskInput.specs + RunOption.specs + ShardOptions.specs

    static let dryRunSpec = OptionSpec.flag(
        "dry-run", nil, "print new, changed, same and gone files of the source with their sizes, and fetch nothing")

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        isDryRun = arguments.has("dry-run")
        barrel = try arguments.barrel()
        isRecursive = try arguments.has("recursive") || barrel == nil && Self.isWhole(arguments.operands, context)
        if let barrel, barrel.contains("="), !context.global.place.hasBarrel(barrel) {
            throw arguments.error(
                "-b is the barrel of the files, and there is none named '\(barrel.visible)'. For a cookie write "
                    + "-H 'Cookie: NAME=VALUE' or --cookies FILE.")
        }
        let urls: [String]
        if isRecursive {
            urls = []
            let source = try Self.place(arguments, context)
            sources = [source]
            barrel = barrel ?? source.folderName.barrelName
            guard barrel != nil else {
                throw arguments.error("The source has no name for a barrel: give one with -b NAME.")
            }
        } else {
            for option in ["include", "exclude", "depth", "dry-run", "layout", "platform"] where arguments.has(option) {
                throw arguments.error("--\(option) is about a folder or another source: give -r.")
            }
            let names = try arguments.operands.filter { try Self.isName($0, context) }
            urls = arguments.operands.filter { !names.contains($0) }
            let several = names.filter { !Self.isObject($0) }
            if let name = several.first {
                guard barrel != nil else {
                    throw arguments.error(
                        "\(name.visible) stands for several files: name a barrel for them with -b NAME, or give -r."
                    )
                }
                for option in ["output", "mirror", "checksum"] where arguments.has(option) {
                    throw arguments.error(
                        "--\(option) describes a single file, and \(name.visible) stands for several.")
                }
            }
            if let name = names.first {
                for option in ["metalink", "signed-by"] where arguments.has(option) {
                    throw arguments.error("--\(option) is about a URL, and \(name.visible) is none.")
                }
                if DigestList.isOne(arguments) {
                    throw arguments.error(
                        "--checksum \((arguments["checksum"] ?? "").visible) is about a URL. For \(name.visible) give "
                            + "ALG=HEX.")
                }
            }
            sources = try several.compactMap { try SourceImport($0, arguments, context) }
            objects = try names.filter(Self.isObject).compactMap {
                try SourceImport($0, arguments, context, isSingle: true)
            }
        }
        folders = urls.filter { url in
            url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/", omittingEmptySubsequences: false).last.map {
                !$0.contains(".")
            } ?? false
        }
        input = try TaskInput(
            arguments, urls: urls, objects: objects.count,
            barrelFolder: barrel.flatMap { try BarrelOptions.known($0, context.global)?.directory }, context: context,
            needsTask: sources.isEmpty && objects.isEmpty)
        input.barrel = barrel
        run = try RunOptions(arguments, context)
        shard = try ShardOptions(arguments)
    }

    /// True for the name of a source that stands for one file.
    private static func isObject(_ text: String) -> Bool { SourceReference(text)?.namesObject == true }

    /// True for the only name, if it stands for all files of a release, an image, an item or an accession: `-r` is meant.
    private static func isWhole(_ operands: [String], _ context: CommandContext) throws -> Bool {
        guard operands.count == 1, try isName(operands[0], context), let reference = SourceReference(operands[0]),
            !reference.namesObject, !reference.isPublication
        else { return false }
        return try !SourceImport.registry(context).isProgram(reference.scheme)
    }

    /// True for the name of a source that is no URL.
    private static func isName(_ text: String, _ context: CommandContext) throws -> Bool {
        guard let reference = SourceReference(text), !["http", "https"].contains(reference.scheme) else { return false }
        return try SourceImport.registry(context)[reference.scheme] != nil
    }

    /// The source of `-r`.
    private static func place(_ arguments: ParsedArguments, _ context: CommandContext) throws -> SourceImport {
        if let range = arguments.operands.first, range.contains("-"), range.allSatisfy({ $0.isNumber || $0 == "-" }) {
            throw arguments.error(
                "-r is --recursive, and takes a source. A part of a file: fk cat --range A-B URL")
        }
        guard arguments.operands.count == 1, !arguments.has("input") else {
            throw arguments.error("-r takes one source, such as https://HOST/FOLDER/.")
        }
        for option in ["output", "mirror", "metalink", "signed-by"] where arguments.has(option) {
            throw arguments.error("--\(option) is about a single file, and -r takes all files of a source.")
        }
        if let checksum = arguments["checksum"], checksum != DigestList.auto {
            throw arguments.error(
                "--checksum with -r is auto: lists such as SHA256SUMS in the folders bind their files.")
        }
        let operand = arguments.operands[0]
        guard let source = try SourceImport(operand, arguments, context, isRecursive: true) else {
            throw arguments.error(
                "'\(operand.masked.visible)' is no source. The schemes are "
                    + "\(try SourceImport.registry(context).schemes.joined(separator: ", ")).")
        }
        return source
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

struct BarrelCreateOptions: Sendable {
    var name: String
    var input: TaskInput

    static let specs: [OptionSpec] =
        TaskInput.specs + RunOption.specs("connections", "min-free")

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        name = try arguments.namedBarrel()
        input = try TaskInput(
            arguments, urls: Array(arguments.operands.dropFirst()), context: context, needsTask: false)
        input.barrel = name
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
    /// The absolute path of the folder that the folders of new barrels are in: the saved one, or the current one.
    private(set) var base: String
    /// True creates a missing barrel.
    var creates = false
    /// True takes names that begin with a dot from a server's list as well.
    var takesHidden: Bool { arguments.has("hidden") }
    var isServerList: Bool { source != nil || list.map { !$0.speaker.mayOrder } ?? false }
    /// Makes errors that refer to the command's help.
    let arguments: ParsedArguments

    /// True follows no redirect to private addresses, now and for the files.
    var noPrivate: Bool { arguments.has("no-private") }

    static let addSpecs = [TaskInput.inputSpec] + ListInput.specs + SignatureOptions.specs
    static let importSpecs: [OptionSpec] =
        [
            .value(
                "directory", "d", "DIR", hint: .directory,
                "folder for the files (default: the barrel's; for a new barrel the current folder, for a bag the bag's own, for a "
                    + "server's list ./NAME)"
            )
        ] + ListInput.specs + SignatureOptions.specs + [
            .flag("recursive", "r", "a URL is a folder with its subfolders, and no list")
        ] + SourceImport.specs + OptionSpec.under(.general, RunOption.specs("no-private"))

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        self.arguments = arguments
        base = context.workingDirectory
        name = try arguments.namedBarrel()
        urls = try arguments.memberURLs(context)
        signature = try SignatureOptions(arguments, context)
        if let path = arguments["input"], signature == nil, NearbyFile.isURL(path) {
            source = try SourceImport(listAt: path, arguments, context)
        } else if let path = arguments["input"] {
            list = try ListInput(path, arguments)
            if signature != nil, let url = urls.first { throw arguments.error(SignatureOptions.besideList(url)) }
        } else if signature != nil {
            throw arguments.error("--signed-by is about a list: give one with -i FILE.")
        } else if urls.isEmpty {
            throw arguments.error("<url> is missing: give URLs, or a list with -i FILE.")
        }
    }

    /// The options of `import <name> FILE`.
    init(importing arguments: ParsedArguments, _ context: CommandContext) throws {
        self.arguments = arguments
        base = context.workingDirectory
        name = try arguments.namedBarrel()
        creates = true
        urls = []
        signature = try SignatureOptions(arguments, context)
        if let given = arguments["directory"] {
            guard !given.isEmpty else { throw arguments.error("-d: the folder's name is empty.") }
            base = try Paths.absolute(given, from: context.workingDirectory)
            if arguments.isGiven("directory") { directory = base }
        }
        // What a key has signed is one document: a list, and not the record that its page may link to.
        let isSignedList = signature != nil && NearbyFile.isURL(arguments.operands[1])
        let isList = NearbyFile.isURL(arguments.operands[1])
        source =
            isSignedList
            ? nil
            : try SourceImport(arguments.operands[1], arguments, context, isRecursive: arguments.has("recursive"))
        if let source {
            for option in ListInput.optionNames + ["signed-by"]
            where arguments.has(option) && (!isList || option == "signed-by") {
                throw arguments.error(
                    "--\(option) is about a list in a file: download \(source.source.title.masked.visible) first."
                )
            }
        } else {
            for option in ["include", "exclude", "layout", "depth", "recursive", "platform", "anonymous"]
            where arguments.has(option) {
                throw arguments.error("--\(option) is about a source, such as https://HOST/FOLDER/ or hf:OWNER/REPO.")
            }
            list = try ListInput(arguments.operands[1], arguments)
        }
    }
}

extension ParsedArguments {
    func namedBarrel() throws -> String { try barrelName(operands[0]) }

    func barrel() throws -> String? { try self["barrel"].map(barrelName) }

    /// The URLs that follow a barrel's name as operands.
    func memberURLs(_ context: CommandContext) throws -> [String] {
        try operands.dropFirst().map { url in
            if let reason = url.urlFault { throw notURL(url, reason, context) }
            return url
        }
    }

    /// The error of a word that is no URL. For the name of a source it has the command that takes it.
    func notURL(_ text: String, _ reason: String, _ context: CommandContext) -> UsageError {
        guard let reference = SourceReference(text), !["http", "https"].contains(reference.scheme),
            let registry = try? SourceImport.registry(context), registry[reference.scheme] != nil
        else {
            return error(SourceImport.unknownScheme(text, context) ?? "Not a URL to download: \(reason).")
        }
        let barrel = command.first == "barrel" ? operands.first.map(\.shellWord) ?? "NAME" : "NAME"
        let verb = reference.namesObject ? "fk get -b" : "fk barrel import"
        let shown = text.visible
        let advice = context.global.suggested("\(verb) \(barrel) \(shown.shellWord)")
        return error("\(shown) is the name of a source and no URL. To take its files: \(advice)")
    }

    /// Checks the name of a barrel.
    func barrelName(_ name: String) throws -> String {
        do {
            try name.validateAsBarrelName()
            return name
        } catch let fault as DownloadError {
            throw error(fault.message)
        }
    }
}
