import FKCore
import FKManifests
import FKMiddleware

/// The options that describe downloads, and the resulting tasks, for `get`, `barrel create` and `barrel add`.
struct TaskInput: Sendable {
    /// The tasks in order: those of the command line, then those of the list.
    let spool: TaskSpool
    /// The tasks, which stay in the spool.
    var tasks: [TaskDescription] { (try? spool.all()) ?? [] }
    /// The absolute path of the folder for files without a folder of their own.
    var directory: String
    /// The options that all tasks share.
    var shared: TaskOptions

    /// The entries of the list that were left out and named.
    private(set) var refused = 0
    /// The key of `--signed-by`; nil for none.
    private(set) var signature: SignatureOptions?
    /// The list whose signature is proven by `resolve`; nil for none.
    private(set) var unproven: (list: ListInput, settings: ListedTasks.Settings)?
    /// The list of digests of `--checksum @…` and `auto`; nil for none.
    private(set) var digests: DigestList?
    /// True if a Metalink in place of a file is followed.
    private(set) var followsMetalink = false
    /// True if there is a list.
    private(set) var hasList = false
    /// The settings for lists.
    let settings: ListedTasks.Settings
    /// The number of tasks whose URLs stand on the command line. They come first.
    private(set) var operands = 0

    static let inputSpec = OptionSpec.value(
        "input", "i", "FILE", hint: .file, "read a list of files from FILE; '-' is standard input")

    static let specs: [OptionSpec] =
        OptionSpec.under(
            .files,
            [
                .value(
                    "directory", "d", "DIR", hint: .directory,
                    "folder for the files; created if missing (default: the current folder)"),
                .value("output", "o", "FILE", hint: .file, "name of the file; for a single URL"),
                inputSpec,
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
                .repeated("attribute", nil, "NAME=VALUE", "attribute to store with the task (see fk info, fk list)"),
            ])
        + OptionSpec.under(
            .network,
            [
                .repeated("mirror", nil, "URL", "another address of the same file; for a single URL"),
                .value(
                    "mirrors", nil, "POLICY", hint: .choices(MirrorPolicy.allCases.map(\.rawValue)),
                    "when bytes of several sources are joined: prove (default), combine (after samples, which prove nothing) "
                        + "or failover (proven ones, never at the same time)"),
                .flag("metalink", nil, "where a URL answers with a Metalink, download the files that it lists"),
                .repeated(
                    "header", "H", "'Name: value'", "header to send; most are dropped on a redirect to another host"),
                .value("retry", nil, "N", "attempts after the first one (0 to 1000; default: 4)"),
                .value(
                    "timeout", nil, "S",
                    "time-out in seconds for connecting and for silence (1 to 86400; default: 30 and 60)"),
                .value("user-agent", nil, "TEXT", "the User-Agent header (default: fk/\(Version.text))"),
                .value("proxy", nil, "URL", "proxy server; an empty value disables proxies"),
                .value(
                    "dns-servers", nil, "ADDRESS,…",
                    "ask these name servers, as ADDRESS[:PORT]; needs a libcurl with c-ares"),
                .value("doh-url", nil, "URL", "look names up over https at this server (DNS over HTTPS)"),
                .flag("http3", nil, "use HTTP/3 where the server has it; needs a libcurl with HTTP/3"),
            ])
        + OptionSpec.under(
            .security,
            [
                .value(
                    "checksum", nil, "ALG=HEX|HEX|@LIST|auto", hint: .choices([DigestList.auto]),
                    "expected digest of the file: ALG is md5, sha-1, sha-224, sha-256, sha-384 or sha-512, and without it "
                        + "the length decides; @LIST is the path or URL of a checksum list that has the file's name; auto looks "
                        + "beside the file for URL.sha256, URL.sha512, SHA256SUMS and sha256sum.txt, and fails without one"
                ),
                .value("cacert", nil, "FILE", hint: .file, "trust the certificate authorities in this PEM file"),
                .value(
                    "pinnedpubkey", nil, "HASHES",
                    "accept only servers with one of these public keys: sha256//BASE64, several separated by ;"),
                .value(
                    "cookies", nil, "FILE", hint: .file,
                    "send the cookies of this file, which has Netscape's form (cookies.txt)"),
                .flag("insecure", nil, "accept any server certificate without checking it"),
                .flag("netrc", nil, "read user name and password from ~/.netrc"),
                Login.spec,
                .value(
                    "aws-sigv4", nil, "PROVIDER",
                    "sign requests for S3 with the AWS credentials of the environment or of ~/.aws/credentials: aws:amz, or "
                        + "aws:amz:REGION:SERVICE"),
            ] + SignatureOptions.specs)

