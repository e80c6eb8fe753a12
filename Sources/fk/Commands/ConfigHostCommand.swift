import FKCore
import FKMiddleware

/// `fk config host`: shows or changes the policies of hosts.
struct ConfigHostCommand: Command {
    /// The fields to set; without any, policies are shown. Its pattern is in its normal form; nil for all of them.
    let change: HostPolicy?
    let isRemoval: Bool
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["config", "host"], summary: "show or change how a host is asked: limits, a mirror, retries",
        discussion: [
            "The pattern is a host without a port, or *.host for its subdomains. A policy applies to all tasks of the work "
                + "path together, also to those that run. For each field the nearest pattern that sets it counts. Fields "
                + "that are not given stay as they are."
        ],
        operands: [OperandSpec("pattern", "a host, or *.host; without it, all policies are listed", 0, 1)],
        options: [
            .value("connections", nil, "N", "at most N connections to the host (1 to 256)"),
            .value("rate", nil, "N/s|N/m|N/h", "at most N requests a second, minute or hour, spread evenly"),
            .value("limit-rate", nil, "RATE", "limit in bytes a second for the host's files together; 0: no limit"),
            .value("contact", nil, "MAIL|URL", "append a mail address or a URL to the User-Agent"),
            .value(
                "mirror", nil, "BASE",
                "send requests to the host to BASE, such as https://mirror.example/host; it gets no secret; none: no mirror"
            ),
            .repeated(
                "retry-status", nil, "N",
                "retry answers with this status as a 503 is retried (400 to 599); give it several times; 0: none"),
            .value(
                "login-host", nil, "HOST[:PORT]",
                "redirects of the host may authenticate at HOST, with the login that ~/.netrc has for it; none: nowhere"
            ),
            .flag("remove", nil, "remove the policy of the pattern"),
        ],
        examples: [
            .init("fk config host export.arxiv.org --connections 1 --rate 20/m", "one request in three seconds"),
            .init(
                "fk config host '*.wikimedia.org' --connections 2 --contact me@example.org", "two connections to each"),
            .init(
                "fk config host data.example --login-host urs.earthdata.nasa.gov",
                "log in there, as NASA Earthdata wants it"),
            .init("fk config host huggingface.co --mirror https://mirror.example", "ask a mirror in its place"),
        ],
        usesSettings: false, usesWorkPath: false,
        make: { arguments, context in
            let isRemoval = arguments.has("remove")
            let fields = ["connections", "rate", "limit-rate", "contact", "mirror", "retry-status", "login-host"]
                .filter(arguments.has)
            guard !isRemoval || fields.isEmpty else {
                throw arguments.error("--remove and --\(fields[0]) exclude each other.")
            }
            guard let text = arguments.operands.first else {
                if let option = fields.first ?? (isRemoval ? "remove" : nil) {
                    throw arguments.error("--\(option) needs a pattern: a host, or *.host.")
                }
                return Self(change: nil, isRemoval: false, context: context)
            }
            var change = HostPolicy(
                text, connections: try arguments.integer("connections", "--connections", in: 1...256),
                requestRate: try arguments.requestRate(), rateLimit: try arguments.rate("limit-rate", "--limit-rate"),
                contact: try arguments.contact(), mirror: try arguments.mirror(),
                retryStatuses: try arguments.retryStatuses(), loginHost: try arguments.loginHost(orNone: true))
            guard let pattern = change.normalPattern else {
                throw arguments.error("'\(text.visible)' is no host and no *.host. Leave scheme and port out.")
            }
            change.pattern = pattern
            return Self(change: change, isRemoval: isRemoval, context: context)
        })

    func run() async throws -> Int32 {
        let workPath = WorkPath(global.workPath)
        guard let change else {
            show(try HostPolicy.all(in: workPath))
            return ExitStatus.done
        }
        guard isRemoval || !change.isEmpty else {
            show([try policy(of: change.pattern, in: try HostPolicy.all(in: workPath))])
            return ExitStatus.done
        }
        if isRemoval { _ = try policy(of: change.pattern, in: try HostPolicy.all(in: workPath)) }
        try workPath.open(create: true)
        let changed = try HostPolicy.change(in: workPath) { policies -> [HostPolicy] in
            if isRemoval { _ = try policy(of: change.pattern, in: policies) }
            var policy = policies.first { $0.pattern == change.pattern } ?? HostPolicy(change.pattern)
            policies.removeAll { $0.pattern == change.pattern }
            guard !isRemoval else { return [] }
            policy.set(change)
            // 0 is no limit.
            if policy.rateLimit == 0 { policy.rateLimit = nil }
            if policy.mirror == "" { policy.mirror = nil }
            if policy.retryStatuses == [] { policy.retryStatuses = nil }
            if policy.loginHost == "" { policy.loginHost = nil }
            if !policy.isEmpty { policies.append(policy) }
            return policy.isEmpty ? [] : [policy]
        }
        if global.json { show(changed) }
        return ExitStatus.done
    }

    private func policy(of pattern: String, in policies: [HostPolicy]) throws -> HostPolicy {
        guard let policy = policies.first(where: { $0.pattern == pattern }) else {
            throw DownloadError(.notFound, "There is no policy for \(pattern).")
        }
        return policy
    }

    /// One policy a line, as the options that set it.
    private func show(_ policies: [HostPolicy]) {
        if global.json {
            // `limitRate` is bytes per second.
            return JSONOutput(context.output).array(policies) { policy in
                JSON.members([
                    "connections": JSON(policy.connections), "contact": JSON(policy.contact),
                    "limitRate": JSON(policy.rateLimit), "loginHost": JSON(policy.loginHost),
                    "mirror": JSON(policy.mirror),
                    "pattern": .string(policy.pattern), "rate": JSON(policy.requestRate?.text),
                    "retryStatuses": .array((policy.retryStatuses ?? []).map { JSON($0) }),
                ]).bytes
            }
        }
        for policy in policies {
            let fields =
                [
                    policy.connections.map { "--connections \($0)" }, policy.requestRate.map { "--rate \($0.text)" },
                    policy.rateLimit.map { "--limit-rate \($0)" }, policy.contact.map { "--contact \($0)" },
                    policy.mirror.map { "--mirror \($0)" }, policy.loginHost.map { "--login-host \($0)" },
                ] + (policy.retryStatuses ?? []).map { "--retry-status \($0)" }
            context.output.writeLine(([policy.pattern] + fields.compactMap(\.self)).joined(separator: " "))
        }
    }
}

