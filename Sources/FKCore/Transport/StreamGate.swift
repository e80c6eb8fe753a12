/// How many transfers go to libcurl at once for a server that may speak HTTP/2, and which one opens a further connection.
///
/// libcurl opens a connection of its own for each request beyond the streams a server allows (7.88: 256 transfers at once
/// opened 129 connections to nginx, which allows 128 streams). So at most `streamsPerConnection` are given to it for each
/// connection that is known to be there; the first one of every further hundred is told to open a new one, and the others
/// wait for that. A server that turns out to speak HTTP/1.1 gets everything at once: there each transfer needs its own.
struct StreamGate {
    /// What a server should allow at least (RFC 9113 section 6.5.2).
    static let streamsPerConnection = 100

    enum Admission: Hashable {
        case now
        case onNewConnection
        /// `takeAdmitted` names it when its time has come.
        case later
    }

    private struct Server {
        var active = 0
        /// Connections known to be there, and the first one, for which libcurl itself has the others wait.
        var connections = 1
        /// Transfers whose new connection is not there yet.
        var opening: Set<UInt64> = []
        var waiting: ArraySlice<UInt64> = []
        var isSerial = false

        var room: Int { isSerial ? .max : connections * StreamGate.streamsPerConnection - active + opening.count }
        var wanted: Int {
            (active + waiting.count + StreamGate.streamsPerConnection) / StreamGate.streamsPerConnection
        }
    }

    private var servers: [URLOrigin: Server] = [:]
    private var places: [UInt64: URLOrigin] = [:]
    private var admitted: [UInt64] = []
    /// Transfers that wait, over all servers.
    private(set) var waitingCount = 0

    mutating func admit(_ id: UInt64, to origin: URLOrigin) -> Admission {
        places[id] = origin
        var server = servers[origin, default: Server()]
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

    /// A transfer's connection is there.
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
        // What libcurl keeps of the connections is not known any more.
        if servers[origin]?.active == 0 { servers[origin] = nil }
    }

    /// Those that waited and now go, in the order they came.
    mutating func takeAdmitted() -> [UInt64] {
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
