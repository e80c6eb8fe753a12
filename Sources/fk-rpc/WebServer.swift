import CLibwebsockets
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
    let page: [String: PageFile]
    var rules: AccessRules
    /// The port that is listened on.
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
    private let maxConnections = max(2, min(WebLimits.connections, DescriptorBudget.systemLimit / 4))

    /// Opens the listening socket.
    ///
    /// - Throws: `ListenOptions.Fault` if the address or the certificate cannot be used.
    init(_ options: ListenOptions, _ service: RPCService, page: [String: PageFile]) throws {
        self.service = service
        self.page = page
        rules = AccessRules(
            address: options.address, port: options.port, isSecure: options.certificate != nil,
            origins: options.origins)
        lws_set_log_level(0, nil)
        var info = lws_context_creation_info()
        info.port = Int32(options.port)
        info.iface = Self.lasting(options.address)
        info.protocols = Self.protocols
        info.user = Unmanaged.passUnretained(self).toOpaque()
        info.gid = -1
        info.uid = -1
        info.options = fk_lws_option_no_canonical_name | fk_lws_option_must_bind | fk_lws_option_only_raw
        info.alpn = Self.lasting("http/1.1")
        info.timeout_secs = 20
        if let certificate = options.certificate, let key = options.key {
            info.options |= fk_lws_option_tls
            info.ssl_cert_filepath = Self.lasting(certificate)
            info.ssl_private_key_filepath = Self.lasting(key)
        }
        guard let context = lws_create_context(&info) else { throw Self.fault(options) }
        self.context = context
        port = lws_get_vhost_listen_port(lws_get_vhost_by_name(context, "default"))
        guard port > 0 else {
            lws_context_destroy(context)
            throw Self.fault(options)
        }
        rules.port = Int(port)
    }

    /// Begins to serve.
    func start() {
        let thread = Thread { [self] in
            while !isStopping.withLock({ $0 }), lws_service(context, 0) >= 0 {}
            lws_context_destroy(context)
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
        lws_cancel_service(context)
        _ = ended.wait(timeout: .now() + 1)
    }

    /// Passes an event to the server's thread, from any thread.
    func post(_ event: Event) {
        let isFirst = events.withLock { events in
            events.append(event)
            return events.count == 1
        }
        if isFirst, !isStopping.withLock({ $0 }) { lws_cancel_service(context) }
    }

    func takeEvents() -> [Event] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }

    // MARK: Connections

    /// True if there may be another connection. Clients take at most a quarter of the process's descriptors: without a free
    /// one, downloads stop, and libdispatch ends the process when it cannot open `/proc/TID/stat` of its threads.
    var hasRoom: Bool { connections.count < maxConnections }

    func connection(_ wsi: OpaquePointer) -> Connection {
        if let known = connections[wsi] { return known }
        let made = Connection(nextNumber, wsi)
        nextNumber += 1
        connections[wsi] = made
        byNumber[made.number] = made
        return made
    }

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

    private nonisolated(unsafe) static let protocols: UnsafePointer<lws_protocols> = {
        let list = UnsafeMutablePointer<lws_protocols>.allocate(capacity: 2)
        list.initialize(repeating: lws_protocols(), count: 2)
        list[0].name = lasting("http")
        list[0].callback = { wsi, reason, _, input, length in
            guard let wsi, let context = lws_get_context(wsi), let user = lws_context_user(context) else { return 0 }
            let server = Unmanaged<WebServer>.fromOpaque(user).takeUnretainedValue()
            return server.handle(wsi, reason, input.map { UnsafeRawBufferPointer(start: $0, count: length) })
        }
        list[0].rx_buffer_size = WebLimits.chunk
        return UnsafePointer(list)
    }()
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
