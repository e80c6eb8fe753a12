import FKMiddleware
import Foundation

/// A permit for one connection to a host, from `HostBudget.acquire` to `HostBudget.release`. It cannot be copied, so
/// it is released at most once.
struct HostPermit: ~Copyable, Sendable {
    let host: String
    fileprivate init(_ host: String) { self.host = host }
}

/// The limits of requests to hosts: connections in use, pauses that servers asked for, and hosts that speak HTTP/2.
///
/// ```text
/// closed: paused until a time (Retry-After) | full (maxConnectionsPerHost)
/// open:   acquire -> permit -> release
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
        /// All connections that the host may have are in use.
        case full(limit: Int)
    }

    /// The maximum number of remembered HTTP/2 hosts without connections.
    static let maxSharedHosts = 1_024

    /// The number of connections to a host, at least 1. Lowering it ends no connection; see `excess`.
    var limit: Int
    /// Connections in use by host. Hosts without one are left out.
    private(set) var connections: [String: Int] = [:]
    private(set) var pauses: [String: Pause] = [:]
    private var sharedHosts: Set<String> = []

    init(limit: Int) { self.limit = limit }

    // MARK: Connections

    /// The obstacle to another request to the host; nil if it may be sent.
    ///
    /// - Parameter more: connections to count in addition to those in use; the default is 0.
    func obstacle(_ host: String, now: Int64, more: Int = 0) -> Obstacle? {
        if let pause = pauses[host], pause.until > now { return .paused(pause) }
        return connections[host, default: 0] + more >= limit ? .full(limit: limit) : nil
    }

    func isOpen(_ host: String, now: Int64) -> Bool { obstacle(host, now: now) == nil }

    /// Acquires a connection; nil while the host is paused or full.
    mutating func acquire(_ host: String, now: Int64) -> HostPermit? {
        guard isOpen(host, now: now) else { return nil }
        connections[host, default: 0] += 1
        return HostPermit(host)
    }

    /// Releases a connection.
    mutating func release(_ permit: consuming HostPermit) {
        let host = permit.host
        guard let count = connections[host] else { return }
        connections[host] = count > 1 ? count - 1 : nil
    }

    /// The number of connections of each host beyond a lowered limit.
    var excess: [(host: String, count: Int)] {
        connections.compactMap { $1 > limit ? ($0, $1 - limit) : nil }
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
