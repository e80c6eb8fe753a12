#if canImport(CLibcurl)
    import CLibcurl
    import Foundation

    /// TLS sessions for all handles of a loop.
    final class CurlShare {
        let pointer: UnsafeMutableRawPointer

        /// nil if libcurl has no memory.
        init?() {
            guard let pointer = curl_share_init() else { return nil }
            self.pointer = pointer
            fk_share_sessions(pointer)
        }

        deinit { curl_share_cleanup(pointer) }
    }

    /// A multi handle of libcurl with its sockets and its timer. Only the transport's thread uses it.
    ///
    /// ```text
    /// wait -> sockets with events, due timer -> curl_multi_socket_action -> messages
    /// ```
    ///
    /// libcurl names the sockets that it waits for and the time of its next timer, and is called for those with an event
    /// only. `curl_multi_perform` would look at each transfer in each turn: with 16 transfers it took six calls of `poll` a
    /// small file.
    final class CurlMulti {
        private let pointer: UnsafeMutableRawPointer
        private let clock: CurlClock
        private let signal: WakeSignal
        private let guardian: FloodGuard
        private var sockets: SocketSet
        /// Its connections may belong to handles with this share, which therefore outlives it.
        private let share: CurlShare?
        /// The time of libcurl's next timer; `.max` without one.
        private var timer = UInt64.max

        /// nil if libcurl has no memory.
        init?(clock: CurlClock, signal: WakeSignal, share: CurlShare?, guardian: FloodGuard) {
            guard let pointer = curl_multi_init() else { return nil }
            self.pointer = pointer
            self.clock = clock
            self.signal = signal
            self.share = share
            self.guardian = guardian
            sockets = SocketSet(signal: signal.descriptor)
            fk_multi_set_long(pointer, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
            fk_multi_set_long(pointer, CURLMOPT_MAXCONNECTS, 256)
            fk_multi_set_long(pointer, CURLMOPT_MAX_CONCURRENT_STREAMS, 256)
            fk_multi_set_events(pointer, Self.onSocket, Self.onTimer, Unmanaged.passUnretained(self).toOpaque())
        }

        deinit {
            fk_multi_set_events(pointer, nil, nil, nil)
            guardian.forgetAll()
            curl_multi_cleanup(pointer)
        }

        /// Begins a transfer. Returns false if libcurl has no memory.
        func add(_ easy: CurlEasy) -> Bool { curl_multi_add_handle(pointer, easy.pointer) == CURLM_OK }

        /// Ends a transfer, whatever its state is.
        func remove(_ easy: CurlEasy) { curl_multi_remove_handle(pointer, easy.pointer) }

        /// Lets libcurl handle the events of the last wait, and its timer if that is due.
        func run() {
            var running: Int32 = 0
            for ready in sockets.drainReady() where sockets.contains(ready.socket) {
                var events: Int32 = 0
                if ready.events & Int16(POLLIN | POLLPRI) != 0 { events |= CURL_CSELECT_IN }
                if ready.events & Int16(POLLOUT) != 0 { events |= CURL_CSELECT_OUT }
                if ready.events & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 {
                    events |= CURL_CSELECT_IN | CURL_CSELECT_ERR
                }
                guardian.enter()
                curl_multi_socket_action(pointer, ready.socket, events, &running)
                guardian.leave()
            }
            guard timer <= clock.now else { return }
            timer = .max
            // libcurl sets the timer again if it is not due yet.
            guardian.enter()
            curl_multi_socket_action(pointer, CURL_SOCKET_TIMEOUT, 0, &running)
            guardian.leave()
        }

        /// Returns the next transfer that has ended, as `CURLINFO_PRIVATE`, with its result; nil if there is none.
        func drainEnded() -> (context: UnsafeMutableRawPointer, result: CURLcode)? {
            var left: Int32 = 0
            while let message = curl_multi_info_read(pointer, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                var context: UnsafeMutablePointer<CChar>?
                fk_easy_get_pointer(easy, CURLINFO_PRIVATE, &context)
                if let context { return (UnsafeMutableRawPointer(context), message.pointee.data.result) }
            }
            return nil
        }

        /// Sleeps until an event, libcurl's timer, `deadline` or the signal.
        func wait(until deadline: UInt64) {
            let deadline = min(deadline, timer)
            var milliseconds: Int32 = -1
            if deadline != .max {
                let wait = deadline > clock.now ? deadline - clock.now : 0
                milliseconds = Int32(clamping: (wait + 999_999) / 1_000_000)
            }
            if sockets.wait(milliseconds: milliseconds) { signal.drain() }
        }

        // MARK: Callbacks

        private static let onSocket: fk_socket_callback = { _, socket, what, context, _ in
            guard let context else { return 0 }
            let multi = Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
            if what == CURL_POLL_REMOVE { multi.guardian.forget(socket) } else { multi.guardian.watch(socket) }
            switch what {
            case CURL_POLL_IN: multi.sockets.watch(socket, Int16(POLLIN))
            case CURL_POLL_OUT: multi.sockets.watch(socket, Int16(POLLOUT))
            case CURL_POLL_INOUT: multi.sockets.watch(socket, Int16(POLLIN | POLLOUT))
            case CURL_POLL_REMOVE: multi.sockets.forget(socket)
            default: break
            }
            return 0
        }

        private static let onTimer: fk_timer_callback = { _, milliseconds, context in
            guard let context else { return 0 }
            let multi = Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
            multi.timer = milliseconds < 0 ? .max : multi.clock.after(seconds: Double(milliseconds) / 1_000)
            return 0
        }
    }
#endif
