#if canImport(CLibcurl)
    import CLibcurl

    /// The connections of a transport, by their local ports, with what has to be known before they are used again.
    ///
    /// Over HTTP/1, a connection carries one answer at a time. Data that comes while no request is outstanding is no answer, and the connection
    /// is closed (RFC 9112 section 9.2). libcurl does so since 8.1.
    final class SerialConnections {
        private struct Connection {
            var socket: Int32
            /// True once a server has answered over HTTP/1.
            var isSerial = false
        }

        private var connections: [Int: Connection] = [:]

        /// A connection is new: whatever had its port is gone.
        ///
        /// - Parameter socket: its descriptor; nil if it is not known.
        func opened(_ port: Int, _ socket: Int32?) { connections[port] = socket.map { Connection(socket: $0) } }

        /// A server has answered over the connection.
        func answered(_ port: Int, isSerial: Bool) { connections[port]?.isSerial = isSerial }

        /// True if there is something to read from a connection that carries one answer at a time, before a request is sent.
        func hasStrayInput(_ port: Int, of easy: CurlEasy) -> Bool {
            guard let connection = connections[port], connection.isSerial else { return false }
            return fk_easy_has_input(easy.pointer, connection.socket) != 0
        }
    }
#endif
