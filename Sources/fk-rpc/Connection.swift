import FKRPC

/// One connection. Only the server's thread uses it.
final class Connection {
    /// Identifies the connection to other threads.
    let number: UInt64
    let wsi: OpaquePointer
    /// The WebSocket's receiver of notifications; nil for HTTP.
    var peer: RPCPeer?

    // HTTP
    var request = WebRequest()
    var body: [UInt8] = []
    var needsBody = false

    // WebSocket
    var message: [UInt8] = []
    /// Messages that wait for the answer to the one before.
    var pending: [[UInt8]] = []
    var isBusy = false
    var isStopped = false

    // Both
    /// What is to be written, the first part partly.
    private(set) var outgoing: [[UInt8]] = []
    private(set) var outgoingBytes = 0
    var offset = 0
    /// True if the connection is to end when everything is written.
    var closesAfterwards = false
    var mustClose = false

    init(_ number: UInt64, _ wsi: OpaquePointer) {
        self.number = number
        self.wsi = wsi
    }

    func append(_ bytes: [UInt8]) {
        outgoing.append(bytes)
        outgoingBytes += bytes.count
    }

    /// The present part is written.
    func finishPart() {
        offset = 0
        outgoingBytes -= outgoing.removeFirst().count
    }
}

/// A request line with the fields that matter.
struct WebRequest {
    var method = ""
    var path = ""
    var query: [(name: String, value: String)] = []
    var host: String?
    var origin: String?
    var requestedHeaders: String?
    var contentLength: Int?
    var isChunked = false
    var isClosing = false
}

/// The limits of the server.
enum WebLimits {
    /// The maximum length of a body or a message: aria2's `rpc-max-request-size`.
    static let body = 2 << 20
    /// Connections at the same time.
    static let connections = 4_096
    /// Messages of a WebSocket that wait. More of them are not read.
    static let pending = 64
    /// Bytes that wait for a client before its next message is handled.
    static let slow = 1 << 20
    /// Bytes that wait for a client that does not read. More of them end its connection.
    static let stuck = 8 << 20
    /// The bytes of one write.
    static let chunk = 64 << 10
}
