import FKMiddleware
import Foundation

/// A permit for one connection to a host, from `HostBudget.acquire` to `HostBudget.release`. It cannot be copied, so
/// it is released at most once.
struct HostPermit: ~Copyable, Sendable {
    let host: String
    fileprivate let group: Int32
    fileprivate init(_ host: String, _ group: Int32) { (self.host, self.group) = (host, group) }
}

/// The limits of requests to hosts: connections in use, requests per time, pauses that servers asked for, and hosts that
/// speak HTTP/2.
///
/// ```text
/// closed: paused until a time (Retry-After) | paced until a time (policies, the server's quota) | full (connections)
/// open:   acquire -> permit -> takeTurn for each request -> release
/// ```
///
/// Hosts are named by `HostName.site`; times are nanoseconds of a monotonic clock. A value type without locks.
struct HostBudget: Sendable {
    /// A pause that a server asked for.
    struct Pause: Sendable, Hashable {
        /// Its end.
        var until: Int64
        /// Its end by the wall clock at the time of the answer, for display and storage.
        var date: Date
        /// Its length.
        var seconds: Double
    }

    /// The reason why no further request may go to a host.
    enum Obstacle: Sendable, Hashable {
        /// The server asked for a pause.
        case paused(Pause)
        /// The next request may be sent later.
        case paced(Turn)
        /// All connections that the host may have are in use. `policy` names the limit; nil for `limit`.
        case full(limit: Int, policy: String? = nil)
    }

    /// When the next request may be sent, and the limit that says so.
    struct Turn: Sendable, Hashable {
        var until: Int64
        var policy: String
    }

    /// Requests that keep a distance in time from each other.
    private struct Line: Hashable {
        /// Host and port: the scheme makes no difference.
        var host: String
        /// Nanoseconds.
        var interval: Int64
    }

    private struct Owner: Hashable {
        var host: String
        var group: Int32
    }

    /// The maximum number of remembered HTTP/2 hosts without connections.
    static let maxSharedHosts = 1_024

    /// The number of connections to a host, at least 1. Lowering it ends no connection; see `excess`.
    var limit: Int
    /// The policies of hosts.
    var policies = HostPolicies()
    /// The quotas that servers announce.
    private(set) var quotas: [String: ServerQuota] = [:]
    /// The last request of each line.
    private var asked: [Line: Int64] = [:]
    /// Connections in use by commands that limit them.
    private var owned: [Owner: Int] = [:]
    /// Connections in use by host. Hosts without one are left out.
    private(set) var connections: [String: Int] = [:]
    private(set) var pauses: [String: Pause] = [:]
    private var sharedHosts: Set<String> = []

    init(limit: Int) { self.limit = limit }

    // MARK: Connections

    /// The obstacle to another request to the host; nil if it may be sent.
    ///
    /// - Parameters:
    ///   - asker: the command of the request.
    ///   - more: connections to count in addition to those in use; the default is 0.
    func obstacle(_ host: String, for asker: HostAsker = .anyone, now: Int64, more: Int = 0) -> Obstacle? {
        if let pause = pauses[host], pause.until > now { return .paused(pause) }
        let rules = rules(for: host, asker)
        if let turn = nextTurn(host, rules, asker, now: now) { return .paced(turn) }
        let most = rules.connections?.value ?? max(limit, asker.connections ?? 0)
        if connections[host, default: 0] + more >= most {
            return .full(limit: most, policy: rules.connections?.policy)
        }
        guard let own = asker.connections, owned[Owner(host: host, group: asker.group), default: 0] + more >= own else {
            return nil
        }
        return .full(limit: own, policy: "--per-host \(own)")
    }

