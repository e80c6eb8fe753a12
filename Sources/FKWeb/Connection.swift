import FKRPC

/// One connection. Only the server's thread uses it.
final class Connection {
    /// What the client speaks.
    enum Input {
        case http(HTTPReader)
        case frames(FrameReader, RPCPeer)
        /// The last answer is written, or being written. What arrives is ignored.
        case ignored
    }

    /// Identifies the connection to other threads.
    let number: UInt64
    let wsi: OpaquePointer
    var input = Input.http(HTTPReader(maxBody: WebLimits.body))
    /// The request whose answer is awaited.
    var request = WebRequest()
    /// True while the service works for the connection. Nothing else is read meanwhile.
    var isBusy = false
    /// The notifications that wait for the answer to the present request of a WebSocket.
    var held: [[UInt8]] = []
    var heldBytes = 0
    /// True while bytes of the client stay in its socket.
    var isStopped = false
    /// True if a WebSocket has been asked for a sign of life.
    var isAsked = false
    /// The client's address.
    let client: String
    /// When the connection began, and when the request that is arriving has to be whole; nil between requests. Nanoseconds of
    /// `WebServer.now`.
    let start: Int64
    var arrivalEnd: Int64?
    /// True once a whole request has arrived.
    var hasRequest = false
    /// True once a call had the right secret, or none is needed.
    var isProven = false
    /// True if the connection is being ended from outside its own events.
    var isCut = false
    var output = Output()
    /// True if the connection is to end when everything is written.
    var closesAfterwards = false

    init(_ number: UInt64, _ wsi: OpaquePointer, client: String, start: Int64) {
        self.number = number
        self.wsi = wsi
        self.client = client
        self.start = start
    }

    /// The WebSocket's receiver of notifications; nil for HTTP.
    var peer: RPCPeer? { if case .frames(_, let peer) = input { peer } else { nil } }

    /// True if the client has not taken its answers yet. Its next request waits until it has.
    var isSlow: Bool { output.count >= (isProven ? WebLimits.slow : WebLimits.slowUnproven) }

    /// True for a WebSocket of which no message has begun to arrive. Of HTTP, empty lines arrive between requests too.
    var isBetween: Bool { if case .frames(let reader, _) = input { reader.isBetween } else { false } }

    /// The number of bytes that have arrived and wait.
    var waitingBytes: Int {
        switch input {
        case .http(let reader): reader.count
        case .frames(let reader, _): reader.count
        case .ignored: 0
        }
    }
}

/// What is to be written to a client.
struct Output {
    private var parts: [[UInt8]] = []
    /// The first part that is not written whole, and the bytes of it that are.
    private var index = 0
    private var offset = 0
    /// The number of bytes that wait.
    private(set) var count = 0

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        parts.append(bytes)
        count += bytes.count
    }

    /// Drains the next bytes, at most a chunk.
    mutating func drain(into chunk: inout [UInt8]) {
        var room = WebLimits.chunk
        while room > 0, index < parts.count {
            let end = min(parts[index].count, offset + room)
            chunk += parts[index][offset..<end]
            room -= end - offset
            count -= end - offset
            offset = end
            if end == parts[index].count {
                parts[index] = []
                index += 1
                offset = 0
            }
        }
        if index == parts.count || index > 1_024 {
            parts.removeFirst(index)
            index = 0
        }
    }
}

enum WebLimits {
    /// The maximum length of a body or a message: aria2's `rpc-max-request-size`.
    static let body = 2 << 20
    /// Connections at the same time.
    static let connections = 4_096
    /// Bytes of a client that wait while it is served. More of them are not read.
    static let waiting = 64 << 10
    /// Bytes that wait for a client before its next request is handled, and for one that has not shown the secret.
    static let slow = 1 << 20
    static let slowUnproven = 64 << 10
    /// Bytes that wait for a client that does not read. A notification on top of them ends its connection.
    static let stuck = 8 << 20
    /// The bytes of one write.
    static let chunk = 64 << 10
    /// Connections beyond the limit that may exist until those have closed that make room for them.
    static let closing = 16
    /// Seconds for the next bytes of a request, and for a whole one.
    static let arrival = 20
    static let request = 30
    /// Seconds until the next request.
    static let idle = 60
    /// Seconds in which a client has to read a chunk.
    static let reading = 30
    /// Seconds of silence after which a WebSocket is asked for a sign of life, and after which it ends.
    static let silence = 30
    /// Seconds that a client has to close after the last answer.
    static let farewell = 2
}
