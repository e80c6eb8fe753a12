import FKMiddleware
import Foundation

/// One connection to a host, from `HostBudget.acquire` to `HostBudget.release`. It cannot be copied, so it is released
/// once at most.
struct HostPermit: ~Copyable, Sendable {
    let host: String
    fileprivate init(_ host: String) { self.host = host }
}

/// What may go to which host: connections in use, pauses that hosts asked for, hosts that speak HTTP/2.
///
/// ```text
/// closed: paused until a time (Retry-After) | full (maxConnectionsPerHost)
/// open:   acquire -> permit -> release
/// ```
///
/// Hosts are named by `HostName.site`; times are nanoseconds of a monotonic clock. A value type without locks.
struct HostBudget: Sendable {
    /// A time in which a host asked to be left alone.
    struct Pause: Sendable, Hashable {
        /// Its end.
        var until: Int64
        /// The same by the wall clock as it was when the pause was noted, to be shown and kept.
        var date: Date
    }

    /// Why no further request may go to a host.
    enum Obstacle: Sendable, Hashable {
        /// The host asked for it.
        case paused(Pause)
        /// This many connections are in use, which are all it may have.
        case full(limit: Int)
    }

    /// This many hosts that speak HTTP/2 are remembered while nothing is fetched from them.
    static let maxSharedHosts = 1_024

    /// Connections that a host may have, at least 1. Lowering it ends no connection: see `excess(of:)`.
    var limit: Int
    /// Connections in use by host; hosts without one are left out.
    private(set) var connections: [String: Int] = [:]
    private(set) var pauses: [String: Pause] = [:]
    private var sharedHosts: Set<String> = []

    init(limit: Int) { self.limit = limit }

    // MARK: Connections

    /// What keeps another request from that host; nil when it may go out.
    ///
    /// - Parameter more: connections counted besides the ones in use.
    func obstacle(_ host: String, now: Int64, more: Int = 0) -> Obstacle? {
        if let pause = pauses[host], pause.until > now { return .paused(pause) }
        return connections[host, default: 0] + more >= limit ? .full(limit: limit) : nil
    }

    func isOpen(_ host: String, now: Int64) -> Bool { obstacle(host, now: now) == nil }

    /// Counts a connection; nil while the host is paused or full.
    mutating func acquire(_ host: String, now: Int64) -> HostPermit? {
        guard isOpen(host, now: now) else { return nil }
        connections[host, default: 0] += 1
        return HostPermit(host)
    }

    mutating func release(_ permit: consuming HostPermit) {
        let host = permit.host
        guard let count = connections[host] else { return }
        connections[host] = count > 1 ? count - 1 : nil
    }

    /// Connections that hosts have beyond a limit that was lowered.
    var excess: [(host: String, count: Int)] {
        connections.compactMap { $1 > limit ? ($0, $1 - limit) : nil }
    }

    // MARK: Pauses

    /// Nothing goes to that host for this many seconds. A shorter pause never replaces a longer one.
    ///
    /// - Returns: false when nothing changes: the host is paused for at least as long already, or the time is past.
    @discardableResult
    mutating func pause(_ host: String, seconds: Double, now: Int64, date: Date) -> Bool {
        let until = now + Int64(min(max(seconds, 0), 1e9) * 1e9)
        guard until > max(now, pauses[host]?.until ?? .min) else { return false }
        pauses[host] = Pause(until: until, date: date + seconds)
        return true
    }

    /// Drops the pauses that are over.
    mutating func endPauses(now: Int64) {
        if !pauses.isEmpty { pauses = pauses.filter { $0.value.until > now } }
    }

    /// When the next pause ends.
    var nextEnd: Int64? { pauses.values.lazy.map(\.until).min() }

    // MARK: HTTP/2

    /// The host was asked over HTTP/2, or knows nothing else.
    mutating func noteShared(_ host: String) {
        if sharedHosts.count >= Self.maxSharedHosts, !sharedHosts.contains(host) {
            sharedHosts = sharedHosts.filter { connections[$0] != nil }
        }
        sharedHosts.insert(host)
    }

    func isShared(_ host: String) -> Bool { sharedHosts.contains(host) }

    var sharedCount: Int { sharedHosts.count }
}

/// The one spelling of a server's name, which limits and pauses are kept by.
enum HostName {
    /// Scheme, host and port of a URL that has been through `URLNormalizer`: `http://a.example:8080`. A dot at the host's
    /// end is left out, and an IPv6 address has its shortest form: either names the same server.
    static func site(_ url: String) -> String {
        let site = URLParts.site(of: url)
        guard hasOtherSpelling(site) else { return site }
        let parts = URLParts(site)
        guard let scheme = parts.scheme else { return site }
        let (host, port) = split(parts.hostPort)
        return "\(scheme)://\(host)\(port)"
    }

    /// The same for a URL as a server or a transport spells it.
    static func site(unnormalized url: String) -> String { site((try? URLNormalizer.normalize(url)) ?? url) }

    /// `a.example:8080` of a site, for a person.
    static func shown(_ site: String) -> String { String(URLParts(site).hostPort) }

    /// Asked once for each task that is queued.
    private static func hasOtherSpelling(_ site: String) -> Bool {
        var last: UInt8 = 0
        for byte in site.utf8 {
            if byte == UInt8(ascii: "[") || byte == UInt8(ascii: ":") && last == UInt8(ascii: ".") { return true }
            last = byte
        }
        return last == UInt8(ascii: ".")
    }

    private static func split(_ hostPort: Substring) -> (host: String, port: Substring) {
        if hostPort.first == "[", let close = hostPort.firstIndex(of: "]") {
            return ("[\(shortest(hostPort[..<close].dropFirst()))]", hostPort[close...].dropFirst())
        }
        let colon = hostPort.firstIndex(of: ":") ?? hostPort.endIndex
        let name = hostPort[..<colon]
        return (String(name.last == "." ? name.dropLast() : name), hostPort[colon...])
    }

    /// RFC 5952 section 4.
    private static func shortest(_ literal: Substring) -> String {
        let parts = literal.split(separator: "%", maxSplits: 1)
        var address = in6_addr()
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard let first = parts.first, inet_pton(AF_INET6, String(first), &address) == 1,
            inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil
        else { return String(literal) }
        let end = text.firstIndex(of: 0) ?? text.count
        let short = String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self)
        return parts.count == 2 ? "\(short)%\(parts[1])" : short
    }
}