    func isOpen(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> Bool {
        obstacle(host, for: asker, now: now) == nil
    }

    /// Acquires a connection; nil while the host is closed.
    mutating func acquire(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> HostPermit? {
        guard isOpen(host, for: asker, now: now) else { return nil }
        connections[host, default: 0] += 1
        let isOwned = asker.connections != nil
        if isOwned { owned[Owner(host: host, group: asker.group), default: 0] += 1 }
        return HostPermit(host, isOwned ? asker.group : CommandGroups.none)
    }

    /// Releases a connection.
    mutating func release(_ permit: consuming HostPermit) {
        let owner = Owner(host: permit.host, group: permit.group)
        guard let count = connections[owner.host] else { return }
        connections[owner.host] = count > 1 ? count - 1 : nil
        if let count = owned[owner] { owned[owner] = count > 1 ? count - 1 : nil }
    }

    /// The number of connections of each host beyond a lowered limit.
    var excess: [(host: String, count: Int)] {
        connections.compactMap { host, count in
            let most = rules(for: host).connections?.value ?? limit
            return count > most ? (host, count - most) : nil
        }
    }

    // MARK: Requests

    /// The limits of a host for a command.
    func rules(for host: String, _ asker: HostAsker = .anyone) -> HostRules {
        policies.rules(for: host, shards: asker.shards)
    }

    /// The time of the next request; nil if it may be sent at once.
    private func nextTurn(_ host: String, _ rules: HostRules, _ asker: HostAsker, now: Int64) -> Turn? {
        if rules.interval == nil, asker.requestRate == nil, quotas.isEmpty { return nil }
        let name = HostName.shown(host)
        var turns = [rules.interval, asker.interval].compactMap(\.self).compactMap { interval in
            asked[Line(host: name, interval: interval.value)].map {
                Turn(until: $0 + interval.value, policy: interval.policy)
            }
        }
        if let quota = quotas[host], let time = quota.next(now: now) {
            turns.append(Turn(until: time, policy: quota.words))
        }
        return turns.filter { $0.until > now }.max { $0.until < $1.until }
    }

    /// Counts a request that is sent now.
    ///
    /// - Returns: nil if it may be sent, otherwise when to try again.
    mutating func takeTurn(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> Turn? {
        if let turn = nextTurn(host, rules(for: host, asker), asker, now: now) { return turn }
        count(host, for: asker, now: now)
        return nil
    }

    /// Counts a request that was sent already, such as one after a redirect.
    mutating func count(_ host: String, for asker: HostAsker = .anyone, now: Int64) {
        if isFree(asker), quotas.isEmpty { return }
        let name = HostName.shown(host)
        for interval in [rules(for: host, asker).interval, asker.interval] {
            if let interval { asked[Line(host: name, interval: interval.value)] = now }
        }
        quotas[host]?.sent(now: now)
        if asked.count > Self.maxSharedHosts { asked = asked.filter { $0.value + $0.key.interval > now } }
    }

    /// True if other processes must learn at once of a request to a host: the next one may be theirs.
    func isSlow(_ host: String, for asker: HostAsker) -> Bool {
        if isFree(asker) { return false }
        return [rules(for: host, asker).interval, asker.interval].contains { ($0?.value ?? 0) >= 500_000_000 }
    }

    /// True if no rate of requests is limited by us. Most runs have none.
    private func isFree(_ asker: HostAsker) -> Bool { policies.isEmpty && asker.requestRate == nil }

    /// Notes what an answer says about the requests that its server still allows.
    ///
    /// - Parameters:
    ///   - inFlight: the requests to the host that were sent and not answered.
    ///   - longest: the maximum time to wait in seconds.
    mutating func note(
        _ limits: [RateLimitFields.Limit], of host: String, for asker: HostAsker, inFlight: Int, now: Int64,
        longest: Double
    ) {
        guard !limits.isEmpty || quotas[host] != nil else { return }
        quotas[host, default: ServerQuota()].note(
            limits, inFlight: inFlight, now: now, longest: longest, shards: asker.shards)
        if quotas[host]?.isOver(now: now) == true { quotas[host] = nil }
        if quotas.count > Self.maxSharedHosts { quotas = quotas.filter { !$0.value.isOver(now: now) } }
    }

    /// The times of the last requests, for the next engine: by host and interval.
    func requestTimes(now: Int64) -> [(host: String, interval: Int64, age: Int64)] {
        asked.compactMap { line, time in
            time + line.interval > now ? (line.host, line.interval, now - time) : nil
        }
    }

    /// Restores the time of a request of an earlier engine.
    mutating func restore(_ host: String, interval: Int64, at time: Int64) {
        asked[Line(host: host, interval: interval)] = time
    }

    // MARK: Pauses

    /// Pauses requests to a host. A shorter pause does not replace a longer one.
    ///
    /// - Returns: false if nothing changes: the host is already paused for at least that long, or `seconds` is not
    ///   above 0.
    @discardableResult
    mutating func pause(_ host: String, seconds: Double, now: Int64, date: Date) -> Bool {
        let until = now + Int64(min(max(seconds, 0), 1e9) * 1e9)
        guard until > max(now, pauses[host]?.until ?? .min) else { return false }
        pauses[host] = Pause(until: until, date: date + seconds, seconds: seconds)
        return true
    }

    /// Removes expired pauses.
    mutating func endPauses(now: Int64) {
        if !pauses.isEmpty { pauses = pauses.filter { $0.value.until > now } }
    }

    /// The end of the first pause to expire; nil if no host is paused.
    var nextEnd: Int64? { pauses.values.lazy.map(\.until).min() }

    // MARK: HTTP/2

    /// Remembers a host that speaks HTTP/2, so that its requests share a connection.
    mutating func noteShared(_ host: String) {
        if sharedHosts.count >= Self.maxSharedHosts, !sharedHosts.contains(host) {
            sharedHosts = sharedHosts.filter { connections[$0] != nil }
        }
        sharedHosts.insert(host)
    }

    func isShared(_ host: String) -> Bool { sharedHosts.contains(host) }
}