    /// Reads the options and creates the tasks.
    ///
    /// - Parameters:
    ///   - urls: the operands that are URLs.
    ///   - needsTask: true refuses a command line without a task.
    init(_ arguments: ParsedArguments, urls: [String], context: CommandContext, needsTask: Bool) throws {
        var options = try Self.options(arguments, context)
        if needsTask, urls.isEmpty, arguments["input"] == nil {
            throw arguments.error("<url> is missing: give URLs, or a list with -i FILE.")
        }
        for url in urls {
            if let reason = InputURL.fault(in: url) { throw arguments.error("Not a URL to download: \(reason).") }
        }
        if let given = arguments["directory"], given.isEmpty {
            throw arguments.error("-d: the folder's name is empty.")
        }
        // After the other options, because it may ask the user.
        if let login = try Login.header(arguments) { options.add(login) }
        shared = options
        directory = try Paths.absolute(arguments["directory"] ?? ".", from: context.workingDirectory)
        followsMetalink = arguments.has("metalink")
        signature = try SignatureOptions(arguments, context)
        hasList = arguments.has("input")
        let folder = directory
        let attributes = try Attribute.pairs(arguments).compactMapValues(\.self)
        operands = urls.count
        let tasks = urls.map { url in
            var task = TaskDescription(url: url)
            task.directory = folder
            task.options = options
            task.attributes = attributes
            return task
        }
        var settings = ListedTasks.Settings(folder: folder)
        settings.options = options
        settings.isFolderGiven = arguments.has("directory")
        settings.attributes = attributes
        self.settings = settings
        let list = try Self.list(arguments, settings)
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
        try Self.applySingleOptions(spool, folder, arguments, context)
        digests = try DigestList(arguments, context, isOfSeveral: arguments["input"] != nil)
    }

    /// `-o`, `--mirror` and `--checksum` describe one file, so they are refused for several tasks.
    private static func applySingleOptions(
        _ tasks: TaskSpool, _ directory: String, _ arguments: ParsedArguments, _ context: CommandContext
    ) throws {
        let isList = DigestList.isOne(arguments)
        for (option, written) in [("output", "-o"), ("mirror", "--mirror"), ("checksum", "--checksum")]
        where arguments.has(option) && tasks.count != 1 && !(option == "checksum" && isList) {
            throw arguments.error(
                "\(written) describes a single file, but \(tasks.count) URLs were given. A list (-i) can say it for each."
            )
        }
        try tasks.changeOnly { task in
            if let output = arguments["output"] {
                let (name, folder) = try destination(output, under: task.directory ?? directory, arguments)
                task.fileName = name
                task.directory = folder
            }
            for mirror in arguments.all("mirror") {
                if let reason = InputURL.fault(in: mirror) { throw arguments.error("--mirror: \(reason).") }
                task.mirrors.append(mirror)
            }
            if let text = arguments["checksum"], !isList {
                do throws(DownloadError) {
                    task.options.checksum = try Checksum(given: text)
                } catch {
                    throw arguments.error("--checksum: \(error.message)")
                }
            }
        }
    }

    private static func list(
        _ arguments: ParsedArguments, _ settings: ListedTasks.Settings
    ) throws -> (list: ListInput, settings: ListedTasks.Settings)? {
        guard let path = arguments["input"] else {
            for option in ["format", "base", "skip-bad"] where arguments.has(option) {
                throw arguments.error("--\(option) is about a list: give one with -i FILE.")
            }
            return nil
        }
        return (try ListInput(path, arguments), settings)
    }

