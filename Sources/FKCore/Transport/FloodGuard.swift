#if canImport(CLibcurl)
    import FKMiddleware
    import Foundation
    import Synchronization

    /// Frees the transport's thread from a server that keeps it inside one call of libcurl: by HTTP/2 frames without a body, or
    /// by an answer to CONNECT without an end. libcurl reads on as long as bytes are there, and no time-out can act meanwhile.
    ///
    /// ```text
    /// the transport's thread:  enter -> [beat, for each callback] -> leave
    /// the guard's thread:      once a second: inside, and no beat for `patience`? -> which socket is being read? -> shut it down
    /// ```
    ///
    /// The socket that is being read is the one whose unread bytes become fewer. A thread that waits for a disk, a name or a
    /// certificate reads no socket, so nothing is closed then.
    final class FloodGuard: @unchecked Sendable {
        // Sendable because mutable state is accessed only with `lock` held, in atomics, or behind `Locked`.

        /// The number of ticks without a beat after which a call is taken for endless.
        static let patience = 2
        private static let tick = 1.0
        private static let samples = 60

        private let isInside = Atomic<Bool>(false)
        private let isBusy = Atomic<Bool>(false)
        private let isWatching = Atomic<Bool>(false)
        private let beats = Atomic<UInt64>(0)
        private let hasClosed = Atomic<Bool>(false)
        private let sockets = Locked<Set<Int32>>([])
        private let lock = NSCondition()
        private var isStopping = false
        private let thread = WorkThread()

        /// Starts the guard's thread, which sleeps while nothing is transferred.
        init() {
            thread.start(name: "fk.guard", stackSize: 128 << 10) { [unowned self] in watch() }
        }

        /// Ends the guard's thread.
        func stop() {
            lock.lock()
            isStopping = true
            lock.signal()
            lock.unlock()
            thread.join()
        }

        // MARK: The transport's thread

        /// A transfer begins.
        func transfersBegin() {
            guard !isBusy.load(ordering: .relaxed) else { return }
            isBusy.store(true, ordering: .sequentiallyConsistent)
            guard !isWatching.load(ordering: .sequentiallyConsistent) else { return }
            lock.lock()
            lock.signal()
            lock.unlock()
        }

        /// No transfer is left.
        func transfersEnded() { isBusy.store(false, ordering: .sequentiallyConsistent) }

        /// A call of libcurl begins.
        func enter() {
            beat()
            isInside.store(true, ordering: .relaxed)
        }

        /// It has returned.
        func leave() { isInside.store(false, ordering: .relaxed) }

        /// libcurl has delivered something.
        func beat() { beats.wrappingAdd(1, ordering: .relaxed) }

        /// libcurl watches the socket.
        func watch(_ socket: Int32) { sockets.withLock { _ = $0.insert(socket) } }

        /// libcurl is about to close the socket, or does not wait for it.
        func forget(_ socket: Int32) { sockets.withLock { _ = $0.remove(socket) } }

        /// All sockets are about to be closed.
        func forgetAll() { sockets.withLock { $0.removeAll() } }

        /// Returns true once after a socket was shut down.
        func drainClosed() -> Bool {
            hasClosed.load(ordering: .relaxed) && hasClosed.exchange(false, ordering: .acquiringAndReleasing)
        }

        // MARK: The guard's thread

        private func watch() {
            lock.lock()
            defer { lock.unlock() }
            var (last, silent) = (UInt64.max, 0)
            while !isStopping {
                isWatching.store(isBusy.load(ordering: .sequentiallyConsistent), ordering: .sequentiallyConsistent)
                guard isBusy.load(ordering: .sequentiallyConsistent) else {
                    lock.wait()
                    continue
                }
                isWatching.store(true, ordering: .sequentiallyConsistent)
                _ = lock.wait(until: Date(timeIntervalSinceNow: Self.tick))
                let now = beats.load(ordering: .relaxed)
                silent = now == last && isInside.load(ordering: .relaxed) ? silent + 1 : 0
                last = now
                guard silent >= Self.patience, !isStopping else { continue }
                lock.unlock()
                closeFlooded(since: now)
                lock.lock()
            }
        }

        /// Shuts the socket down whose bytes are being read, if the call still lasts.
        private func closeFlooded(since beat: UInt64) {
            var unread: [Int32: Int32] = [:]
            for _ in 0..<Self.samples {
                let isClosed = sockets.withLock { sockets in
                    for socket in sockets {
                        var count: Int32 = 0
                        guard ioctl(socket, UInt(FIONREAD), &count) == 0 else { continue }
                        if let former = unread[socket], count < former, beats.load(ordering: .relaxed) == beat,
                            isInside.load(ordering: .relaxed)
                        {
                            // libcurl cannot close it meanwhile, because `forget` waits.
                            hasClosed.store(true, ordering: .releasing)
                            shutdown(socket, Int32(SHUT_RDWR))
                            return true
                        }
                        unread[socket] = count
                    }
                    return false
                }
                if isClosed || beats.load(ordering: .relaxed) != beat { return }
                usleep(3_000)
            }
        }
    }
#endif
