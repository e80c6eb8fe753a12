import CLibwebsockets
import FKRPC
import Foundation

/// The events of libwebsockets, on the server's thread.
extension WebServer {
    /// - Returns: 0 to go on, -1 to end the connection.
    func handle(_ wsi: OpaquePointer, _ reason: lws_callback_reasons, _ input: UnsafeRawBufferPointer?) -> Int32 {
        switch reason {
        case LWS_CALLBACK_FILTER_NETWORK_CONNECTION: return hasRoom ? 0 : -1
        case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED: begin(wsi)
        case LWS_CALLBACK_WSI_DESTROY: close(wsi)
        case LWS_CALLBACK_EVENT_WAIT_CANCELLED: performEvents()

        case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return confirmUpgrade(wsi)
        case LWS_CALLBACK_HTTP: return begin(wsi, path: input)
        case LWS_CALLBACK_HTTP_BODY:
            let connection = connection(wsi)
            guard let input, connection.body.count + input.count <= WebLimits.body else { return -1 }
            connection.body += input
        case LWS_CALLBACK_HTTP_BODY_COMPLETION:
            let connection = connection(wsi)
            if connection.needsBody { ask(connection) }
        case LWS_CALLBACK_HTTP_WRITEABLE: return write(connection(wsi))
        case LWS_CALLBACK_CLOSED_HTTP: end(wsi)

        case LWS_CALLBACK_ESTABLISHED: open(wsi)
        case LWS_CALLBACK_RECEIVE: return receive(wsi, input)
        case LWS_CALLBACK_SERVER_WRITEABLE: return write(connection(wsi))
        case LWS_CALLBACK_CLOSED: end(wsi)
        default: break
        }
        return 0
    }

    private func performEvents() {
        for event in takeEvents() {
            switch event {
            case .answer(let number, let answer):
                guard let connection = connection(numbered: number) else { continue }
                connection.isBusy = false
                if connection.peer == nil {
                    respond(connection, answer.status, "application/json-rpc", answer.body)
                } else {
                    connection.append(answer.body)
                    lws_callback_on_writable(connection.wsi)
                    askNext(connection)
                }
            case .message(let number, let bytes):
                guard let connection = connection(numbered: number) else { continue }
                // A client that does not read must not fill the memory.
                if connection.outgoingBytes > WebLimits.stuck {
                    connection.mustClose = true
                    lws_set_timeout(connection.wsi, PENDING_TIMEOUT_USER_OK, -1)
                } else {
                    connection.append(bytes)
                }
                lws_callback_on_writable(connection.wsi)
            }
        }
    }

    // MARK: HTTP

    private func begin(_ wsi: OpaquePointer, path: UnsafeRawBufferPointer?) -> Int32 {
        end(wsi)
        let connection = connection(wsi)
        connection.request = HeaderReader(wsi).request(path: path)
        let request = connection.request
        if let fault = rules.fault(host: request.host, origin: request.origin) {
            return respond(connection, 403, "text/plain; charset=utf-8", Array("\(fault)\n".utf8), isFinal: true)
        }
        switch (request.method, request.path) {
        case ("OPTIONS", _): return respond(connection, 200, nil, [], isFinal: false)
        case ("POST", "/jsonrpc"):
            guard let length = request.contentLength else {
                return respond(connection, 411, nil, [], isFinal: true)
            }
            guard length <= WebLimits.body else { return respond(connection, 413, nil, [], isFinal: true) }
            connection.needsBody = true
            // libwebsockets does not wait for an answer to an empty body.
            if length == 0 {
                let head = ResponseHeader(
                    status: RPCError.parse.status, type: "application/json-rpc",
                    length: RPCAnswer.unreadable.body.count,
                    request: request, isAllowed: true, closes: true, isPage: false)
                return writeNow(wsi, head, RPCAnswer.unreadable.body)
            }
            return 0
        case ("GET", "/jsonrpc"):
            guard !request.query.isEmpty else { return respond(connection, 400, nil, [], isFinal: true) }
            ask(connection)
            return 0
        case ("GET", let path), ("HEAD", let path):
            guard let file = page[path] else { return respond(connection, 404, nil, [], isFinal: true) }
            return respond(connection, 200, file.type, file.bytes, isFinal: false)
        default: return respond(connection, 404, nil, [], isFinal: true)
        }
    }

    /// Hands the request of an HTTP connection to the service.
    private func ask(_ connection: Connection) {
        guard !connection.isBusy else { return }
        connection.isBusy = true
        lws_set_timeout(connection.wsi, NO_PENDING_TIMEOUT, 0)
        let number = connection.number
        let body = connection.body
        connection.body = []
        let query = connection.request.method == "GET" ? connection.request.query : nil
        Task { [service, weak self] in
            let answer: RPCAnswer
            if let query {
                answer = await service.handle(query: query)
            } else {
                answer = await service.handle(body)
            }
            self?.post(.answer(number, answer))
        }
    }

