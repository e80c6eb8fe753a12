import FKCore
import FKMiddleware

/// `fk config host`: shows or changes the policies of hosts.
struct ConfigHostCommand: Command {
    /// The fields to set; without any, policies are shown. Its pattern is in its normal form; nil for all of them.
    let change: HostPolicy?
    let isRemoval: Bool
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["config", "host"], summary: "show or change the limits of requests to a host",
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
            .flag("remove", nil, "remove the policy of the pattern"),
        ],
        examples: [
            .init("fk config host export.arxiv.org --connections 1 --rate 20/m", "one request in three seconds"),
            .init(
                "fk config host '*.wikimedia.org' --connections 2 --contact me@example.org", "two connections to each"),
        ],
        usesSettings: false,
        make: { arguments, context in
            let isRemoval = arguments.has("remove")
            let fields = ["connections", "rate", "limit-rate", "contact"].filter(arguments.has)
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
                contact: try arguments.contact())
            guard let pattern = change.normalPattern else {
                throw arguments.error(
                    "'\(Escaping.visible(text))' is no host and no *.host. Leave scheme and port out.")
            }
            change.pattern = pattern
            return Self(change: change, isRemoval: isRemoval, context: context)
        })

    func run() async throws -> Int32 {
        let workPath = WorkPath(global.workPath)
        var policies = try HostPolicyFile.read(in: workPath)
        guard let change else {
            show(policies)
            return ExitStatus.done
        }
        let known = policies.firstIndex { $0.pattern == change.pattern }
        if isRemoval || change.isEmpty {
            guard let known else {
                throw DownloadError(.notFound, "There is no policy for \(change.pattern).")
            }
            let policy = policies.remove(at: known)
            guard isRemoval else {
                show([policy])
                return ExitStatus.done
            }
        } else {
            var policy = known.map { policies.remove(at: $0) } ?? HostPolicy(change.pattern)
            policy.set(change)
            // 0 is no limit.
            if policy.rateLimit == 0 { policy.rateLimit = nil }
            if !policy.isEmpty { policies.append(policy) }
        }
        try workPath.open(create: true)
        try HostPolicyFile.write(policies, in: workPath)
        if global.json { show(policies.filter { $0.pattern == change.pattern }) }
        return ExitStatus.done
    }

    /// One policy a line, as the options that set it.
    private func show(_ policies: [HostPolicy]) {
        if global.json {
            // `limitRate` is bytes per second.
            return JSONOutput(context.output).array(policies) { policy in
                JSON.members([
                    "connections": JSON(policy.connections), "contact": JSON(policy.contact),
                    "limitRate": JSON(policy.rateLimit), "pattern": .string(policy.pattern),
                    "rate": JSON(policy.requestRate?.text),
                ]).bytes
            }
        }
        for policy in policies {
            let fields = [
                policy.connections.map { "--connections \($0)" }, policy.requestRate.map { "--rate \($0.text)" },
                policy.rateLimit.map { "--limit-rate \($0)" }, policy.contact.map { "--contact \($0)" },
            ]
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
