import FKCore
import FKMiddleware
import FKRPC
import Foundation

/// HTTP/1.1 and WebSockets over the sockets and the TLS of libwebsockets, on a thread of its own. It hands bodies and messages
/// to the service and writes the answers. libwebsockets' own HTTP is not used: up to 4.1 it loops forever if a POST arrives
/// together with the request before, and it takes frames without a mask.
///
/// ```text
/// libwebsockets --bytes--> Connection: HTTPReader, FrameReader --Task--> RPCService
///       ^                                                                   |
///       +-------------------- events, lws_cancel_service -------------------+
/// ```
final class WebServer: @unchecked Sendable {
    /// What other threads ask of the server's thread.
    enum Event {
        /// The answer to the request of a connection.
        case answer(UInt64, RPCAnswer)
        /// The service knows the WebSocket.
        case ready(UInt64)
        /// A notification for a WebSocket.
        case message(UInt64, [UInt8])
    }

    let service: RPCService
    let library: WebSocketsLibrary
    let page: [String: PageFile]
    var rules: AccessRules
    private(set) var port: Int32 = 0
    private let events = Locked<[Event]>([])
    private let isStopping = Locked(false)
    /// Protects nothing: it is set before the thread starts, and other threads only pass it to `lws_cancel_service`.
    private var context: OpaquePointer?
    private var thread: Thread?
    private let ended = DispatchSemaphore(value: 0)

    // Of the server's thread.
    private var connections: [OpaquePointer: Connection] = [:]
    private var byNumber: [UInt64: Connection] = [:]
    private var nextNumber: UInt64 = 1
    private let maxConnections = max(2, min(WebLimits.connections, ProcessInfo.descriptorLimit / 4))

    /// Opens the listening socket.
    ///
    /// - Throws: `ListenOptions.Fault` if the address or the certificate cannot be used.
    init(
        _ options: ListenOptions, _ service: RPCService, _ library: WebSocketsLibrary, page: [String: PageFile]
    ) throws {
        self.service = service
        self.library = library
        self.page = page
        rules = AccessRules(
            address: options.address, port: options.port, isSecure: options.certificate != nil,
            origins: options.origins)
        library.setLogLevel(0, nil)
        let info = WebSocketsLibrary.ContextInfo(library)
        info.port = Int32(options.port)
        info.address = Self.lasting(options.address)
        info.protocols = Self.protocols
        info.user = Unmanaged.passUnretained(self).toOpaque()
        info.group = -1
        info.userID = -1
        info.options = [.noCanonicalName, .mustBind, .onlyRaw]
        info.protocolNames = Self.lasting("http/1.1")
        info.seconds = 20
        if let certificate = options.certificate, let key = options.key {
            info.options.insert(.tls)
            info.certificate = Self.lasting(certificate)
            info.key = Self.lasting(key)
        }
        guard let context = library.createContext(info.pointer) else { throw Self.fault(options) }
        self.context = context
        port = library.listenPort(library.virtualHost(context, "default"))
        guard port > 0 else {
            library.destroyContext(context)
            throw Self.fault(options)
        }
        rules.port = Int(port)
    }

    func start() {
        let thread = Thread { [self] in
            while !isStopping.withLock({ $0 }), library.service(context, 0) >= 0 {}
            library.destroyContext(context)
            ended.signal()
        }
        thread.name = "fk.web"
        thread.stackSize = 1 << 20
        self.thread = thread
        thread.start()
    }

    /// Closes all connections. It waits for the end of the thread, at most a second.
    func stop() {
        isStopping.withLock { $0 = true }
        library.wake(context)
        _ = ended.wait(timeout: .now() + 1)
    }

    /// Passes an event to the server's thread, from any thread.
    func post(_ event: Event) {
        let isFirst = events.withLock { events in
            events.append(event)
            return events.count == 1
        }
        if isFirst, !isStopping.withLock({ $0 }) { library.wake(context) }
    }

    func drainEvents() -> [Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }

    // MARK: Connections

    /// False if connections arrive faster than those that make room for them can close. Clients take at most a quarter of the
    /// process's descriptors: without a free one, downloads stop, and libdispatch ends the process when it cannot open
    /// `/proc/TID/stat` of its threads.
    var hasRoom: Bool { connections.count < maxConnections + WebLimits.closing }

    /// The connection of libwebsockets' object.
    func connection(_ wsi: OpaquePointer) -> Connection {
        if let known = connections[wsi] { return known }
        let made = Connection(nextNumber, wsi, client: PeerAddress.text(library.socket(wsi)), start: Self.now)
        nextNumber += 1
        connections[wsi] = made
        byNumber[made.number] = made
        return made
    }

