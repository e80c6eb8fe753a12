/// What a `FaultServer` answers: either steps given byte by byte, or an ordinary response with chosen faults.
///
/// ```swift
/// .ok(body, headers: ["ETag": "\"x\""]).cut(at: 1_000, .reset)
/// .ranged(body, for: request, etag: "\"x\"").removing("Content-Range")
/// .raw([.text("HTTP/1.1 200 OK\r\n\r\n"), .stall(gate), .close])
/// ```
package struct FaultResponse: Sendable {
    package enum Step: Sendable {
        case send([UInt8])
        /// Sends the text's UTF-8 bytes.
        case text(String)
        /// Sends the same bytes again and again until the client closes.
        case sendForever([UInt8])
        /// A slow server: sends the same bytes that many times, with a pause of that many seconds after each. Ends when
        /// the client closes first.
        case drip([UInt8], times: Int, every: Double)
        /// Goes on once the gate is open; ends when the client closes first.
        case stall(Gate)
        /// Closes with RST: what the client has not read yet is lost to it.
        case reset
        /// Closes with FIN.
        case close
    }

    package enum End: Sendable { case close, reset }

    /// How the client is told where the body ends.
    package enum Framing: Sendable {
        case contentLength
        case chunked(size: Int)
        /// Closing the connection is the only sign.
        case untilClose
    }

    package var status: Int
    package var reason: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    package var framing: Framing
    package var sendsLastChunk = true
    private var rawSteps: [Step]?
    private var cut: (offset: Int, end: End)?
    private var stall: (offset: Int, gate: Gate)?

    private init(status: Int, reason: String, headers: [(name: String, value: String)], body: [UInt8], framing: Framing)
    {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
        self.framing = framing
    }

    // MARK: Making

    package static func raw(_ steps: [Step]) -> FaultResponse {
        var response = status(200)
        response.rawSteps = steps
        return response
    }

    package static func raw(_ text: String) -> FaultResponse {
        raw([.text(text), .close])
    }

    package static func ok(_ body: [UInt8], headers: KeyValuePairs<String, String> = [:]) -> FaultResponse {
        status(200, body: body, headers: headers)
    }

    package static func status(
        _ status: Int, _ reason: String = "Whatever", body: [UInt8] = [], headers: KeyValuePairs<String, String> = [:]
    ) -> FaultResponse {
        FaultResponse(
            status: status, reason: reason, headers: headers.map { ($0.key, $0.value) }, body: body,
            framing: .contentLength)
    }

    package static func chunked(_ body: [UInt8], size: Int = 1_000) -> FaultResponse {
        var response = ok(body)
        response.framing = .chunked(size: size)
        return response
    }

    package static func untilClose(_ body: [UInt8]) -> FaultResponse {
        var response = ok(body)
        response.framing = .untilClose
        return response
    }

    package static func redirect(to location: String, status: Int = 302, body: [UInt8] = []) -> FaultResponse {
        self.status(status, body: body, headers: ["Location": location])
    }

    package static func retryAfter(_ value: String, status: Int = 503) -> FaultResponse {
        self.status(status, headers: ["Retry-After": value])
    }

    /// What a correct server answers for a file: 206 with Content-Range, 416, or 200 when there is no Range or when
    /// If-Range names another validator (RFC 9110 sections 13.1.5 and 14).
    package static func ranged(
        _ body: [UInt8], for request: FaultRequest, etag: String? = nil, lastModified: String? = nil
    ) -> FaultResponse {
        var validators: [(name: String, value: String)] = [("Accept-Ranges", "bytes")]
        if let etag { validators.append(("ETag", etag)) }
        if let lastModified { validators.append(("Last-Modified", lastModified)) }
        var response = ok(body)
        let condition = request["If-Range"]
        if request["Range"] != nil, condition == nil || condition == etag || condition == lastModified {
            if let range = request.range(of: body.count) {
                response = status(206, "Partial Content", body: Array(body[range]))
                response.headers.append(
                    ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(body.count)"))
            } else {
                response = status(416, "Range Not Satisfiable")
                response.headers.append(("Content-Range", "bytes */\(body.count)"))
            }
        }
        response.headers += validators
        return response
    }

    // MARK: Changing

    /// Replaces the field, or adds it. A Content-Length set here replaces the true one.
    package func setting(_ name: String, _ value: String) -> FaultResponse {
        var response = removing(name)
        response.headers.append((name, value))
        return response
    }

    package func adding(_ name: String, _ value: String) -> FaultResponse {
        var response = self
        response.headers.append((name, value))
        return response
    }

    package func removing(_ name: String) -> FaultResponse {
        var response = self
        response.headers.removeAll { $0.name.lowercased() == name.lowercased() }
        return response
    }

    package func withStatus(_ status: Int) -> FaultResponse {
        var response = self
        response.status = status
        return response
    }

    package func withBody(_ body: [UInt8]) -> FaultResponse {
        var response = self
        response.body = body
        return response
    }

    /// Ends the connection after so many bytes of the body (before transfer coding).
    package func cut(at offset: Int, _ end: End = .close) -> FaultResponse {
        var response = self
        response.cut = (offset, end)
        return response
    }

    /// Waits for the gate after so many bytes of the body.
    package func stalling(at offset: Int, until gate: Gate) -> FaultResponse {
        var response = self
        response.stall = (offset, gate)
        return response
    }

    /// Sends all chunks but the last, empty one, then closes.
    package func withoutLastChunk() -> FaultResponse {
        var response = self
        response.sendsLastChunk = false
        return response
    }

    // MARK: Rendering

    /// The bytes of the head, the empty line included.
    package var head: [UInt8] {
        var fields = headers
        let names = Set(headers.map { $0.name.lowercased() })
        switch framing {
        case .contentLength:
            if status != 204, status != 304, !names.contains("content-length") {
                fields.append(("Content-Length", String(body.count)))
            }
        case .chunked: fields.append(("Transfer-Encoding", "chunked"))
        case .untilClose: fields.append(("Connection", "close"))
        }
        let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("HTTP/1.1 \(status) \(reason)\r\n\(lines)\r\n".utf8)
    }

    func steps(withBody: Bool) -> [Step] {
        if let rawSteps { return rawSteps }
        var steps: [Step] = [.send(head)]
        guard withBody, status != 204, status != 304 else { return steps }
        var position = 0
        let stops: [(offset: Int, steps: [Step])] = [
            stall.map { ($0.offset, [.stall($0.gate)]) },
            cut.map { ($0.offset, [$0.end == .close ? .close : .reset]) },
        ].compactMap { $0 }.sorted { $0.offset < $1.offset }
        for stop in stops {
            let offset = min(stop.offset, body.count)
            steps += frame(body[position..<offset])
            steps += stop.steps
            position = offset
        }
        steps += frame(body[position...])
        if case .chunked = framing { steps.append(sendsLastChunk ? .text("0\r\n\r\n") : .close) }
        if case .untilClose = framing { steps.append(.close) }
        return steps
    }

    private func frame(_ piece: ArraySlice<UInt8>) -> [Step] {
        guard case .chunked(let size) = framing else { return piece.isEmpty ? [] : [.send(Array(piece))] }
        return stride(from: piece.startIndex, to: piece.endIndex, by: size).map { start in
            let chunk = piece[start..<min(start + size, piece.endIndex)]
            return .send(Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Array("\r\n".utf8))
        }
    }
}
