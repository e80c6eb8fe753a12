import FKCore

enum BarrelCommands {
    static let all: [CommandSpec] =
        [
            create, add, remove, list, show, BarrelCheckCommand.missing, watch, run, BarrelCheckCommand.refresh,
            BarrelSyncCommand.spec, BarrelPublishCommand.spec,
        ]
        + [
            verb(.suspend, "stop all members and keep their bytes", "stop the members of photos"),
            verb(.resume, "resume suspended members", "queue the suspended members of photos again"),
            verb(.cancel, "stop all members and delete their unfinished bytes", "stop the members of photos"),
            verb(.retry, "queue failed and cancelled members again", "try the failed members of photos again"),
            verb(
                .forget, "forget all members and keep their finished files", "clear the barrel; every file stays"),
            verb(.trash, "forget all members and delete their files", "delete the files of photos; asks first"),
            delete, importList, export,
        ]

    private static let name = OperandSpec("name", "the barrel", hint: .barrels)
    private static let yes = OptionSpec.flag("yes", "y", "do not ask for confirmation")

    static let create = CommandSpec(
        path: ["barrel", "create"], summary: "create a barrel, a named group of files",
        discussion: [
            "The folder and the options, but not --attribute, are stored with the barrel and apply to members added later. "
                + "'fk barrel run' starts the downloads."
        ],
        operands: [name, OperandSpec("url", "URLs of the first members", 0, nil)], options: BarrelCreateOptions.specs,
        examples: [
            .init("fk barrel create photos -d ~/photos -i list.txt", "a barrel with the URLs of a list"),
            .init("fk barrel run photos", "download its members"),
        ],
        make: { try BarrelEditCommand(edit: .create(BarrelCreateOptions($0, $1)), context: $1) })

    static let add = CommandSpec(
        path: ["barrel", "add"], summary: "add URLs to a barrel",
        operands: [name, OperandSpec("url", "URLs of the new members", 0, nil)], options: BarrelAddOptions.addSpecs,
        examples: [.init("fk barrel add photos https://example.com/4.jpg", "one more member")],
        make: { try BarrelEditCommand(edit: .add(BarrelAddOptions($0, $1)), context: $1) })

    static let remove = CommandSpec(
        path: ["barrel", "remove"], summary: "remove URLs from a barrel and keep their tasks",
        operands: [name, OperandSpec("url", "URLs of members", 1, nil)],
        examples: [.init("fk barrel remove photos https://example.com/4.jpg", "remove one member")],
        make: { try BarrelEditCommand(edit: .remove(name: $0.namedBarrel(), urls: $0.memberURLs($1)), context: $1) })

    static let list = CommandSpec(
        path: ["barrel", "list"], summary: "list barrels and their progress",
        examples: [.init("fk barrel list", "every barrel of the work path")],
        make: { BarrelQueryCommand(query: .list, context: $1) })

    static let show = CommandSpec(
        path: ["barrel", "show"], summary: "show a barrel and its members", operands: [name],
        examples: [.init("fk barrel show photos", "each member with its state")],
        make: { try BarrelQueryCommand(query: .show(name: $0.namedBarrel()), context: $1) })

    static let watch = CommandSpec(
        path: ["barrel", "watch"], summary: "show a barrel until none of its members can run",
        operands: [name],
        examples: [.init("fk barrel watch photos", "works in a second terminal, too")],
        make: { try WatchCommand(barrel: $0.namedBarrel(), context: $1) }
    )

    static let run = CommandSpec(
        path: ["barrel", "run"], summary: "download the members of barrels",
        discussion: [
            "Ends when no member is left that can run. It does not wait for suspended members. Failed and cancelled members "
                + "are not tried again, and the exit status is 1; 'fk barrel retry' queues them. With --shard, failed "
                + "members are tried again."
        ],
        operands: [OperandSpec("name", "the barrels", 1, nil, hint: .barrels)],
        options: RunOption.specs + ShardOptions.specs,
        examples: [
            .init("fk barrel run photos -j 4", "four files at once"),
            .init("fk barrel run photos --shard auto", "the part of this task of a Slurm array"),
        ],
        make: { try RunCommand(options: RunCommandOptions($0, $1), context: $1) })

    static let delete = CommandSpec(
        path: ["barrel", "delete"], summary: "forget a barrel and keep its tasks and files", operands: [name],
        options: [yes], examples: [.init("fk barrel delete photos", "asks for confirmation on a terminal")],
        make: { try BarrelEditCommand(edit: .delete(name: $0.namedBarrel(), isConfirmed: $0.has("yes")), context: $1) })

