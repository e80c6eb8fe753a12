import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An HTTP/1.1 server that lies, cuts, stalls and resets at exact byte offsets, and keeps a record of every request.
/// It listens on 127.0.0.1 on a free port, and stops with the last reference to it.
///
/// ```swift
/// let server = try FaultServer()
/// server.route("/a") { request in .ranged(body, for: request, etag: "\"x\"") }
/// server.route("/b") { request in request.index == 0 ? .ok(body).cut(at: 10, .reset) : .ok(body) }
/// ```
///
/// A connection is kept open after a response unless a step or the framing closes it. HEAD requests get the head only.
/// A path without a route gets 404.
package final class FaultServer: Sendable {
    package typealias Route = @Sendable (FaultRequest) -> FaultResponse

    package let port: UInt16
    /// `http://127.0.0.1:<port>`.
    package let base: String
    private let core: Core

    package init() throws {
        let (listener, port) = try Socket.listen()
        self.port = port
        base = "http://127.0.0.1:\(port)"
        let core = Core()
        self.core = core
        Self.thread {
            core.acceptConnections(listener)
            close(listener)
        }
    }

    deinit {
        core.stop.open()
    }

    /// The absolute URL of a path that begins with a slash.
    package func url(_ path: String) -> String { base + path }

    /// Answers requests for that path, whatever their query is.
    package func route(_ path: String, _ respond: @escaping Route) {
        core.routes.withLock { $0[path] = respond }
    }

    /// Answers requests for paths that have no route; also the absolute URLs that a proxy is asked for, and CONNECT.
    package func routeOthers(_ respond: @escaping Route) {
        core.routes.withLock { $0["*"] = respond }
    }

    /// Every request so far, in the order in which their heads were complete.
    package var requests: [FaultRequest] { core.record.value.requests }

    package func requests(_ path: String) -> [FaultRequest] { requests.filter { $0.path == path } }

    /// How many connections were accepted.
    package var connections: Int { core.record.value.connections }

    /// Returns the requests once there are at least so many.
    @discardableResult
    package func waitForRequests(_ count: Int) async -> [FaultRequest] {
        await core.record.wait { $0.requests.count >= count }.requests
    }

    /// Returns the requests once the condition holds for them, for example that one has ended or was blocked.
    @discardableResult
    package func wait(until isMet: @escaping @Sendable ([FaultRequest]) -> Bool) async -> [FaultRequest] {
        await core.record.wait { isMet($0.requests) }.requests
    }

    /// Ends all connections and takes no more.
    package func stop() { core.stop.open() }

    static func thread(_ work: @escaping @Sendable () -> Void) {
        let thread = Thread(block: work)
        thread.stackSize = 512 << 10
        thread.start()
    }
}

/// What the threads of a server share; they hold it and not the server, so that the server can go away.
private final class Core: Sendable {
    struct Record: Sendable {
        var requests: [FaultRequest] = []
        var connections = 0
    }

    let routes = Locked<[String: FaultServer.Route]>([:])
    let record = Observed(Record())
    let stop = Gate()

    func acceptConnections(_ listener: Int32) {
        while let descriptor = Socket.accept(listener, stop: stop.descriptor) {
            let number = record.update { record in
                record.connections += 1
                return record.connections - 1
            }
            FaultServer.thread { [self] in
                Socket.setNoDelay(descriptor)
                serve(descriptor, number)
                close(descriptor)
            }
        }
    }

    private func serve(_ descriptor: Int32, _ connection: Int) {
        var buffer: [UInt8] = []
        while let request = readRequest(descriptor, connection, &buffer) {
            let response = routes.withLock { $0[request.path] ?? $0["*"] }?(request) ?? .status(404, "Not Found")
            var isOpen = true
            for step in response.steps(withBody: request.method != "HEAD") {
                isOpen = perform(step, descriptor, request.index)
                if !isOpen { break }
            }
            record.update { record in
                if record.requests[request.index].end == nil { record.requests[request.index].end = .completed }
            }
            if !isOpen { return }
        }
    }

