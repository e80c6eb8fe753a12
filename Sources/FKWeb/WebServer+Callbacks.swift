import FKRPC
import Foundation

/// The events of libwebsockets, on the server's thread.
extension WebServer {
    /// - Returns: 0 to go on, -1 to end the connection.
    func handle(
        _ wsi: OpaquePointer, _ reason: WebSocketsLibrary.Reason, _ input: UnsafeRawBufferPointer?
    ) -> Int32 {
        switch reason {
        case .newConnection: return hasRoom ? 0 : -1
        case .adopted: admit(connection(wsi))
        case .received: return receive(connection(wsi), input)
        case .writable: return write(connection(wsi))
        case .timer: return timeOut(connection(wsi))
        case .closed, .destroyed: end(wsi)
        case .woken: performEvents()
        default: break
        }
        return 0
    }

    /// Begins to wait for the first request, and makes room for the connection.
    private func admit(_ connection: Connection) {
        limitArrival(connection)
        if let excess = excess(for: connection) { cut(excess) }
    }

    private func performEvents() {
        for event in drainEvents() {
            switch event {
            case .answer(let number, let answer):
                guard let connection = connection(numbered: number) else { continue }
                connection.isBusy = false
                connection.isProven = connection.isProven || answer.isAdmitted
                if connection.peer == nil {
                    respond(connection, answer.status, "application/json-rpc", answer.body)
                } else {
                    send(connection, .text, answer.body)
                    sendHeld(connection)
                }
                advance(connection)
            case .ready(let number):
                guard let connection = connection(numbered: number) else { continue }
                connection.isBusy = false
                sendHeld(connection)
                advance(connection)
            case .message(let number, let bytes):
                guard let connection = connection(numbered: number), connection.peer != nil else { continue }
                // A client learns the gid of a new download before its events: the answer comes first, as with aria2.
                if connection.isBusy {
                    connection.held.append(bytes)
                    connection.heldBytes += bytes.count
                    if connection.heldBytes > WebLimits.stuck { cut(connection) }
                    continue
                }
                // A client that does not read must not fill the memory.
                if connection.output.count > WebLimits.stuck { cut(connection) } else { send(connection, .text, bytes) }
            }
        }
    }

    // MARK: Time

    /// Ends the connection after that time, unless another wait begins before. A WebSocket is asked for a sign of life first.
    private func limitTime(_ connection: Connection, _ seconds: Int) {
        library.setTimer(connection.wsi, Int64(seconds) * 1_000_000)
    }

    /// Ends the connection if the request is not whole in time, however it arrives.
    private func limitArrival(_ connection: Connection) {
        let now = Self.now
        let end = connection.arrivalEnd ?? now + Int64(WebLimits.request) * 1_000_000_000
        connection.arrivalEnd = end
        let pause = Int64(connection.peer == nil ? WebLimits.arrival : WebLimits.silence) * 1_000_000
        library.setTimer(connection.wsi, max(1, min(pause, (end - now) / 1_000)))
    }

    private func timeOut(_ connection: Connection) -> Int32 {
        guard connection.peer != nil, connection.output.count == 0 else { return -1 }
        if !connection.isBusy, let end = connection.arrivalEnd, end <= Self.now { return -1 }
        if connection.isBusy {
            limitTime(connection, WebLimits.silence)
            return 0
        }
        guard !connection.isAsked else { return -1 }
        connection.isAsked = true
        send(connection, .ping, [])
        return 0
    }

    /// Ends the connection outside its own events.
    private func cut(_ connection: Connection) {
        connection.isCut = true
        library.setTimeout(
            connection.wsi, WebSocketsLibrary.userTimeout, WebSocketsLibrary.endsAtOnce)
    }

    // MARK: Reading

    private func receive(_ connection: Connection, _ bytes: UnsafeRawBufferPointer?) -> Int32 {
        guard let bytes else { return 0 }
        connection.isAsked = false
        switch connection.input {
        case .http(var reader):
            connection.input = .ignored
            reader.append(bytes)
            connection.input = .http(reader)
        case .frames(var reader, let peer):
            connection.input = .ignored
            reader.append(bytes)
            connection.input = .frames(reader, peer)
        case .ignored: return 0
        }
        if !connection.isBusy, connection.output.count == 0 { limitArrival(connection) }
        advance(connection)
        return 0
    }

