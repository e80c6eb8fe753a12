import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The few calls on TCP sockets that the test servers need, with the differences between systems kept here.
package enum Socket {
    struct Failure: Error, CustomStringConvertible {
        var call: String
        var code: Int32
        var description: String { "\(call): \(String(cString: strerror(code)))" }
    }

    #if canImport(Glibc) || canImport(Musl)
        private static let stream = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        private static let sendFlags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        private static let peekFlags = Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)
    #else
        private static let stream = SOCK_STREAM
        private static let sendFlags = MSG_DONTWAIT
        private static let peekFlags = MSG_PEEK | MSG_DONTWAIT
    #endif

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    private static func make() throws -> Int32 {
        let descriptor = socket(AF_INET, stream, 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", code: errno) }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if !canImport(Glibc) && !canImport(Musl)
            set(descriptor, SO_NOSIGPIPE, 1)
        #endif
        return descriptor
    }

    /// Listens on 127.0.0.1.
    ///
    /// - Parameters:
    ///   - port: 0 takes a free one.
    ///   - isListening: false only takes the port, so that nobody listens there and nobody else gets it.
    static func listen(port: UInt16 = 0, isListening: Bool = true) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = try make()
        // Without it nobody else may be given a port that is only taken.
        if isListening { set(descriptor, SO_REUSEADDR, 1) }
        var address = address(port: port)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failure = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> Failure? in
                #if canImport(Glibc)
                    let bound = Glibc.bind(descriptor, pointer, length)
                    let listening = bound == 0 && isListening ? Glibc.listen(descriptor, 1_024) : 0
                #elseif canImport(Musl)
                    let bound = Musl.bind(descriptor, pointer, length)
                    let listening = bound == 0 && isListening ? Musl.listen(descriptor, 1_024) : 0
                #else
                    let bound = Darwin.bind(descriptor, pointer, length)
                    let listening = bound == 0 && isListening ? Darwin.listen(descriptor, 1_024) : 0
                #endif
                if bound != 0 { return Failure(call: "bind", code: errno) }
                if listening != 0 { return Failure(call: "listen", code: errno) }
                if getsockname(descriptor, pointer, &length) != 0 { return Failure(call: "getsockname", code: errno) }
                return nil
            }
        }
        if let failure {
            close(descriptor)
            throw failure
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    static func connect(port: UInt16) throws -> Int32 {
        let descriptor = try make()
        var address = address(port: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                #if canImport(Glibc)
                    Glibc.connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
                #elseif canImport(Musl)
                    Musl.connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
                #else
                    Darwin.connect(descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
                #endif
            }
        }
        if result != 0 {
            let code = errno
            close(descriptor)
            throw Failure(call: "connect", code: code)
        }
        return descriptor
    }

    /// A port that nothing listened on a moment ago.
    package static func freePort() throws -> UInt16 { try freePorts(1)[0] }

    /// Different ports. All of them are held until the last is found: a port that is released early may be given out again.
    package static func freePorts(_ count: Int) throws -> [UInt16] {
        var held: [Int32] = []
        defer { held.forEach { close($0) } }
        return try (0..<count).map { _ in
            let (descriptor, port) = try listen()
            held.append(descriptor)
            return port
        }
    }

    /// Nil once `stop` is readable.
    static func accept(_ listener: Int32, stop: Int32) -> Int32? {
        while wait(for: listener, POLLIN, stop: [stop]) == .ready {
            #if canImport(Glibc)
                let descriptor = Glibc.accept(listener, nil, nil)
            #elseif canImport(Musl)
                let descriptor = Musl.accept(listener, nil, nil)
            #else
                let descriptor = Darwin.accept(listener, nil, nil)
            #endif
            if descriptor >= 0 {
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                return descriptor
            }
        }
        return nil
    }

    enum Readiness { case ready, stopped, timedOut }

    /// Blocks until the descriptor has one of the events (or an error), one of `stop` is readable, or `end` is reached.
    static func wait(
        for descriptor: Int32, _ events: Int32, stop: [Int32], until end: ContinuousClock.Instant? = nil
    ) -> Readiness {
        var polled = [pollfd(fd: descriptor, events: Int16(events), revents: 0)]
        polled += stop.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var count: Int32
        repeat {
            let left = end.map { max(.zero, $0 - .now) / .milliseconds(1) }
            count = poll(&polled, nfds_t(polled.count), left.map { Int32($0.rounded(.up)) } ?? -1)
        } while count < 0 && errno == EINTR
        if count == 0 { return .timedOut }
        return polled.dropFirst().contains { $0.revents != 0 } ? .stopped : .ready
    }

    /// What was read: empty at the end of the stream or on an error.
    static func read(_ descriptor: Int32, upTo count: Int = 64 << 10) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, recv(descriptor, buffer.baseAddress, count, 0))
        }
    }

    enum Sent { case some(Int), full, failed }

    /// Never blocks.
    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Sent {
        #if canImport(Glibc)
            let sent = Glibc.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
        #elseif canImport(Musl)
            let sent = Musl.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
        #else
            let sent = Darwin.send(descriptor, bytes.baseAddress, bytes.count, sendFlags)
        #endif
        if sent >= 0 { return .some(sent) }
        return errno == EAGAIN || errno == EWOULDBLOCK ? .full : .failed
    }

    /// True when the other side has closed or reset the connection and nothing is left to read.
    static func isClosed(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, peekFlags)
        return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
    }

    /// Makes `close` send RST instead of FIN.
    static func setReset(_ descriptor: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    static func set(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    static func setNoDelay(_ descriptor: Int32) {
        var value: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// Something that is closed once and opened once: threads that wait in `poll` see it as a readable descriptor.
package final class Gate: Sendable {
    let descriptor: Int32
    private let writer: Observed<Int32?>

    package init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        descriptor = ends[0]
        writer = Observed(ends[1])
    }

    deinit {
        open()
        close(descriptor)
    }

    /// True once everybody is let through.
    package var isOpen: Bool { writer.value == nil }

    /// Lets everybody through, now and later.
    package func open() {
        writer.update { writer in
            if let descriptor = writer { close(descriptor) }
            writer = nil
        }
    }
}