    private func readRequest(_ descriptor: Int32, _ connection: Int, _ buffer: inout [UInt8]) -> FaultRequest? {
        let headEnd = Array("\r\n\r\n".utf8)
        while true {
            if buffer.first == 0x16 {
                // A TLS handshake; like other plain servers, answer in plain text.
                let answer = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
                _ = answer.withUnsafeBytes { Socket.send(descriptor, $0) }
                return nil
            }
            if let end = buffer.firstRange(of: headEnd) {
                let head = Array(buffer[..<end.lowerBound])
                buffer.removeSubrange(..<end.upperBound)
                guard var request = FaultRequest(head: head, index: 0, connection: connection) else { return nil }
                let length = request["Content-Length"].flatMap { Int($0) } ?? 0
                while buffer.count < length {
                    guard fill(&buffer, descriptor) else { return nil }
                }
                request.body = Array(buffer.prefix(length))
                buffer.removeFirst(length)
                return record.update { record in
                    request.index = record.requests.count
                    record.requests.append(request)
                    return request
                }
            }
            guard fill(&buffer, descriptor) else { return nil }
        }
    }

    private func fill(_ buffer: inout [UInt8], _ descriptor: Int32) -> Bool {
        guard Socket.wait(for: descriptor, POLLIN, stop: [stop.descriptor]) == .ready else { return false }
        let bytes = Socket.read(descriptor)
        buffer += bytes
        return !bytes.isEmpty
    }

    /// - Returns: false when the connection is to be closed.
    private func perform(_ step: FaultResponse.Step, _ descriptor: Int32, _ index: Int) -> Bool {
        switch step {
        case .send(let bytes): return send(bytes, descriptor, index)
        case .text(let text): return send(Array(text.utf8), descriptor, index)
        case .sendForever(let bytes):
            while send(bytes, descriptor, index) {}
            return false
        case .drip(let bytes, let times, let interval):
            return (0..<times).allSatisfy { _ in
                send(bytes, descriptor, index) && pause(interval, descriptor, index)
            }
        case .stall(let gate): return stall(gate, descriptor, index)
        case .reset:
            Socket.setReset(descriptor)
            return false
        case .close: return false
        }
    }

    private func stall(_ gate: Gate, _ descriptor: Int32, _ index: Int) -> Bool {
        while Socket.wait(for: descriptor, POLLIN, stop: [stop.descriptor, gate.descriptor]) == .ready {
            if isLeft(descriptor, index) { return false }
        }
        return true
    }

    private func pause(_ seconds: Double, _ descriptor: Int32, _ index: Int) -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
            switch Socket.wait(for: descriptor, POLLIN, stop: [stop.descriptor], until: end) {
            case .ready: if isLeft(descriptor, index) { return false }
            case .stopped: return false
            case .timedOut: return true
            }
        }
    }

    /// Whether the client has closed the connection.
    private func isLeft(_ descriptor: Int32, _ index: Int) -> Bool {
        guard Socket.isClosed(descriptor) else { return false }
        record.update { $0.requests[index].end = .clientClosed }
        return true
    }

    private func send(_ bytes: [UInt8], _ descriptor: Int32, _ index: Int) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                switch Socket.send(descriptor, UnsafeRawBufferPointer(rebasing: rest)) {
                case .some(let count):
                    rest = rest.dropFirst(count)
                    record.update { $0.requests[index].bytesSent += count }
                case .full:
                    record.update { $0.requests[index].timesBlocked += 1 }
                    guard Socket.wait(for: descriptor, POLLOUT, stop: [stop.descriptor]) == .ready else { return false }
                case .failed:
                    record.update { $0.requests[index].end = .clientClosed }
                    return false
                }
            }
            return true
        }
    }
}