    /// Handles the received requests, one at a time and in order, as long as the client reads its answers.
    private func advance(_ connection: Connection) {
        var goesOn = true
        while goesOn, !connection.isBusy, !connection.isSlow {
            switch connection.input {
            case .http(var reader):
                connection.input = .ignored
                let step = reader.next()
                connection.input = .http(reader)
                goesOn = handle(step, connection)
            case .frames(var reader, let peer):
                connection.input = .ignored
                let step = reader.next()
                connection.input = .frames(reader, peer)
                goesOn = handle(step, connection, peer)
            case .ignored: goesOn = false
            }
        }
        if connection.isBetween { connection.arrivalEnd = nil }
        let isHeld = connection.isBusy || connection.isSlow
        let mustStop = isHeld && connection.waitingBytes > WebLimits.waiting
        if mustStop != connection.isStopped {
            connection.isStopped = mustStop
            _ = library.flowControl(connection.wsi, mustStop ? 0 : 1)
        }
    }

    // MARK: HTTP

    /// - Returns: true if the next step may follow.
    private func handle(_ step: HTTPReader.Step, _ connection: Connection) -> Bool {
        switch step {
        case .wait: return false
        case .fault(let status):
            connection.request = WebRequest()
            let error = status == 413 ? RPCError.tooLarge(limit: WebLimits.body) : nil
            respond(
                connection, status, error.map { _ in "application/json-rpc" }, error?.answer ?? [], isFinal: true)
        case .head(let request):
            connection.request = request
            begin(connection)
        case .body(let body):
            connection.arrivalEnd = nil
            connection.hasRequest = true
            serve(connection, body)
        }
        return true
    }

    /// Refuses a request by its head, before its body arrives.
    private func begin(_ connection: Connection) {
        let request = connection.request
        let fault = rules.fault(host: request["host"], origin: request["origin"], site: request["sec-fetch-site"])
        if let fault { return refuse(connection, 403, fault) }
        switch WebSocketUpgrade(request) {
        case .none: break
        case .accepted(let accept): return open(connection, accept)
        case .refused(let status, let reason): return refuse(connection, status, reason)
        }
        if request.method == "POST", request.path == "/jsonrpc", request.contentLength == nil {
            return respond(connection, 411, nil, [], isFinal: true)
        }
        if request.contains("100-continue", in: "expect"), request.contentLength ?? 0 > 0 {
            connection.output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            _ = library.askToWrite(connection.wsi)
        }
    }

    private func serve(_ connection: Connection, _ body: [UInt8]) {
        let request = connection.request
        switch (request.method, request.path) {
        case ("OPTIONS", _): respond(connection, 200, nil, [])
        case ("POST", "/jsonrpc"), ("GET", "/jsonrpc"):
            if request.method == "GET", request.query.isEmpty {
                return respond(connection, 400, nil, [], isFinal: true)
            }
            connection.isBusy = true
            limitTime(connection, 3_600)
            let number = connection.number
            let caller = RPCCaller(mayChange: AccessRules.mayChange(request))
            Task { [service, weak self] in
                let answer =
                    request.method == "GET"
                    ? await service.handle(query: request.query, from: caller)
                    : await service.handle(body, from: caller)
                self?.post(.answer(number, answer))
            }
        case ("GET", let path), ("HEAD", let path):
            guard let file = page[path] else { return respond(connection, 404, nil, [], isFinal: true) }
            respond(connection, 200, file.type, file.bytes)
        default: respond(connection, 404, nil, [], isFinal: true)
        }
    }

    private func refuse(_ connection: Connection, _ status: Int, _ reason: String) {
        respond(connection, status, "text/plain; charset=utf-8", Array("\(reason)\n".utf8), isFinal: true)
    }

    /// - Parameter isFinal: true ends the connection afterwards, for example because the body of the request is not read.
    private func respond(
        _ connection: Connection, _ status: Int, _ type: String?, _ body: [UInt8], isFinal: Bool = false
    ) {
        let request = connection.request
        let closes = isFinal || request.isClosing || status >= 400
        let head = ResponseHeader(
            status: status, type: type, length: body.count, request: request,
            isAllowed: status != 403, closes: closes, isPage: page[request.path] != nil)
        connection.output.append(Array(head.text.utf8))
        if request.method != "HEAD" { connection.output.append(body) }
        if closes { finish(connection) }
        limitTime(connection, WebLimits.reading)
        _ = library.askToWrite(connection.wsi)
    }

