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

    var isEmpty: Bool { policies.isEmpty }

    /// - Parameter policies: of two with the same pattern, the later one's fields have precedence.
    init(_ policies: [HostPolicy] = []) {
        for policy in policies {
            guard let pattern = policy.normalPattern, policy.fault == nil else { continue }
            self.policies[pattern, default: HostPolicy(pattern)].set(policy)
        }
    }

    /// The limits of a host, named by `HostName.site`.
    func rules(for site: String, shards: Int) -> HostRules {
        if isEmpty { return HostRules() }
        var rules = HostRules()
        for whole in Self.patterns(of: site).compactMap({ policies[$0] }) {
            let policy = whole.divided(by: shards)
            rules.connections =
                rules.connections
                ?? whole.connections.map {
                    .init(
                        value: policy.connections ?? $0,
                        policy: "\(policy.pattern): \(Plural.count($0, "connection"))")
                }
            rules.interval =
                rules.interval
                ?? policy.requestRate.map {
                    .init(value: $0.interval * Int64(shards), policy: "\(policy.pattern): \($0.words)")
                }
            rules.rateLimit = rules.rateLimit ?? policy.rateLimit
            rules.contact = rules.contact ?? policy.contact
        }
        return rules
    }

    /// The patterns that fit a host, nearest first.
    static func patterns(of site: String) -> [String] {
        var host = HostName.shown(site)[...]
        if host.last != "]", let colon = host.lastIndex(of: ":") { host = host[..<colon] }
        var patterns = [String(host)]
        while let dot = host.firstIndex(of: "."), host.first != "[" {
            host = host[dot...].dropFirst()
            patterns.append("*." + host)
        }
        return patterns
    }
}