    private static func destination(
        _ text: String, under base: String, _ arguments: ParsedArguments
    ) throws -> (name: String, folder: String) {
        let (folder, name) = Paths.split(text)
        guard !name.isEmpty, name != ".", name != "..", name != "-" else {
            throw arguments.error(
                "-o: '\(Escaping.visible(text))' does not name a file. A folder is given with -d.")
        }
        guard name.utf8.count <= 255 else {
            throw arguments.error("-o: the name is longer than the 255 bytes that a file's name may have.")
        }
        if let fault = AskedForName.fault(in: name) {
            throw arguments.error("-o: '\(Escaping.visible(text))' cannot be the file's name: \(fault).")
        }
        return (name, try folder.map { try Paths.absolute($0, from: base) } ?? base)
    }

    private static func options(_ arguments: ParsedArguments, _ context: CommandContext) throws -> TaskOptions {
        var options = TaskOptions()
        let headers = try arguments.all("header").map { text in
            do {
                return try HeaderField.parse(text)
            } catch let error as InvalidHeader {
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
        options.maxAttempts = try arguments.integer("retry", "--retry", in: 0...1000).map { $0 + 1 }
        options.timeoutSeconds = try arguments.seconds("timeout", "--timeout", in: 1...86_400)
        options.caPath = try arguments["cacert"].map { try CertificateFile.check($0, arguments, context) }
        options.cookiePath = try cookieFile(arguments, context)
        options.pinnedPublicKey = arguments["pinnedpubkey"]
        if let keys = options.pinnedPublicKey, let fault = PinnedPublicKey.fault(in: keys) {
            throw arguments.error("--pinnedpubkey: \(fault).")
        }
        try lookUp(arguments, &options)
        options.awsSignature = try awsSignature(arguments, context)
        if arguments.has("insecure") { options.insecure = true }
        if arguments.has("netrc") {
            try NetrcFile.check(arguments, context)
            options.netrc = true
        }
        if arguments.has("reuse") { options.reuse = true }
        options.proxy = try proxy(arguments)
        if arguments.has("overwrite") { options.existing = .overwrite }
        if arguments.has("rename") { options.existing = .rename }
        if arguments.has("skip") { options.existing = .skip }
        return options
    }

    /// `--dns-servers`, `--doh-url` and `--http3`, which not every libcurl has.
    private static func lookUp(_ arguments: ParsedArguments, _ options: inout TaskOptions) throws {
        options.dnsServers = arguments["dns-servers"]
        options.dohURL = arguments["doh-url"]
        if arguments.has("http3") { options.httpVersion = .http3 }
        for (option, fault) in [
            ("dns-servers", options.dnsServers.flatMap(NameLookup.fault(servers:))),
            ("doh-url", options.dohURL.flatMap(NameLookup.fault(url:))),
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
            _ = try AWSSignature(provider)
            _ = try AWSCredentials.usual(environment: context.environment)
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
        do throws(DownloadError) { _ = try CookieFile.lines(of: path) } catch {
            throw arguments.error("--cookies: \(error.message)")
        }
        return path
    }

    static func proxy(_ arguments: ParsedArguments) throws -> String? {
        guard let text = arguments["proxy"], !text.isEmpty else { return arguments["proxy"] }
        do {
            _ = try ProxyAddress(text)
            return text
        } catch {
            throw arguments.error(
                "--proxy: '\(Escaping.visible(ProxyAddress.masked(text)))' is not a proxy: \(error.reason). Give [scheme://]host:port with one of "
                    + "\(ProxyAddress.schemes.joined(separator: ", ")).")
        }
    }
}

extension TaskOptions {
    /// Adds a header; a secret one does not follow a redirect to another host.
    fileprivate mutating func add(_ header: HeaderField) {
        let all = (headers ?? []) + [header]
        headers = all
        secretHeaders = HeaderField.secretNames(of: all)
    }
}