    /// Prepares an answer.
    ///
    /// - Parameter isFinal: true ends the connection afterwards, because its body is not read.
    @discardableResult
    private func respond(
        _ connection: Connection, _ status: Int, _ type: String?, _ body: [UInt8], isFinal: Bool = false
    ) -> Int32 {
        let request = connection.request
        connection.closesAfterwards = isFinal || request.isClosing || status >= 400
        let head = ResponseHeader(
            status: status, type: type, length: body.count, request: request,
            isAllowed: status != 403, closes: connection.closesAfterwards, isPage: page[request.path] != nil)
        connection.append(Array(head.text.utf8))
        if !body.isEmpty, request.method != "HEAD" { connection.append(body) }
        lws_callback_on_writable(connection.wsi)
        return 0
    }

    // MARK: WebSocket

    private func confirmUpgrade(_ wsi: OpaquePointer) -> Int32 {
        let request = HeaderReader(wsi).request(path: nil)
        let fault = rules.fault(host: request.host, origin: request.origin)
        guard fault != nil || request.path != "/jsonrpc" else { return 0 }
        let body = Array("\(fault ?? "WebSockets are served at /jsonrpc.")\n".utf8)
        let head = ResponseHeader(
            status: fault == nil ? 404 : 403, type: "text/plain; charset=utf-8", length: body.count, request: request,
            isAllowed: false, closes: true, isPage: false)
        return writeNow(wsi, head, body)
    }

    /// Writes a short answer inside the event, and ends the connection.
    private func writeNow(_ wsi: OpaquePointer, _ head: ResponseHeader, _ body: [UInt8]) -> Int32 {
        var bytes = [UInt8](repeating: 0, count: fk_lws_pre) + Array(head.text.utf8) + body
        let count = bytes.count - fk_lws_pre
        _ = bytes.withUnsafeMutableBufferPointer {
            lws_write(wsi, $0.baseAddress.map { $0 + fk_lws_pre }, count, LWS_WRITE_HTTP_HEADERS)
        }
        return -1
    }

    private func open(_ wsi: OpaquePointer) {
        end(wsi)
        let connection = connection(wsi)
        let number = connection.number
        let peer = RPCPeer { [weak self] bytes in self?.post(.message(number, bytes)) }
        connection.peer = peer
        // Messages are handled after the service knows the peer.
        connection.isBusy = true
        Task { [service, weak self] in
            await service.connect(peer)
            self?.post(.answer(number, RPCAnswer(status: 200, body: [])))
        }
    }

    private func receive(_ wsi: OpaquePointer, _ input: UnsafeRawBufferPointer?) -> Int32 {
        let connection = connection(wsi)
        guard !connection.mustClose else { return -1 }
        if let input {
            guard connection.message.count + input.count <= WebLimits.body else {
                lws_close_reason(wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, nil, 0)
                return -1
            }
            connection.message += input
        }
        guard lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 else { return 0 }
        connection.pending.append(connection.message)
        connection.message = []
        askNext(connection)
        return 0
    }

    /// Handles the next message of a WebSocket, one at a time and in order, as long as the client reads its answers.
    private func askNext(_ connection: Connection) {
        if !connection.isBusy, !connection.pending.isEmpty, connection.outgoingBytes < WebLimits.slow,
            let peer = connection.peer
        {
            connection.isBusy = true
            let message = connection.pending.removeFirst()
            let number = connection.number
            Task { [service, weak self] in
                let answer = await service.handle(message, from: peer)
                self?.post(.answer(number, answer))
            }
        }
        let mustStop = connection.pending.count >= WebLimits.pending
        if mustStop != connection.isStopped {
            connection.isStopped = mustStop
            lws_rx_flow_control(connection.wsi, mustStop ? 0 : 1)
        }
    }

    // MARK: Writing

    /// Writes the next chunk.
    private func write(_ connection: Connection) -> Int32 {
        if connection.mustClose { return -1 }
        while connection.outgoing.first?.isEmpty == true { connection.finishPart() }
        guard let part = connection.outgoing.first else {
            if connection.peer != nil { askNext(connection) }
            return 0
        }
        let isSocket = connection.peer != nil
        let end = min(part.count, connection.offset + WebLimits.chunk)
        let isFirst = connection.offset == 0
        let isLast = end == part.count
        let isWhole = isLast && connection.outgoing.count == 1
        let mode: lws_write_protocol
        if isSocket {
            mode = lws_write_protocol(
                UInt32(bitPattern: lws_write_ws_flags(Int32(LWS_WRITE_TEXT.rawValue), isFirst ? 1 : 0, isLast ? 1 : 0)))
        } else {
            mode = isWhole ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP
        }
        var bytes = [UInt8](repeating: 0, count: fk_lws_pre)
        bytes += part[connection.offset..<end]
        let count = end - connection.offset
        let written = bytes.withUnsafeMutableBufferPointer {
            lws_write(connection.wsi, $0.baseAddress.map { $0 + fk_lws_pre }, count, mode)
        }
        guard written >= 0 else { return -1 }
        connection.offset = end
        if isLast { connection.finishPart() }
        // An answer that is not read ends with its connection.
        if !isSocket { lws_set_timeout(connection.wsi, PENDING_TIMEOUT_HTTP_CONTENT, 30) }
        if !connection.outgoing.isEmpty || isSocket {
            if !connection.outgoing.isEmpty { lws_callback_on_writable(connection.wsi) }
            if isSocket { askNext(connection) }
            return 0
        }
        if connection.closesAfterwards { return -1 }
        self.end(connection.wsi)
        return lws_http_transaction_completed(connection.wsi) != 0 ? -1 : 0
    }
}