    /// Reads nothing more. The connection ends when everything is written.
    private func finish(_ connection: Connection) {
        connection.closesAfterwards = true
        connection.input = .ignored
    }

    // MARK: WebSocket

    private func open(_ connection: Connection, _ accept: String) {
        guard case .http(var reader) = connection.input else { return }
        let number = connection.number
        let peer = RPCPeer { [weak self] bytes in self?.post(.message(number, bytes)) }
        connection.input = .frames(FrameReader(maxMessage: WebLimits.body, reader.drainRemaining()), peer)
        connection.arrivalEnd = nil
        connection.hasRequest = true
        connection.output.append(
            Array(
                ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: \(accept)\r\n\r\n").utf8))
        _ = library.askToWrite(connection.wsi)
        // Messages are handled after the service knows the peer.
        connection.isBusy = true
        Task { [service, weak self] in
            await service.connect(peer)
            self?.post(.ready(number))
        }
    }

    /// - Returns: true if the next step may follow.
    private func handle(_ step: FrameReader.Step, _ connection: Connection, _ peer: RPCPeer) -> Bool {
        switch step {
        case .wait: return false
        case .pong: break
        case .ping(let bytes): send(connection, .pong, bytes)
        case .close(let code): close(connection, code)
        case .fault(let code): close(connection, code)
        case .message(let message):
            connection.isBusy = true
            connection.arrivalEnd = nil
            let number = connection.number
            Task { [service, weak self] in
                let answer = await service.handle(message, from: RPCCaller(peer: peer))
                self?.post(.answer(number, answer))
            }
        }
        return true
    }

    private func send(_ connection: Connection, _ kind: FrameReader.Kind, _ bytes: [UInt8]) {
        if connection.output.count == 0 { limitTime(connection, WebLimits.reading) }
        connection.output.append(FrameReader.head(kind, count: bytes.count))
        connection.output.append(bytes)
        _ = library.askToWrite(connection.wsi)
    }

    /// Sends the notifications that have waited for an answer.
    private func sendHeld(_ connection: Connection) {
        let messages = connection.held
        (connection.held, connection.heldBytes) = ([], 0)
        for message in messages { send(connection, .text, message) }
    }

    /// Sends the last frame of a WebSocket.
    private func close(_ connection: Connection, _ code: UInt16?) {
        if let peer = connection.peer { Task { [service] in await service.disconnect(peer) } }
        send(connection, .close, code.map { [UInt8($0 >> 8), UInt8($0 & 0xff)] } ?? [])
        finish(connection)
    }

    // MARK: Writing

    /// Writes the next chunk.
    private func write(_ connection: Connection) -> Int32 {
        if library.hasPartialWrite(connection.wsi) != 0 { return 0 }
        var bytes = [UInt8](repeating: 0, count: WebSocketsLibrary.roomBefore)
        connection.output.drain(into: &bytes)
        let count = bytes.count - WebSocketsLibrary.roomBefore
        if count > 0 {
            let written = bytes.withUnsafeMutableBufferPointer {
                library.write(
                    connection.wsi, $0.baseAddress.map { $0 + WebSocketsLibrary.roomBefore }, count,
                    WebSocketsLibrary.plainWrite)
            }
            guard written >= 0 else { return -1 }
            limitTime(connection, WebLimits.reading)
            // The end of this write is an event of its own.
            _ = library.askToWrite(connection.wsi)
            return 0
        }
        if connection.closesAfterwards {
            // Unread bytes reset the connection when it closes, so the client has to receive the end first.
            shutdown(library.socket(connection.wsi), Int32(SHUT_WR))
            limitTime(connection, WebLimits.farewell)
        } else if !connection.isBusy {
            if connection.arrivalEnd == nil {
                limitTime(connection, connection.peer == nil ? WebLimits.idle : WebLimits.silence)
            } else {
                limitArrival(connection)
            }
        }
        advance(connection)
        return 0
    }
}
