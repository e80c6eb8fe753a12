import FKMiddleware
import Foundation

/// libwebsockets, loaded when `fk rpc` starts: no other command needs it, and `fk` runs where it is not installed.
///
/// The numbers and offsets are those of its headers, 4.1 to 4.5; the library's file name has the version. They differ in one place: where
/// the library keeps TLS sessions, the later members of `lws_context_creation_info` are 8 bytes further back.
struct WebSocketsLibrary: @unchecked Sendable {
    /// Says that the library is not there, and how to get it.
    struct Missing: Error {
        let message: String
    }

    typealias SetLogLevel = @convention(c) (Int32, UnsafeRawPointer?) -> Void
    typealias CreateContext = @convention(c) (UnsafeRawPointer) -> OpaquePointer?
    typealias OfPointer = @convention(c) (OpaquePointer?) -> Void
    typealias Number = @convention(c) (OpaquePointer?) -> Int32
    typealias Parent = @convention(c) (OpaquePointer?) -> OpaquePointer?
    typealias Callback =
        @convention(c) (
            OpaquePointer?, UInt32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int
        ) -> Int32

    let setLogLevel: SetLogLevel
    let createContext: CreateContext
    let destroyContext: OfPointer
    let service: @convention(c) (OpaquePointer?, Int32) -> Int32
    /// Makes `service` return, from any thread.
    let wake: OfPointer
    let virtualHost: @convention(c) (OpaquePointer?, UnsafePointer<CChar>) -> OpaquePointer?
    let listenPort: Number
    let context: Parent
    let user: @convention(c) (OpaquePointer?) -> UnsafeMutableRawPointer?
    let socket: Number
    let setTimer: @convention(c) (OpaquePointer?, Int64) -> Void
    let setTimeout: @convention(c) (OpaquePointer?, UInt32, Int32) -> Void
    let askToWrite: Number
    let flowControl: @convention(c) (OpaquePointer?, Int32) -> Int32
    let hasPartialWrite: Number
    let write: @convention(c) (OpaquePointer?, UnsafeMutablePointer<UInt8>?, Int, UInt32) -> Int32
    /// By how much the members behind those of TLS sessions are moved.
    fileprivate let shift: Int

    /// `LWS_PRE`: the bytes in front of each buffer that is written, for the head of a frame.
    static let roomBefore = 16
    /// `LWS_WRITE_HTTP`: the bytes are sent as they are.
    static let plainWrite: UInt32 = 3
    /// `PENDING_TIMEOUT_USER_OK` and `LWS_TO_KILL_ASYNC`.
    static let userTimeout: UInt32 = 32
    static let endsAtOnce: Int32 = -1

    /// Why the library calls: the `LWS_CALLBACK_…` that concern a server of plain bytes.
    struct Reason: RawRepresentable, Hashable {
        let rawValue: UInt32
        static let newConnection = Reason(rawValue: 17)
        static let destroyed = Reason(rawValue: 30)
        static let received = Reason(rawValue: 59)
        static let closed = Reason(rawValue: 60)
        static let writable = Reason(rawValue: 61)
        static let adopted = Reason(rawValue: 62)
        static let woken = Reason(rawValue: 71)
        static let timer = Reason(rawValue: 73)
    }

    /// `LWS_SERVER_OPTION_…`.
    struct Options: OptionSet {
        let rawValue: UInt64
        static let noCanonicalName = Options(rawValue: 1 << 2)
        static let tls = Options(rawValue: 1 << 12)
        static let onlyRaw = Options(rawValue: 1 << 22)
        static let mustBind = Options(rawValue: 1 << 30)
    }

    /// `lws_protocols`.
    struct ProtocolInfo {
        var name: UnsafePointer<CChar>?
        var callback: Callback?
        var sessionSize = 0
        var receiveBufferSize = 0
        var id: UInt32 = 0
        var user: UnsafeMutableRawPointer?
        var sendBufferSize = 0
    }

    /// `lws_context_creation_info`. The library's own one has 672 to 900 bytes; what is not set is zero.
    final class ContextInfo {
        let pointer = UnsafeMutableRawPointer.allocate(byteCount: 4_096, alignment: 16)
        private let shift: Int

        init(_ library: WebSocketsLibrary) {
            shift = library.shift
            pointer.initializeMemory(as: UInt8.self, repeating: 0, count: 4_096)
        }

        deinit { pointer.deallocate() }

        private subscript<Value: BitwiseCopyable>(offset: Int, _: Value.Type) -> Value {
            get { pointer.load(fromByteOffset: offset, as: Value.self) }
            set { pointer.storeBytes(of: newValue, toByteOffset: offset, as: Value.self) }
        }

