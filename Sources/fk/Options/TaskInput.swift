import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The options that describe downloads, and the resulting tasks, for `get`, `barrel create` and `barrel add`.
struct TaskInput: Sendable {
    /// The tasks in order: those of the command line, then those of the list.
    let spool: TaskSpool
    /// The tasks, which stay in the spool.
    var tasks: [TaskDescription] { (try? spool.all()) ?? [] }
    /// The absolute path of the folder for files without a folder of their own.
    var directory: String
    /// The absolute path of the folder that the folders of servers' lists are in: that of `-d`, the saved one, or the current one.
    let base: String
    /// True if the folder is the barrel's.
    let isBarrelFolder: Bool
    @Boxed var shared: TaskOptions

    /// The entries of the list that were left out and named.
    private(set) var refused = 0
    /// The key of `--signed-by`; nil for none.
    private(set) var signature: SignatureOptions?
    /// The list whose signature is proven by `resolve`; nil for none.
    @Boxed private(set) var unproven: (list: ListInput, settings: ListedTasks.Settings)? = nil
    /// The list at a URL, which `resolve` asks for, and its URL; nil for none.
    @Boxed private(set) var remote: (source: SourceImport, url: String)? = nil
    /// The list of digests of `--checksum @…` and `auto`; nil for none.
    private(set) var digests: DigestList?
    /// True if a Metalink in place of a file is followed.
    private(set) var followsMetalink = false
    private(set) var hasList = false
    @Boxed private(set) var settings: ListedTasks.Settings
    var barrel: String?
    /// The number of tasks whose URLs stand on the command line. They come first.
    private(set) var operands = 0
    /// What the command says of its only file, if that is an object of a bucket; nil otherwise. It has no URL.
    @Boxed private(set) var object: TaskDescription? = nil

    static let inputSpec = OptionSpec.value(
        "input", "i", "FILE|URL", hint: .file, "read a list of files from FILE or a URL; '-' is standard input")

    /// The options whose values `fk config` saves.
    static let saved = [
        SavedOption(name: "retry", usual: "4") { _ = try retries($0, $1) },
        SavedOption(name: "timeout", usual: "30 s to connect, 60 s of silence") { _ = try timeout($0, $1) },
        .path("directory", usual: "the current folder"),
        SavedOption(
            name: "proxy", usual: "that of the environment", check: { arguments, _ in _ = try arguments.proxy() },
            shown: \.masked),
        authorities,
    ]

    private static var authorities: SavedOption {
        var option = SavedOption.path("cacert", usual: "the authorities of the system")
        option.stored = CertificateFile.check
        return option
    }

    private static func retries(_ arguments: ParsedArguments, _ written: String) throws -> Int? {
        try arguments.integer("retry", written, in: 0...1000)
    }