    /// The connection that has to end for a new one; nil if there is room.
    func excess(for new: Connection) -> Connection? {
        let others = connections.values.filter { $0 !== new && !$0.isCut }
        guard others.count >= maxConnections / 2 else { return nil }
        let now = Self.now
        func place(_ one: Connection) -> ConnectionRoom.Place {
            .init(
                number: one.number, client: one.client, isProven: one.isProven, hasRequest: one.hasRequest,
                age: now - one.start)
        }
        switch ConnectionRoom.decide(place(new), among: others.map(place), most: maxConnections) {
        case .keep: return nil
        case .end(let number): return byNumber[number]
        case .refuse: return new
        }
    }

    /// Nanoseconds of the clock for times of connections.
    static var now: Int64 { Int64(clamping: DispatchTime.now().uptimeNanoseconds) }

    func connection(numbered number: UInt64) -> Connection? { byNumber[number] }

    /// Forgets a connection that has ended.
    func end(_ wsi: OpaquePointer) {
        guard let connection = connections.removeValue(forKey: wsi) else { return }
        byNumber[connection.number] = nil
        if let peer = connection.peer { Task { [service] in await service.disconnect(peer) } }
    }

    // MARK: C

    /// Why the context could not be made.
    private static func fault(_ options: ListenOptions) -> ListenOptions.Fault {
        for path in [options.certificate, options.key].compactMap(\.self) where access(path, R_OK) != 0 {
            return .init(message: "The file \(path) cannot be read: \(String(cString: strerror(errno))).")
        }
        if let reason = AddressTrial.fault(options.address, options.port) {
            return .init(message: "--listen \(options.address):\(options.port) cannot be used: \(reason).")
        }
        return .init(
            message: options.certificate == nil
                ? "--listen \(options.address):\(options.port) cannot be used."
                : "The certificate \(options.certificate ?? "") and its key \(options.key ?? "") cannot be used: both are PEM "
                    + "files, and the key belongs to the certificate.")
    }

    /// A C string for the life of the process, which libwebsockets keeps.
    private static func lasting(_ text: String) -> UnsafePointer<CChar>? { UnsafePointer(strdup(text)) }

    /// The list of protocols, for the life of the process: one, and an empty one that ends it.
    private nonisolated(unsafe) static let protocols: UnsafeRawPointer = {
        let list = UnsafeMutablePointer<WebSocketsLibrary.ProtocolInfo>.allocate(capacity: 2)
        list.initialize(repeating: .init(), count: 2)
        list[0].name = lasting("http")
        list[0].callback = { wsi, reason, _, input, length in
            guard let wsi, let server = WebServer.of(wsi) else { return 0 }
            return server.handle(wsi, .init(rawValue: reason), input.map { .init(start: $0, count: length) })
        }
        list[0].receiveBufferSize = WebLimits.chunk
        return UnsafeRawPointer(list)
    }()

    /// The server that a connection belongs to; nil while its context is being made.
    private static func of(_ wsi: OpaquePointer) -> WebServer? {
        // A callback knows nothing but what the library tells: there is one library in a process.
        guard let library = WebSocketsLibrary.loaded, let context = library.context(wsi),
            let user = library.user(context)
        else { return nil }
        return Unmanaged<WebServer>.fromOpaque(user).takeUnretainedValue()
    }
}

/// The address of the other end of a connection.
enum PeerAddress {
    /// The address as text, of an IPv6 address the network's half; empty without one.
    static func text(_ descriptor: Int32) -> String {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard getpeername(descriptor, pointer, &size) == 0 else { return "" }
                var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                guard getnameinfo(pointer, size, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0 else {
                    return ""
                }
                let text = host.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
                guard pointer.pointee.sa_family == sa_family_t(AF_INET6), !text.hasPrefix("::") else { return text }
                return text.split(separator: ":", omittingEmptySubsequences: false).prefix(4).joined(separator: ":")
            }
        }
    }
}

/// Finds out why an address cannot be listened on.
enum AddressTrial {
    static func fault(_ address: String, _ port: Int) -> String? {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, String(port), &hints, &found) == 0, let found else { return "it is no address" }
        defer { freeaddrinfo(found) }
        let descriptor = socket(found.pointee.ai_family, found.pointee.ai_socktype, 0)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { close(descriptor) }
        guard bind(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0, listen(descriptor, 1) == 0 else {
            return String(cString: strerror(errno))
        }
        return nil
    }
}