        /// The address to listen on (`iface`).
        var address: UnsafePointer<CChar>? {
            get { self[0, UnsafePointer<CChar>?.self] }
            set { self[0, UnsafePointer<CChar>?.self] = newValue }
        }
        var protocols: UnsafeRawPointer? {
            get { self[8, UnsafeRawPointer?.self] }
            set { self[8, UnsafeRawPointer?.self] = newValue }
        }
        var port: Int32 {
            get { self[96, Int32.self] }
            set { self[96, Int32.self] = newValue }
        }
        var certificate: UnsafePointer<CChar>? {
            get { self[160, UnsafePointer<CChar>?.self] }
            set { self[160, UnsafePointer<CChar>?.self] = newValue }
        }
        var key: UnsafePointer<CChar>? {
            get { self[168, UnsafePointer<CChar>?.self] }
            set { self[168, UnsafePointer<CChar>?.self] = newValue }
        }
        /// The protocols that TLS offers (`alpn`).
        var protocolNames: UnsafePointer<CChar>? {
            get { self[272, UnsafePointer<CChar>?.self] }
            set { self[272, UnsafePointer<CChar>?.self] = newValue }
        }
        /// `timeout_secs`.
        var seconds: UInt32 {
            get { self[404, UInt32.self] }
            set { self[404, UInt32.self] = newValue }
        }
        var group: Int32 {
            get { self[420 + shift, Int32.self] }
            set { self[420 + shift, Int32.self] = newValue }
        }
        var userID: Int32 {
            get { self[424 + shift, Int32.self] }
            set { self[424 + shift, Int32.self] = newValue }
        }
        var options: Options {
            get { Options(rawValue: self[432 + shift, UInt64.self]) }
            set { self[432 + shift, UInt64.self] = newValue.rawValue }
        }
        var user: UnsafeMutableRawPointer? {
            get { self[440 + shift, UnsafeMutableRawPointer?.self] }
            set { self[440 + shift, UnsafeMutableRawPointer?.self] = newValue }
        }
    }

    // MARK: Loading

    /// The library of this process; nil before `load`, and if it is not there.
    static var loaded: WebSocketsLibrary? { try? attempt.get() }

    private static let attempt = Result { try open(names) }

    /// - Throws: `Missing`.
    static func load() throws -> WebSocketsLibrary { try attempt.get() }

    /// Its file names: those of 4.1 to 4.5.
    static var names: [String] {
        #if os(macOS)
            let folders = ["", "/opt/homebrew/lib/", "/usr/local/lib/"]
            return folders.flatMap { folder in (17...21).reversed().map { "\(folder)libwebsockets.\($0).dylib" } }
        #else
            return (17...21).reversed().map { "libwebsockets.so.\($0)" }
        #endif
    }

    /// Loads the first library of these names that is there.
    ///
    /// - Throws: `Missing`.
    static func open(_ names: [String]) throws -> WebSocketsLibrary {
        for name in names {
            if let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) { return try WebSocketsLibrary(handle, name) }
        }
        throw Missing(message: missing)
    }

    static let missing =
        "the library libwebsockets (4.1 to 4.5) is not installed. Debian has it in the package libwebsockets17 (12) or "
        + "libwebsockets19t64 (13 and Ubuntu 24.04); Fedora, Arch and Homebrew call it libwebsockets, and RHEL and Rocky have it in "
        + "EPEL. The other commands of fk do not need it."

    private init(_ handle: UnsafeMutableRawPointer, _ name: String) throws {
        func find<Function>(_ symbol: String, _: Function.Type = Function.self) throws -> Function {
            guard let address = dlsym(handle, symbol) else {
                throw Missing(message: "\(name) has no \(symbol): it is built in another way than fk needs it.")
            }
            return unsafeBitCast(address, to: Function.self)
        }
        setLogLevel = try find("lws_set_log_level")
        createContext = try find("lws_create_context")
        destroyContext = try find("lws_context_destroy")
        service = try find("lws_service")
        wake = try find("lws_cancel_service")
        virtualHost = try find("lws_get_vhost_by_name")
        listenPort = try find("lws_get_vhost_listen_port")
        context = try find("lws_get_context")
        user = try find("lws_context_user")
        socket = try find("lws_get_socket_fd")
        setTimer = try find("lws_set_timer_usecs")
        setTimeout = try find("lws_set_timeout")
        askToWrite = try find("lws_callback_on_writable")
        flowControl = try find("lws_rx_flow_control")
        hasPartialWrite = try find("lws_partial_buffered")
        write = try find("lws_write")
        // A library that was built without HTTP, WebSocket, TLS or clients has other offsets, and lacks one of these functions.
        for symbol in [
            "lws_http_get_uri_and_method", "lws_frame_is_binary", "lws_is_ssl", "lws_client_connect_via_info",
        ] {
            _ = try find(symbol, UnsafeRawPointer.self)
        }
        shift = dlsym(handle, "lws_tls_session_dump_save") == nil ? 0 : 8
    }
}
