import FKMiddleware
import Foundation

/// A permit for one connection to a host, from `HostBudget.acquire` to `HostBudget.release`. It cannot be copied, so
/// it is released at most once.
struct HostPermit: ~Copyable, Sendable {
    let host: String
    fileprivate let group: Int32
    /// Its part of the connections that all processes share; nil for a host without a limit of its own.
    fileprivate let connection: HostConnection?
    fileprivate init(_ host: String, _ group: Int32, _ connection: HostConnection?) {
        (self.host, self.group, self.connection) = (host, group, connection)
    }
}

/// The limits of requests to hosts: connections in use, requests per time, pauses that servers asked for, and hosts that
/// speak HTTP/2.
///
/// ```text
/// closed: paused until a time (Retry-After) | paced until a time (policies, the server's quota) | full (connections)
/// open:   admit -> acquire -> permit -> acquireTurn for each request -> release
/// ```
///
/// `HostTurns` shares the limits of policies and commands with other processes.
///
/// Hosts are named by `site`; times are nanoseconds of a monotonic clock. A value type without locks.
struct HostBudget: Sendable {
    /// A pause that a server asked for.
    struct Pause: Sendable, Hashable {
        var until: Int64
        /// Its end by the wall clock at the time of the answer, for display and storage.
        var date: Date
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
    /// The turns of all processes; nil shares none.
    private let turns: HostTurns?
    /// Hosts whose connections other processes have, and when to try again.
    private var busy: [String: Turn] = [:]
    /// The connection of the host that `admit` has found open, for `acquire`.
    private var spare: (host: String, connection: HostConnection)?

    init(limit: Int, turns: HostTurns? = nil) {
        self.limit = limit
        self.turns = turns
    }

    // MARK: Connections

    /// The obstacle to another request to the host; nil if it may be sent.
    ///
    /// - Parameters:
    ///   - asker: the command of the request.
    ///   - more: connections to count in addition to those in use; the default is 0.
    func obstacle(_ host: String, for asker: HostAsker = .anyone, now: Int64, more: Int = 0) -> Obstacle? {
        if let pause = pauses[host], pause.until > now { return .paused(pause) }
        let rules = rules(for: host, asker)
        if let turn = nextTurn(host, rules, asker, now: now) ?? busyTurn(host, now: now) { return .paced(turn) }
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

    /// The obstacle to a connection, in other processes as well. `acquire` takes the connection.
    mutating func admit(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> Obstacle? {
        spare = nil
        if let obstacle = obstacle(host, for: asker, now: now) { return obstacle }
        guard let turns, !isFree(asker) else { return nil }
        let name = host.shownSite
        if let until = turns.due(name, intervals(host, asker).map(\.value)) {
            return .paced(wait(host, asker, until: until))
        }
        guard let limit = rules(for: host, asker).connections else { return nil }
        let (connection, until) = turns.connect(name, limit: limit.value)
        spare = connection.map { (host, $0) }
        busy[host] = until.map { Turn(until: $0, policy: limit.policy) }
        return busy[host].map(Obstacle.paced)
    }

    private func busyTurn(_ host: String, now: Int64) -> Turn? { busy[host].flatMap { $0.until > now ? $0 : nil } }

    /// Releases a connection of `admit` that was not used.
    mutating func endAdmission() { spare = nil }

    /// The hosts with connections of this process for which another process waits.
    var awaited: [String] {
        guard let turns, !policies.isEmpty else { return [] }
        return connections.keys.filter {
            rules(for: $0).connections != nil && turns.isAwaited($0.shownSite)
        }
    }

    /// Acquires a connection; nil while the host is closed.
    mutating func acquire(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> HostPermit? {
        if spare?.host != host { guard admit(host, for: asker, now: now) == nil else { return nil } }
        let connection = spare?.connection
        spare = nil
        connections[host, default: 0] += 1
        let isOwned = asker.connections != nil
        if isOwned { owned[Owner(host: host, group: asker.group), default: 0] += 1 }
        return HostPermit(host, isOwned ? asker.group : CommandGroups.none, connection)
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
        let name = host.shownSite
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
    mutating func acquireTurn(_ host: String, for asker: HostAsker = .anyone, now: Int64) -> Turn? {
        if let turn = nextTurn(host, rules(for: host, asker), asker, now: now) { return turn }
        let intervals = intervals(host, asker).map(\.value)
        if !intervals.isEmpty, let until = turns?.acquire(host.shownSite, intervals) {
            return wait(host, asker, until: until)
        }
        record(host, intervals, now: now)
        return nil
    }

    /// Counts a request that was sent already, such as one after a redirect.
    mutating func count(_ host: String, for asker: HostAsker = .anyone, now: Int64) {
        let intervals = intervals(host, asker).map(\.value)
        if !intervals.isEmpty { turns?.count(host.shownSite, intervals) }
        record(host, intervals, now: now)
    }

    /// The intervals between requests of the host's policy and of the command.
    private func intervals(_ host: String, _ asker: HostAsker) -> [HostRules.Limit<Int64>] {
        isFree(asker) ? [] : [rules(for: host, asker).interval, asker.interval].compactMap(\.self)
    }

    /// Another process has the turns until then. The longest interval is the one that says so.
    private mutating func wait(_ host: String, _ asker: HostAsker, until: Int64) -> Turn {
        let interval = intervals(host, asker).max { $0.value < $1.value }
        if let interval { asked[Line(host: host.shownSite, interval: interval.value)] = until - interval.value }
        return Turn(until: until, policy: interval?.policy ?? "")
    }

    private mutating func record(_ host: String, _ intervals: [Int64], now: Int64) {
        if intervals.isEmpty, quotas.isEmpty { return }
        for interval in intervals { asked[Line(host: host.shownSite, interval: interval)] = now }
        quotas[host]?.sent(now: now)
        if asked.count > Self.maxSharedHosts { asked = asked.filter { $0.value + $0.key.interval > now } }
    }

    /// True if we limit no requests. Most runs have no limits.
    func isFree(_ asker: HostAsker) -> Bool { policies.isEmpty && asker.requestRate == nil }

    /// Records what an answer says about the requests that its server still allows.
    ///
    /// - Parameters:
    ///   - inFlight: the requests to the host that were sent and not answered.
    ///   - longest: the maximum time to wait in seconds.
    mutating func record(
        _ limits: [RateLimitFields.Limit], of host: String, for asker: HostAsker, inFlight: Int, now: Int64,
        longest: Double
    ) {
        guard !limits.isEmpty || quotas[host] != nil else { return }
        quotas[host, default: ServerQuota()].record(
            limits, inFlight: inFlight, now: now, longest: longest, shards: asker.shards)
        if quotas[host]?.isOver(now: now) == true { quotas[host] = nil }
        if quotas.count > Self.maxSharedHosts { quotas = quotas.filter { !$0.value.isOver(now: now) } }
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

    mutating func endPauses(now: Int64) {
        if !pauses.isEmpty { pauses = pauses.filter { $0.value.until > now } }
    }

    /// The end of the first pause to expire; nil if no host is paused.
    var nextEnd: Int64? { pauses.values.lazy.map(\.until).min() }

    // MARK: HTTP/2

    /// Remembers a host that speaks HTTP/2, so that its requests share a connection.
    mutating func recordShared(_ host: String) {
        if sharedHosts.count >= Self.maxSharedHosts, !sharedHosts.contains(host) {
            sharedHosts = sharedHosts.filter { connections[$0] != nil }
        }
        sharedHosts.insert(host)
    }

    func isShared(_ host: String) -> Bool { sharedHosts.contains(host) }
}
