#if canImport(CLibcurl)
    import Foundation

    /// The sockets that a thread waits for, with one call of `poll`. Not thread-safe.
    ///
    /// `poll` and not `epoll`: libcurl removes and adds a socket again for each request of a connection, which costs a system
    /// call each with `epoll` and none here.
    struct SocketSet {
        /// A socket with an event, and `revents` of `poll`.
        struct Ready {
            var socket: Int32
            var events: Int16
        }

        /// The first one belongs to the wake signal.
        private var places: [pollfd]
        private var indexes: [Int32: Int] = [:]
        /// The sockets that had events in the last wait.
        private var ready: [Ready] = []

        /// - Parameter signal: the descriptor that ends a wait.
        init(signal: Int32) { places = [pollfd(fd: signal, events: Int16(POLLIN), revents: 0)] }

        var count: Int { places.count - 1 }

        /// Waits for these events of a socket (`POLLIN`, `POLLOUT`), in place of earlier ones.
        mutating func watch(_ socket: Int32, _ events: Int16) {
            if let index = indexes[socket] {
                places[index].events = events
            } else {
                indexes[socket] = places.count
                places.append(pollfd(fd: socket, events: events, revents: 0))
            }
        }

        mutating func forget(_ socket: Int32) {
            guard let index = indexes.removeValue(forKey: socket) else { return }
            let last = places.removeLast()
            guard index < places.count else { return }
            places[index] = last
            indexes[last.fd] = index
        }

        func contains(_ socket: Int32) -> Bool { indexes[socket] != nil }

        /// Waits for an event, the signal, or the end of the time. An interrupted wait ends without an event.
        ///
        /// - Parameter milliseconds: -1 waits without end.
        /// - Returns: true if the signal was given.
        mutating func wait(milliseconds: Int32) -> Bool {
            ready.removeAll(keepingCapacity: true)
            let count = places.withUnsafeMutableBufferPointer { poll($0.baseAddress, nfds_t($0.count), milliseconds) }
            guard count > 0 else { return false }
            for place in places.dropFirst() where place.revents != 0 {
                ready.append(Ready(socket: place.fd, events: place.revents))
            }
            return places[0].revents != 0
        }

        /// Returns and forgets the sockets with events.
        mutating func drainReady() -> [Ready] {
            defer { ready.removeAll(keepingCapacity: true) }
            return ready
        }
    }

    /// Wakes a thread that waits in `poll`: a pipe whose reading end has at most one byte. Safe from any thread.
    final class WakeSignal: Sendable {
        /// The descriptor to wait for.
        let descriptor: Int32
        private let writer: Int32

        /// nil if the process has no descriptor left.
        init?() {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { return nil }
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
            (descriptor, writer) = (ends[0], ends[1])
        }

        deinit {
            close(descriptor)
            close(writer)
        }

        /// Wakes the thread. A full pipe wakes it as well.
        func give() {
            var byte: UInt8 = 1
            while write(writer, &byte, 1) < 0, errno == EINTR {}
        }

        /// Takes the signal back, after a wait has returned it.
        func drain() {
            withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { bytes in
                while read(descriptor, bytes.baseAddress, bytes.count) < 0, errno == EINTR {}
            }
        }
    }
#endif
