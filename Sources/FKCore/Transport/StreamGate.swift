import FKMiddleware

/// Limits the number of transfers in libcurl for a server that may use HTTP/2, and chooses the transfers that open a further
/// connection.
///
/// libcurl opens one connection for each request beyond the streams that a server allows (7.88: 256 concurrent
/// transfers opened 129 connections to nginx, which allows 128 streams). It therefore gets at most
/// `streamsPerConnection` transfers for each connection that is known to exist. The first transfer of every further
/// hundred opens a new connection, and the others wait for it. A server that speaks HTTP/1.1 gets all transfers at
/// once, because each needs its own connection there. A server that asks for calm gets fewer streams.
struct StreamGate {
    /// The number of streams that servers should at least allow (RFC 9113 section 6.5.2).
    static let streamsPerConnection = 100

    enum Admission: Hashable {
        case now
        case onNewConnection
        /// `drainAdmitted` returns it when it may start.
        case later
    }

    private struct Server {
        var active = 0
        /// The known connections. The first one counts from the start: libcurl itself makes the others wait for it.
        var connections = 1
        /// The transfers whose new connection does not exist yet.
        var opening: Set<UInt64> = []
        var waiting: ArraySlice<UInt64> = []
        var isSerial = false
        /// The number of streams that the server bears; nil for the usual one. It then gets no further connection.
        var most: Int?

        var room: Int {
            if isSerial { return .max }
            return (most ?? connections * StreamGate.streamsPerConnection) - active + opening.count
        }
        var wanted: Int {
            most == nil
                ? (active + waiting.count + StreamGate.streamsPerConnection) / StreamGate.streamsPerConnection : 0
        }
    }

    private var servers: [URLOrigin: Server] = [:]
    /// The number of streams for servers that have asked for fewer.
    private var calm: [URLOrigin: Int] = [:]
    private var places: [UInt64: URLOrigin] = [:]
    private var admitted: [UInt64] = []
    /// The number of waiting transfers, over all servers.
    private(set) var waitingCount = 0

    mutating func admit(_ id: UInt64, to origin: URLOrigin) -> Admission {
        places[id] = origin
        var server = servers[origin, default: Server(most: calm[origin])]
        defer { servers[origin] = server }
        if server.room > 0 {
            server.active += 1
            return .now
        }
        if server.wanted > server.connections + server.opening.count {
            server.active += 1
            server.opening.insert(id)
            return .onNewConnection
        }
        server.waiting.append(id)
        waitingCount += 1
        return .later
    }

    /// The server has too many streams (RFC 9113 section 7, ENHANCE_YOUR_CALM): it gets half as many from now on, and at least
    /// one.
    mutating func calm(_ origin: URLOrigin) {
        let active = servers[origin]?.active ?? 1
        let most = max(1, min(calm[origin] ?? .max, active) / 2)
        calm[origin] = most
        servers[origin]?.most = most
    }

    /// The connection of a transfer exists now.
    mutating func connected(_ id: UInt64) {
        guard let origin = places[id], servers[origin]?.opening.remove(id) != nil else { return }
        servers[origin]?.connections += 1
        release(origin)
    }

    /// A transfer was answered over HTTP/1.
    mutating func answeredSerially(_ id: UInt64) {
        guard let origin = places[id], servers[origin]?.isSerial == false else { return }
        servers[origin]?.isSerial = true
        release(origin)
    }

    mutating func ended(_ id: UInt64) {
        guard let origin = places.removeValue(forKey: id), servers[origin] != nil else { return }
        if let index = servers[origin]?.waiting.firstIndex(of: id) {
            servers[origin]?.waiting.remove(at: index)
            waitingCount -= 1
            return
        }
        servers[origin]?.opening.remove(id)
        servers[origin]?.active -= 1
        release(origin)
        // Which connections libcurl keeps is then unknown.
        if servers[origin]?.active == 0 { servers[origin] = nil }
    }

    /// Returns the transfers whose wait is over, in order of arrival.
    mutating func drainAdmitted() -> [UInt64] {
        defer { admitted.removeAll(keepingCapacity: true) }
        return admitted
    }

    private mutating func release(_ origin: URLOrigin) {
        guard var server = servers[origin], !server.waiting.isEmpty else { return }
        while server.room > 0, let id = server.waiting.popFirst() {
            server.active += 1
            waitingCount -= 1
            admitted.append(id)
        }
        servers[origin] = server
    }
}
