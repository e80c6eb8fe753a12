import FKMiddleware
import Foundation

/// A small HTTP/1.1 server on 127.0.0.1, only for `fk demo`. It serves computed files with ranges, strong ETags and
/// keep-alive, uses one thread per connection, and counts the bytes it sends.
final class DemoServer: Sendable {
    private struct State {
        var connections: Set<Int32> = []
        var sent: [String: Int64] = [:]
        var requests = 0
        var bytesPerSecond: Int64 = 0
        var isStopped = false
    }

    let files: [DemoFile]
    /// The port, chosen by the system.
    let port: UInt16
    private let listener: Int32
    private let state = Locked(State())
    private let byName: [String: DemoFile]

    /// Starts listening on a free port.
    ///
    /// - Parameter bytesPerSecond: the rate of each connection; 0, the default, sets no limit.
    /// - Throws: `DownloadError.Code.connect` if the system refuses a socket.
    init(files: [DemoFile], bytesPerSecond: Int64 = 0) throws {
        self.files = files
        byName = Dictionary(files.map { ($0.name, $0) }) { first, _ in first }
        (listener, port) = try Self.listen()
        state.withLock { $0.bytesPerSecond = bytesPerSecond }
        startThread("fk.demo.accept") { [self] in acceptConnections() }
    }

    func url(of file: DemoFile) -> String {
        let path = file.name.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file.name
        return "http://127.0.0.1:\(port)/\(path)"
    }

    /// The body bytes sent for this file so far, over all requests.
    func bytesSent(_ file: DemoFile) -> Int64 { state.withLock { $0.sent[file.name] ?? 0 } }

    /// The body bytes sent for all files so far.
    var bytesSent: Int64 { state.withLock { $0.sent.values.reduce(0, +) } }

    var requests: Int { state.withLock { $0.requests } }

    /// The rate of each connection from now on, in bytes per second; 0 sets no limit.
    var bytesPerSecond: Int64 {
        get { state.withLock { $0.bytesPerSecond } }
        set { state.withLock { $0.bytesPerSecond = newValue } }
    }

    /// Closes the listening socket and every connection. It may be called again.
    func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            _ = shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
            for connection in state.connections { _ = shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    private static func listen() throws -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Glue.streamSocket, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                descriptor >= 0 && bind(descriptor, pointer, length) == 0 && Glue.listen(descriptor, 128) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else {
            let reason = String(cString: strerror(errno))
            if descriptor >= 0 { close(descriptor) }
            throw DownloadError(.connect, "The demo's server cannot listen on 127.0.0.1.", underlying: reason)
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    private func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.name = name
        thread.stackSize = 512 << 10
        thread.start()
    }

    private func acceptConnections() {
        while true {
            let connection = accept(listener, nil, nil)
            if connection < 0 {
                if state.withLock({ $0.isStopped }) { return }
                // Neither a lack of descriptors nor a client that is gone ends the server.
                if errno != EINTR, errno != ECONNABORTED { usleep(10_000) }
                continue
            }
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            let isWelcome = state.withLock { state in
                if !state.isStopped { state.connections.insert(connection) }
                return !state.isStopped
            }
            guard isWelcome else {
                close(connection)
                return
            }
            startThread("fk.demo.connection") { [self] in
                serve(connection)
                state.withLock { state in
                    state.connections.remove(connection)
                    close(connection)
                }
            }
        }
    }

    private func serve(_ connection: Int32) {
        Glue.prepareSocket(connection)
        var pending: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { chunk.deallocate() }
        while let head = readHead(connection, &pending, chunk) {
            guard let request = DemoRequest(head), request.headers["content-length"] == nil,
                request.headers["transfer-encoding"] == nil
            else {
                _ = send(connection, status: 400, fields: ["Content-Length: 0"], close: true)
                return
            }
            guard answer(request, connection, chunk), request.keepsAlive else { return }
        }
    }

    /// The next request's head; later bytes stay in `pending`. nil at the end of the stream or above 16 KiB.
    private func readHead(_ connection: Int32, _ pending: inout [UInt8], _ chunk: UnsafeMutableRawBufferPointer)
        -> String?
    {
        let end: [UInt8] = [13, 10, 13, 10]
        while true {
            if let found = pending.indices.first(where: { pending[$0...].starts(with: end) }) {
                let head = String(decoding: pending[..<(found + 4)], as: UTF8.self)
                pending.removeFirst(found + 4)
                return head
            }
            guard pending.count < 16 << 10 else { return nil }
            let count = Glue.read(connection, chunk)
            guard count > 0 else { return nil }
            pending.append(contentsOf: chunk[..<count])
        }
    }

    /// - Returns: false if the connection must be closed.
    private func answer(_ request: DemoRequest, _ connection: Int32, _ chunk: UnsafeMutableRawBufferPointer) -> Bool {
        state.withLock { $0.requests += 1 }
        let close = !request.keepsAlive
        guard request.method == "GET" || request.method == "HEAD" else {
            return send(connection, status: 405, fields: ["Allow: GET, HEAD", "Content-Length: 0"], close: close)
        }
        guard let file = byName[request.path] else {
            return send(connection, status: 404, fields: ["Content-Length: 0"], close: close)
        }
        let answer = DemoAnswer(request, file)
        var fields = ["Accept-Ranges: bytes", "ETag: \(file.etag)", "Content-Type: application/octet-stream"]
        fields.append("Content-Length: \(answer.range.count)")
        if answer.status == 416 { fields.append("Content-Range: bytes */\(file.size)") }
        if answer.status == 206 {
            fields.append("Content-Range: bytes \(answer.range.lowerBound)-\(answer.range.upperBound - 1)/\(file.size)")
        }
        guard send(connection, status: answer.status, fields: fields, close: close) else { return false }
        return request.method == "HEAD" || sendBody(file, answer.range, connection, chunk)
    }

    private func send(_ connection: Int32, status: Int, fields: [String], close: Bool) -> Bool {
        let reasons = [
            200: "OK", 206: "Partial Content", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
            416: "Range Not Satisfiable",
        ]
        var lines = ["HTTP/1.1 \(status) \(reasons[status] ?? "")"] + fields
        if close { lines.append("Connection: close") }
        var text = lines.joined(separator: "\r\n") + "\r\n\r\n"
        return text.withUTF8 { Glue.sendAll(connection, UnsafeRawBufferPointer($0)) }
    }

    private func sendBody(
        _ file: DemoFile, _ range: Range<Int64>, _ connection: Int32, _ chunk: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let (rate, isStopped) = state.withLock { ($0.bytesPerSecond, $0.isStopped) }
            if isStopped { return false }
            // With a limit, pieces of at most 20 ms keep the flow even.
            let limit = rate > 0 ? max(512, min(Int64(chunk.count), rate / 50)) : Int64(chunk.count)
            let piece = UnsafeMutableRawBufferPointer(rebasing: chunk[..<Int(min(limit, range.upperBound - offset))])
            file.fill(piece, from: offset)
            guard Glue.sendAll(connection, UnsafeRawBufferPointer(piece)) else { return false }
            offset += Int64(piece.count)
            state.withLock { $0.sent[file.name, default: 0] += Int64(piece.count) }
            if rate > 0 { usleep(UInt32(min(1_000_000, Int64(piece.count) * 1_000_000 / rate))) }
        }
        return true
    }
}