    private static func timeout(_ arguments: ParsedArguments, _ written: String) throws -> Double? {
        try arguments.seconds("timeout", written, in: 1...86_400)
    }

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                .value(
                    "directory", "d", "DIR", hint: .directory,
                    "folder for the files; created if missing (default: the barrel's, else the current folder, and ./NAME for a server's list)"
                ),
                .value("output", "o", "FILE", hint: .file, "name of the file; for a single URL"),
                inputSpec,
                .value(
                    "adopt", nil, "FILE|DIR", hint: .file,
                    "continue the partial file of curl, wget, a browser or aria2 (with FILE.aria2): its bytes count if a digest or the "
                        + "server's last 4 KiB prove them, and FILE is replaced only then; with DIR the files there that have the names "
                        + "of the new ones"),
            ] + ListInput.specs + [
                .value("max-size", nil, "SIZE", "fail if a file is larger than SIZE, such as 700M"),
                .value(
                    "expect", nil, "TYPE", hint: .choices(["file"]),
                    "fail unless the server sends this MIME type, such as application/zip or image/*; file: any type but "
                        + "a web page's"),
                .flag("overwrite", nil, group: "existing", "replace an existing file"),
                .flag("rename", nil, group: "existing", "choose the next free name if the file exists"),
                .flag("skip", nil, group: "existing", "keep an existing file and count it as complete"),
                .flag("reuse", nil, "take the bytes from a finished file of the work path that has the same SHA-256"),
                .flag("remote-time", nil, "give finished files the time that the server says (Last-Modified)"),
                .repeated("attribute", nil, "NAME=VALUE", "attribute to store with the task (see fk info, fk list)"),
            ])
        + OptionSpec.under(
            .network,
            [
                .repeated("mirror", nil, "URL", "another address of the same file; for a single URL"),
                .value(
                    "mirrors", nil, "POLICY", hint: .choices(MirrorPolicy.allCases.map(\.rawValue)),
                    "when bytes of several sources are joined: prove (default), combine (after samples, which prove nothing), "
                        + "failover (proven ones, never at the same time) or alternatives (never: each is another file)"
                ),
                .flag("glob", nil, "take [1-9], [a-z] and {one,two} in a URL for several addresses, as curl does"),
                .flag("metalink", nil, "where a URL answers with a Metalink, download the files that it lists"),
                .repeated(
                    "header", "H", "'Name: value'", "header to send; most are dropped on a redirect to another host"),
                .value(
                    "retry", nil, "N",
                    "attempts after the first one or after the last progress (0 to 1000; default: 4)"),
                .value(
                    "timeout", nil, "S",
                    "time-out in seconds for connecting and for silence (1 to 86400; default: 30 and 60)"),
                .value("user-agent", nil, "TEXT", "the User-Agent header (default: fk/\(Version.text))"),
                .value("proxy", nil, "URL", "proxy server; an empty value disables proxies"),
                .value(
                    "dns-servers", nil, "ADDRESS,…",
                    "ask these name servers, as ADDRESS[:PORT]; needs a libcurl with c-ares"),
                .value("doh-url", nil, "URL", "look names up over https at this server (DNS over HTTPS)"),
                .flag("ipv4", "4", group: "family", "connect to IPv4 addresses only"),
                .flag("ipv6", "6", group: "family", "connect to IPv6 addresses only"),
                .value("interface", nil, "NAME|ADDRESS", "send from this network interface or address"),
                .repeated(
                    "resolve", nil, "HOST:PORT:ADDRESS",
                    "connect to this address for a host and port, '*' for any host; TLS still proves the host's name"),
                .value(
                    "max-time", nil, "S",
                    "give up S seconds after the start of each run, with the bytes kept (1 to 31536000)"),
                .flag("http3", nil, "use HTTP/3 where the server has it; needs a libcurl with HTTP/3"),
            ])
        + OptionSpec.under(
            .security,
            [
                .value(
                    "checksum", nil, "ALG=HEX|HEX|@LIST|auto|none",
                    hint: .choices([DigestList.auto, TaskInput.noChecksum]),
                    "expected digest of the file: ALG is md5, sha-1, sha-224, sha-256, sha-384, sha-512 or blake2b, and without it "
                        + "the length decides; @LIST is the path or URL of a checksum list that has the file's name; auto looks "
                        + "beside the file for URL.sha256, URL.sha512, SHA256SUMS and sha256sum.txt, and fails without one; none takes "
                        + "the digest of a known file away"
                ),
                .value("cacert", nil, "FILE", hint: .file, "trust the certificate authorities in this PEM file"),
                .value(
                    "cert", "E", "FILE", hint: .file,
                    "show this client's certificate (PEM) to the server that was asked for"),
                .value(
                    "key", nil, "FILE", hint: .file,
                    "the private key of --cert (PEM, not encrypted; default: in --cert's file)"),
                .value(
                    "pinnedpubkey", nil, "HASHES",
                    "accept only servers with one of these public keys: sha256//BASE64, several separated by ;"),
                .value(
                    "cookies", nil, "FILE", hint: .file,
                    "send the cookies of this file, which has Netscape's form (cookies.txt)"),
                .flag("insecure", nil, "accept any server certificate without checking it"),
                .flag("netrc", nil, "read user name and password from ~/.netrc"),
                .value(
                    "login-host", nil, "HOST[:PORT]",
                    "redirects may authenticate at this host, with the login that ~/.netrc has for it; its session is kept in the "
                        + "work path"),
                Login.spec,
                .value(
                    "aws-sigv4", nil, "PROVIDER",
                    "sign requests for S3 with the AWS credentials of the environment or of ~/.aws/credentials: aws:amz, or "
                        + "aws:amz:REGION:SERVICE"),
            ] + SignatureOptions.specs)

    /// - Parameters:
    ///   - urls: the operands that are URLs.
    ///   - objects: the number of operands that are objects of buckets. The default is 0.
    ///   - barrelFolder: the folder of the barrel that the files join; nil, the default, without one.
    ///   - needsTask: true refuses a command line without a task.
    init(
        _ arguments: ParsedArguments, urls: [String], objects: Int = 0, barrelFolder: String? = nil,
        context: CommandContext, needsTask: Bool
    ) throws {
        var options = try Self.options(arguments, context)
        if needsTask, urls.isEmpty, arguments["input"] == nil {
            throw arguments.error("<url> is missing: give URLs, or a list with -i FILE.")
        }
        if arguments.has("glob"), urls.isEmpty {
            throw arguments.error("--glob is for URLs of the command line: those of a list are taken as they stand.")
        }
        let urls = try Self.expanded(urls, arguments, context)
        for url in urls {
            guard let reason = url.urlFault else { continue }
            if !url.contains("://"), access(url, F_OK) == 0 {
                let word = url.shellWord
                throw arguments.error(
                    Paths.isFolder(url)
                        ? "\(url.visible) is a folder here and no URL: -d \(word) puts files into it."
                        : "\(url.visible) is a file here and no URL: -i \(word) reads a list of URLs.")
            }
            throw arguments.notURL(url, reason, context)
        }
        if let given = arguments["directory"], given.isEmpty {
            throw arguments.error("-d: the folder's name is empty.")
        }
        // After the other options, because it may ask the user.
        if let login = try Login.header(arguments) { options.add(login) }
        shared = options
        base = try Paths.absolute(arguments["directory"] ?? ".", from: context.workingDirectory)
        let isGiven = arguments.isGiven("directory")
        isBarrelFolder = !isGiven && barrelFolder != nil
        directory = isGiven ? base : barrelFolder ?? base
        followsMetalink = arguments.has("metalink")
        signature = try SignatureOptions(arguments, context)
        hasList = arguments.has("input")
        if signature != nil, hasList, let url = urls.first { throw arguments.error(SignatureOptions.besideList(url)) }
        let folder = directory
        let attributes = try Attribute.pairs(arguments).compactMapValues(\.self)
        operands = urls.count
        let partialFiles = try Self.adoptFolder(arguments, context).map(PartialFiles.init)
        let tasks = urls.map { url in
            var task = TaskDescription(url: url)
            task.directory = folder
            task.options = options
            task.attributes = attributes
            partialFiles?.offer(to: &task)
            return task
        }
        var settings = ListedTasks.Settings(folder: folder)
        settings.options = options
        settings.isFolderGiven = isGiven
        settings.takesHidden = arguments.has("hidden")
        settings.attributes = attributes
        settings.partialFiles = partialFiles
        self.settings = settings
        let isRemote = signature == nil && arguments["input"].map(NearbyFile.isURL) == true
        let list = isRemote ? nil : try Self.list(arguments, settings)
        var unproven: (list: ListInput, settings: ListedTasks.Settings)?
        if signature != nil, let list {
            unproven = list
            spool = TaskSpool(tasks)
        } else if let list {
            let listed: ListedTasks
            do { listed = try ListedTasks(list.list, list.settings, context) } catch let error as ListInput.Fault {
                throw arguments.error(error.description)
            }
            refused = listed.refused
            if urls.isEmpty { directory = listed.folder }
            spool = listed.spool
            spool.prepend(tasks)
        } else {
            spool = TaskSpool(tasks)
        }
        self.unproven = unproven
        if isRemote, let path = arguments["input"] {
            remote = (try SourceImport(listAt: path, arguments, context), path)
        }
        object = try Self.applySingleOptions(spool, objects: objects, folder, arguments, context)
        digests = try DigestList(arguments, context, isOfSeveral: arguments["input"] != nil)
    }

    /// The URLs of the command line; with `--glob` all those that a pattern stands for. Without it, a note says what a pattern is.
    private static func expanded(
        _ urls: [String], _ arguments: ParsedArguments, _ context: CommandContext
    ) throws -> [String] {
        guard arguments.has("glob") else {
            if let (url, part) = urls.lazy.compactMap({ url in URLPattern.part(of: url).map { (url, $0) } }).first {
                context.warn(
                    "'\(part.visible)' is taken as it stands in \(url.masked). --glob makes several "
                        + "addresses of it, and so does the shell without the quotes.")
            }
            return urls
        }
        return try urls.flatMap { url in
            do throws(URLPattern.Fault) { return try URLPattern.expand(url) } catch {
                throw arguments.error("--glob: \(url.masked.visible): \(error.reason).")
            }
        }
    }

    /// `-o`, `--mirror` and `--checksum` describe one file, so they are refused for several tasks.
    ///
    /// - Returns: what they say of the only file, if that is an object of a bucket.
    private static func applySingleOptions(
        _ tasks: TaskSpool, objects: Int, _ directory: String, _ arguments: ParsedArguments, _ context: CommandContext
    ) throws -> TaskDescription? {
        let isList = DigestList.isOne(arguments)
        let isFolder = try adoptFolder(arguments, context) != nil
        for (option, written) in [
            ("output", "-o"), ("adopt", "--adopt"), ("mirror", "--mirror"), ("checksum", "--checksum"),
        ]
        where arguments.has(option) && tasks.count + objects != 1 && !(option == "checksum" && isList)
            && !(option == "adopt" && isFolder)
        {
            // A list at a URL or a signed one is not read yet.
            let given =
                tasks.count + objects == 0 && arguments.has("input")
                ? "and -i is a list of files" : "but \(tasks.count + objects) URLs were given"
            throw arguments.error("\(written) describes a single file, \(given). A list (-i) can say it for each.")
        }
        func change(_ task: inout TaskDescription) throws {
            if let output = arguments["output"] {
                let (name, folder) = try destination(output, under: task.directory ?? directory, arguments)
                task.fileName = name
                task.directory = folder
            }
            if !isFolder { try adopt(&task, arguments, context) }
            for mirror in arguments.all("mirror") {
                if let reason = mirror.urlFault { throw arguments.error("--mirror: \(reason).") }
                task.mirrors.append(mirror)
            }
            if arguments["checksum"] == Self.noChecksum {
                task.options.checksum = nil
                task.options.pieces = nil
                task.options.list = nil
                task.words.insert(.dropsDigests)
            } else if let text = arguments["checksum"], !isList {
                do throws(DownloadError) {
                    task.options.checksum = try Checksum(given: text)
                } catch {
                    throw arguments.error("--checksum: \(error.message)")
                }
            }
        }
        guard objects == 1, tasks.isEmpty else {
            try tasks.changeOnly(change)
            return nil
        }
        var object = TaskDescription(url: "")
        object.directory = directory
        try change(&object)
        return object
    }

    /// The absolute path of the folder of `--adopt DIR`, whose partial files the tasks continue by their names; nil for a file.
    private static func adoptFolder(_ arguments: ParsedArguments, _ context: CommandContext) throws -> String? {
        guard let given = arguments["adopt"] else { return nil }
        let path = try Paths.absolute(given, from: context.workingDirectory)
        guard Paths.isFolder(path) else { return nil }
        if arguments.has("skip") { throw adoptAndSkip(arguments) }
        return path
    }

    private static func adoptAndSkip(_ arguments: ParsedArguments) -> UsageError {
        arguments.error("--adopt and --skip exclude each other: --skip would take the partial file for the whole one.")
    }

    /// `--adopt`: without `-d` and `-o` the finished file is to have the place of the partial one.
    private static func adopt(
        _ task: inout TaskDescription, _ arguments: ParsedArguments, _ context: CommandContext
    ) throws {
        guard var given = arguments["adopt"] else { return }
        if arguments.has("skip") { throw adoptAndSkip(arguments) }
        if given.hasSuffix(".aria2") { given.removeLast(6) }
        let path = try Paths.absolute(given, from: context.workingDirectory)
        var status = stat()
        guard lstat(path, &status) == 0 else {
            throw arguments.error("--adopt: \(path.visible): \(String(cString: strerror(errno))).")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw arguments.error("--adopt: \(path.visible) is not a regular file.")
        }
        task.options.adoptPath = path
        guard !arguments.has("output"), !arguments.isGiven("directory") else { return }
        task.directory = path.folderPart
        if !PartialFiles.endings.contains(where: path.hasSuffix) { task.fileName = path.lastPathPart }
    }

    /// The value of `--checksum` that takes the digests of a known file away.
    static let noChecksum = "none"

    private static func list(
        _ arguments: ParsedArguments, _ settings: ListedTasks.Settings
    ) throws -> (list: ListInput, settings: ListedTasks.Settings)? {
        guard let path = arguments["input"] else {
            for option in ListInput.optionNames where arguments.has(option) {
                throw arguments.error("--\(option) is about a list: give one with -i FILE.")
            }
            return nil
        }
        return (try ListInput(path, arguments), settings)
    }

    private static func destination(
        _ text: String, under base: String, _ arguments: ParsedArguments
    ) throws -> (name: String, folder: String) {
        guard text != "-" else { throw arguments.error("-o -: fk cat URL writes to standard output.") }
        let (folder, name) = Paths.split(text)
        guard !name.isEmpty, name != ".", name != "..", name != "-" else {
            throw arguments.error("-o: '\(text.visible)' does not name a file. A folder is given with -d.")
        }
        guard name.utf8.count <= 255 else {
            throw arguments.error("-o: the name is longer than the 255 bytes that a file's name may have.")
        }
        if let fault = FileNameRules.fault(inAsked: name) {
            throw arguments.error("-o: '\(text.visible)' cannot be the file's name: \(fault).")
        }
        let place = try folder.map { try Paths.absolute($0, from: base) } ?? base
        let shown = text.visible.shellWord
        if Paths.isFolder("\(place)/\(name)") {
            let folder = "\(place)/\(name)".visible.shellWord
            throw arguments.error("-o: \(shown) is a folder: -d \(folder) puts the file into it.")
        }
        if let kind = Self.kind(ofSpecial: "\(place)/\(name)") {
            throw arguments.error(
                "-o: \(shown) is \(kind), and fk writes files. The bytes go there with: fk cat URL > \(shown)")
        }
        return (name, place)
    }

    /// What is at the path, if it is neither missing nor a file or a folder. Links are followed.
    private static func kind(ofSpecial path: String) -> String? {
        // Standard output may be a file: the link to it must not be replaced.
        var end = path
        for _ in 0..<40 {
            if end.hasPrefix("/proc/") || end.hasPrefix("/dev/fd/") { return "a link to an open file" }
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: end) else { break }
            end = target.hasPrefix("/") ? target : end.folderPart + "/" + target
        }
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return switch status.st_mode & S_IFMT {
        case S_IFCHR, S_IFBLK: "a device"
        case S_IFIFO: "a FIFO"
        case S_IFSOCK: "a socket"
        default: nil
        }
    }

    /// The options for requests that fetch no file: header fields, logins, the route and the trust.
    static let connectionSpecs = specs.filter { connectionNames.contains($0.long) }

    private static let connectionNames: Set<String> = [
        "header", "user-agent", "retry", "timeout", "proxy", "dns-servers", "doh-url", "ipv4", "ipv6", "interface",
        "resolve",
        "http3", "cacert", "cert", "key", "cookies", "insecure", "netrc", "login-host", "user", "aws-sigv4",
    ]

    /// The values of `connectionSpecs`.
    static func connection(_ arguments: ParsedArguments, _ context: CommandContext) throws -> TaskOptions {
        var options = try options(arguments, context)
        if let login = try Login.header(arguments) { options.add(login) }
        return options
    }

    private static func options(_ arguments: ParsedArguments, _ context: CommandContext) throws -> TaskOptions {
        var options = TaskOptions()
        let headers = try arguments.all("header").map { text in
            do {
                return try HeaderField.parse(text)
            } catch let error as HeaderField.Invalid {
                throw arguments.error("-H: \(error.reason).")
            }
        }
        for header in headers { options.add(header) }
        if let text = arguments["user-agent"] {
            if headers.contains(where: { $0.name.lowercased() == "user-agent" }) {
                throw arguments.error("--user-agent and -H 'User-Agent: …' exclude each other.")
            }
            do {
                options.add(try HeaderField.parse("User-Agent: \(text)"))
            } catch {
                throw arguments.error("--user-agent: \(error.reason).")
            }
        }
        options.maxSize = try arguments.size("max-size", "--max-size")
        options.expectedType = arguments["expect"]
        var expecting = TaskOptions()
        expecting.expectedType = options.expectedType
        if expecting.fault != nil {
            throw arguments.error("--expect: give file or a MIME type, such as application/zip or image/*.")
        }
        options.minFree = try arguments.size("min-free", "--min-free", atLeast: 0)
        options.connections = try arguments.connections("connections", "-x")
        options.mirrorPolicy = try arguments.choice("mirrors", "--mirrors", of: MirrorPolicy.self)
        options.maxAttempts = try Self.retries(arguments, "--retry").map { $0 + 1 }
        options.timeoutSeconds = try Self.timeout(arguments, "--timeout")
        options.caPath = try arguments["cacert"].map { try CertificateFile.check($0, arguments, context) }
        options.cookiePath = try cookieFile(arguments, context)
        options.pinnedPublicKey = arguments["pinnedpubkey"]
        if let keys = options.pinnedPublicKey, let fault = TransportOptions.fault(pinnedPublicKey: keys) {
            throw arguments.error("--pinnedpubkey: \(fault).")
        }
        try lookUp(arguments, &options)
        try route(arguments, &options)
        options.clientCertificate = try CertificateFile.client(arguments, context)
        options.awsSignature = try awsSignature(arguments, context)
        if arguments.has("insecure") { options.insecure = true }
        if arguments.has("no-private") { options.noPrivate = true }
        if arguments.has("netrc") {
            try NetrcFile.check(arguments, context)
            options.netrc = true
        }
        if let host = try arguments.loginHost(orNone: false) {
            try NetrcFile.check(arguments, context, host: host)
            options.loginHost = host
        }
        if arguments.has("reuse") { options.reuse = true }
        if arguments.has("remote-time") { options.remoteTime = true }
        options.proxy = try arguments.proxy()
        if arguments.has("overwrite") { options.existing = .overwrite }
        if arguments.has("rename") { options.existing = .rename }
        if arguments.has("skip") { options.existing = .skip }
        return options
    }

    /// `--ipv4`, `--ipv6`, `--interface`, `--resolve` and `--max-time`.
    private static func route(_ arguments: ParsedArguments, _ options: inout TaskOptions) throws {
        if arguments.has("ipv4") { options.addressFamily = .ipv4 }
        if arguments.has("ipv6") { options.addressFamily = .ipv6 }
        if let interface = arguments["interface"] {
            guard !interface.isEmpty else { throw arguments.error("--interface: the name is empty.") }
            options.interface = interface
        }
        let routes = arguments.all("resolve")
        if !routes.isEmpty {
            options.hostAddresses = try routes.map { text in
                do throws(DownloadError) { return try .init(text) } catch {
                    throw arguments.error("--resolve: \(error.message)")
                }
            }
        }
        options.runSeconds = try arguments.seconds("max-time", "--max-time", in: 1...31_536_000)
    }

    /// `--dns-servers`, `--doh-url` and `--http3`, which not every libcurl has.
    private static func lookUp(_ arguments: ParsedArguments, _ options: inout TaskOptions) throws {
        options.dnsServers = arguments["dns-servers"]
        options.dohURL = arguments["doh-url"]
        if arguments.has("http3") { options.httpVersion = .http3 }
        for (option, fault) in [
            ("dns-servers", options.dnsServers.flatMap(TransportOptions.fault(dnsServers:))),
            ("doh-url", options.dohURL.flatMap(TransportOptions.fault(dohURL:))),
        ] {
            if let fault { throw arguments.error("--\(option): \(fault).") }
        }
        guard let lack = TransportLibrary.lack(for: options.transportOptions(over: TransportOptions())) else { return }
        let given = ["http3", "dns-servers", "doh-url"].filter { arguments.has($0) }.map { "--\($0)" }
        throw arguments.error("\(given.joined(separator: ", ")): \(lack).")
    }

    /// The credentials are looked for here, and read again for each attempt.
    private static func awsSignature(_ arguments: ParsedArguments, _ context: CommandContext) throws -> String? {
        guard let provider = arguments["aws-sigv4"] else { return nil }
        do throws(DownloadError) {
            try AWSCredentials.check(for: provider, in: context.environment)
        } catch {
            throw arguments.error("--aws-sigv4: \(error.message)")
        }
        let others = arguments.all("header").contains { $0.lowercased().hasPrefix("authorization:") }
        guard !others, !arguments.has("user"), !arguments.has("netrc") else {
            throw arguments.error(
                "--aws-sigv4 and another login (--user, --netrc, -H 'Authorization: …') exclude each other.")
        }
        return provider
    }

    /// The file is checked here, and read again for each transfer.
    private static func cookieFile(_ arguments: ParsedArguments, _ context: CommandContext) throws -> String? {
        guard let given = arguments["cookies"] else { return nil }
        let path = try Paths.absolute(given, from: context.workingDirectory)
        do throws(DownloadError) { _ = try TransportOptions.cookies(in: path) } catch {
            throw arguments.error("--cookies: \(error.message)")
        }
        return path
    }
}

extension TaskOptions {
    /// Adds a header; a secret one does not follow a redirect to another host.
    mutating func add(_ header: HeaderField) {
        let all = (headers ?? []) + [header]
        headers = all
        secretHeaders = HeaderField.secretNames(of: all)
    }
}
