import FKMiddleware
import Foundation

/// The handshake of a WebSocket (RFC 6455, 4.2).
package enum WebSocketUpgrade: Sendable, Hashable {
    /// The request asks for no WebSocket. Another protocol is ignored, as HTTP allows.
    case none
    /// The value of `Sec-WebSocket-Accept` in the answer.
    case accepted(String)
    /// The status and the reason of a refusal.
    case refused(Int, String)

    package init(_ request: WebRequest) {
        guard request.contains("websocket", in: "upgrade") else {
            self = .none
            return
        }
        guard request.method == "GET", request.path == "/jsonrpc" else {
            self = .refused(404, "WebSockets are served at /jsonrpc.")
            return
        }
        guard request["sec-websocket-version"] == "13" else {
            self = .refused(426, "The version of WebSocket must be 13.")
            return
        }
        let key = request["sec-websocket-key"] ?? ""
        guard request.contains("upgrade", in: "connection"), Data(base64Encoded: key)?.count == 16 else {
            self = .refused(400, "The handshake of the WebSocket is wrong: Connection or Sec-WebSocket-Key.")
            return
        }
        // A client that needs a protocol must not believe that it is spoken here.
        guard request["sec-websocket-protocol"] == nil else {
            self = .refused(400, "No subprotocol of WebSocket is spoken here. Connect without Sec-WebSocket-Protocol.")
            return
        }
        let digester = Digester(.sha1)
        Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8).withUnsafeBytes { digester.update($0) }
        self = .accepted(Data(digester.bytes()).base64EncodedString())
    }
}