    static let importList = CommandSpec(
        path: ["barrel", "import"], summary: "add the files of a list",
        discussion: [
            "FILE is a list of URLs, aria2's input file, curl's config file, CSV, JSON or JSON Lines, a Metalink, a checksum list, the folder "
                + "of a bag, or an export of 'fk barrel export', also compressed; '-' is standard input. The form is recognised by the content.",
            "A changed list is imported again to the same barrel: its digests replace those of the list before, changed files are queued, "
                + "and members that it does not have any more are named and stay.",
            "hf:[datasets/]OWNER/REPO[@REVISION] is a repository of a Hugging Face hub (HF_ENDPOINT), pinned to its present "
                + "commit. The token is HF_TOKEN or that of the hub's client, and goes to the hub only.",
            "doi:10.X/Y, zenodo:NUMBER and the URL of a record stand for its files: Zenodo, Dataverse, and pages with FAIR "
                + "Signposting, RO-Crate or Croissant. A URL may also lead to a list.",
            "A URL that ends with a slash may be a folder that its server lists: all of its files are taken. -r says that it has to be "
                + "one. 'fk barrel sync' follows it.",
            "A missing barrel is created. Its folder is the current one unless -d is given, that of a bag is the bag's own, and "
                + "that of a server's list is ./NAME. Sizes and digests of the list are checked before a file gets its name.",
            "A list from a server only names files: its folders, header fields and options are left out and named. In a home folder "
                + "names that begin with a dot are left out as well, unless --hidden is given.",
        ],
        operands: [name, OperandSpec("file", "the list, a repository hf:…, or a record doi:…", hint: .file)],
        options: BarrelAddOptions.importSpecs,
        examples: [
            .init("fk barrel import photos photos.txt", "add the members of a list that another machine exported"),
            .init("fk barrel import release release.meta4 -d iso", "the files of a Metalink, with mirrors and digests"),
            .init(
                "fk barrel import data SHA256SUMS --base https://example.com/data/",
                "the files of a checksum list, from that folder"),
            .init("fk barrel import pub https://example.com/pub/ -d pub", "the files of a folder of a web server"),
            .init(
                "fk barrel import table samples.tsv --column url=address --column md5=control",
                "a table with other names of columns"),
            .init(
                "fk barrel import model hf:OWNER/REPO --include '*.safetensors' -d model",
                "files of a Hugging Face repository"),
            .init(
                "fk barrel import covid doi:10.5281/zenodo.3763271 -d covid",
                "the files of a record, with sizes and MD5"),
        ],
        make: { try BarrelEditCommand(edit: .add(BarrelAddOptions(importing: $0, $1)), context: $1) })

    static let export = CommandSpec(
        path: ["barrel", "export"], summary: "print a barrel's members as an input list",
        discussion: [
            "Every format can be imported again. The names in metalink, sha256sums and lock are relative to the barrel's "
                + "folder; finished files whose SHA-256 is not known are read for them. A lock has one member a line, "
                + "sorted, with size and SHA-256: keep it in version control."
        ],
        operands: [name],
        options: [
            .value(
                "format", nil, "FORMAT", hint: .choices(BarrelExport.Format.allCases.map(\.rawValue)),
                "urls (default), json (the default with --json), aria2, metalink, sha256sums or lock"),
            .flag("missing", nil, "only members that are not complete"),
        ],
        examples: [
            .init("fk barrel export photos --format aria2 > photos.txt", "a list with names, folders and digests"),
            .init(
                "fk barrel export photos --format lock > photos.lock", "sizes and digests, to fetch just these files"),
        ],
        make: { arguments, context in
            let format =
                try arguments.choice("format", "--format", of: BarrelExport.Format.self)
                ?? (context.global.json ? .json : .urls)
            return try BarrelQueryCommand(
                query: .export(name: arguments.namedBarrel(), format, onlyMissing: arguments.has("missing")),
                context: context)
        })

    private static func verb(_ verb: Verb, _ summary: String, _ example: String) -> CommandSpec {
        CommandSpec(
            path: ["barrel", verb.rawValue], summary: summary,
            discussion: VerbCommands.warnings(of: verb, ofBarrel: true),
            operands: [name], options: verb == .trash || verb == .forget ? [yes] : [],
            examples: [.init("fk barrel \(verb.rawValue) photos", example)],
            make: { arguments, context in
                try VerbCommand(
                    verb: verb, targets: .barrel(arguments.namedBarrel()), isConfirmed: arguments.has("yes"),
                    context: context)
            })
    }
}
