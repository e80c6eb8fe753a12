import FKMiddleware

/// The limits of one host, from the policies that apply to it.
struct HostRules: Sendable, Hashable {
    /// A limit, and the policy that it comes from, for display.
    struct Limit<Value: Sendable & Hashable>: Sendable, Hashable {
        var value: Value
        var policy: String
    }

    var connections: Limit<Int>?
    /// The nanoseconds from one request to the next.
    var interval: Limit<Int64>?
    var rateLimit: Int64?
    var contact: String?
    /// Where requests go in place of the host: a URL without a slash at its end.
    var mirror: Limit<String>?
    /// The statuses that are retried.
    var retryStatuses: Limit<[Int]>?
    /// Where redirects of the host may authenticate.
    var loginHost: Limit<String>?
}

/// The limits of a command for requests of its own tasks to each host.
struct HostAsker: Sendable, Hashable {
    /// Nobody with limits of their own.
    static let anyone = HostAsker()

    var group = CommandGroups.none
    var connections: Int?
    var requestRate: RequestRate?
    var contact: String?
    /// The number of shards that share the limits.
    var shards = 1

    var interval: HostRules.Limit<Int64>? {
        requestRate.map { .init(value: $0.interval * Int64(shards), policy: "--rate \($0.text)") }
    }
}

extension HostAsker {
    init(_ limits: OwnLimits, group: Int32) {
        self.init(
            group: group, connections: limits.connectionsPerHost, requestRate: limits.requestRate,
            contact: limits.contact, shards: max(1, limits.shards ?? 1))
    }
}

/// The policies of hosts. A value type without locks.
struct HostPolicies: Sendable {
    private var policies: [String: HostPolicy] = [:]

    /// True if some host has a mirror.
    private var hasMirrors = false

    var isEmpty: Bool { policies.isEmpty }

    /// - Parameter policies: of two with the same pattern, the later one's fields have precedence.
    init(_ policies: [HostPolicy] = []) {
        for policy in policies {
            guard let pattern = policy.normalPattern, policy.fault == nil else { continue }
            self.policies[pattern, default: HostPolicy(pattern)].set(policy)
            if policy.mirror != nil { hasMirrors = true }
        }
    }

    /// The limits of a host, named by `site`.
    func rules(for site: String, shards: Int) -> HostRules {
        if isEmpty { return HostRules() }
        var rules = HostRules()
        for whole in Self.patterns(of: site).compactMap({ policies[$0] }) {
            let policy = whole.divided(by: shards)
            rules.connections =
                rules.connections
                ?? whole.connections.map {
                    .init(
                        value: policy.connections ?? $0, policy: "\(policy.pattern): \($0.plural("connection"))")
                }
            rules.interval =
                rules.interval
                ?? policy.requestRate.map {
                    .init(value: $0.interval * Int64(shards), policy: "\(policy.pattern): \($0.words)")
                }
            rules.rateLimit = rules.rateLimit ?? policy.rateLimit
            rules.contact = rules.contact ?? policy.contact
            rules.mirror =
                rules.mirror
                ?? policy.mirror.flatMap(HostPolicy.mirrorBase).map { .init(value: $0, policy: policy.pattern) }
            rules.retryStatuses =
                rules.retryStatuses ?? policy.retryStatuses.map { .init(value: $0, policy: policy.pattern) }
            rules.loginHost = rules.loginHost ?? policy.loginHost.map { .init(value: $0, policy: policy.pattern) }
        }
        return rules
    }

    /// The address that is asked in place of a URL: that of the host's mirror, or the URL itself.
    ///
    /// The mirror's address has neither the login of the URL nor the secret items of its query.
    func mirrored(_ url: String) -> String {
        guard hasMirrors, let base = rules(for: url.normalizedSite, shards: 1).mirror?.value,
            URLOrigin(base) != URLOrigin(url)
        else { return url }
        let parts = URLParts(url)
        let items = parts.query?.split(separator: "&", omittingEmptySubsequences: false).filter { item in
            !String(item.prefix { $0 != "=" }).isSecretName
        }
        let query = items.map { $0.joined(separator: "&") } ?? ""
        let path = parts.path.utf8.first == UInt8(ascii: "/") ? String(parts.path) : "/\(parts.path)"
        return base + path + (query.isEmpty ? "" : "?" + query)
    }

    /// The policy by which a status of a host is retried; nil for none.
    ///
    /// - Parameter site: `site`.
    func retrying(_ status: Int, of site: String) -> String? {
        guard !isEmpty, let rule = rules(for: site, shards: 1).retryStatuses, rule.value.contains(status) else {
            return nil
        }
        return rule.policy
    }

    /// The patterns that fit a host, nearest first.
    static func patterns(of site: String) -> [String] {
        var host = site.shownSite[...]
        if host.last != "]", let colon = host.lastIndex(of: ":") { host = host[..<colon] }
        var patterns = [String(host)]
        while let dot = host.firstIndex(of: "."), host.first != "[" {
            host = host[dot...].dropFirst()
            patterns.append("*." + host)
        }
        return patterns
    }
}
