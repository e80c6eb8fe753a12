import Foundation

/// System calls whose names clash with Swift's own, or that have to be repeated after a signal.
enum Glue {
    /// `read`, repeated after EINTR. It returns 0 at the end, and -1 with errno on failure.
    static func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            let count = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes the whole buffer. It waits while the descriptor accepts no more. It returns false with errno on
    /// failure.
    static func writeAll(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Bool {
        putAll(descriptor, buffer) { rest in
            Foundation.write(descriptor, rest.baseAddress, rest.count)
        }
    }

    /// Writes the whole buffer to a socket after `prepareSocket`. If the other side has closed the socket, it fails
    /// without SIGPIPE.
    static func sendAll(_ socket: Int32, _ buffer: UnsafeRawBufferPointer) -> Bool {
        putAll(socket, buffer) { rest in
            #if canImport(Glibc)
                Foundation.send(socket, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            #else
                Foundation.send(socket, rest.baseAddress, rest.count, 0)
            #endif
        }
    }

    private static func putAll(
        _ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, _ put: (UnsafeRawBufferPointer) -> Int
    ) -> Bool {
        var rest = buffer
        while !rest.isEmpty {
            let count = put(rest)
            if count >= 0 {
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            } else if errno == EAGAIN {
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&ready, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// SOCK_STREAM, which has another type in each C library.
    static var streamSocket: Int32 {
        #if canImport(Glibc)
            Int32(SOCK_STREAM.rawValue)
        #else
            SOCK_STREAM
        #endif
    }

    /// `listen`, whose name a type's own method would hide.
    static func listen(_ descriptor: Int32, _ backlog: Int32) -> Int32 {
        Foundation.listen(descriptor, backlog)
    }

    /// Makes a socket send small responses without delay, and disables SIGPIPE where that is an option of the socket.
    static func prepareSocket(_ descriptor: Int32) {
        var on: Int32 = 1
        let length = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, length)
        #if canImport(Darwin)
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, length)
        #endif
    }
}