extension ParsedArguments {
    /// The value of `--rate`; nil if it was not given.
    func requestRate() throws -> RequestRate? {
        try self["rate"].map { text in
            guard let rate = RequestRate(text) else {
                throw refusal("--rate", text, "requests in a time from 1 to 1000000, such as 3/s, 20/m or 1000/h")
            }
            return rate
        }
    }

    /// The value of `--mirror`, without a slash at its end; empty for `none`, nil if it was not given.
    func mirror() throws -> String? {
        try self["mirror"].map { text in
            if text == "none" { return "" }
            guard let base = HostPolicy.mirrorBase(text) else {
                throw refusal("--mirror", text.masked, "an http or https URL without a login and a query, or none")
            }
            return base
        }
    }

    /// The value of `--login-host`; empty for `none`, nil if it was not given.
    func loginHost(orNone: Bool) throws -> String? {
        try self["login-host"].map { text in
            if orNone, text == "none" { return "" }
            guard text.loginHostName != nil else {
                throw refusal("--login-host", text, "a host, as HOST or HOST:PORT" + (orNone ? ", or none" : ""))
            }
            return text.lowercased()
        }
    }

    /// The values of `--retry-status` in order; empty for 0, nil if it was not given.
    func retryStatuses() throws -> [Int]? {
        let texts = all("retry-status")
        guard !texts.isEmpty else { return nil }
        if texts == ["0"] { return [] }
        return Set(
            try texts.map { text in
                guard let status = Int(text), HostPolicy.retryableRange.contains(status) else {
                    throw refusal("--retry-status", text, "a status from 400 to 599, or 0 alone for none")
                }
                return status
            }
        ).sorted()
    }

    /// The value of `--contact`; nil if it was not given.
    func contact() throws -> String? {
        try self["contact"].map { text in
            guard HostPolicy.isContact(text) else {
                throw refusal("--contact", text, "a mail address or a URL of at most 200 ASCII characters")
            }
            return text
        }
    }
}
