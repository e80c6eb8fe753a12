#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware

    /// How other threads talk to the transport's: a queue of commands and the means to wake the thread when, and only
    /// when, it sleeps.
    final class CurlInbox: Sendable {
        struct Start: Sendable {
            var request: TransportRequest
            var handler: any TransportHandler
        }

        enum Command: Sendable {
            case start(UInt64, Start)
            case cancel(UInt64)
            case resume(UInt64)
        }

        private struct State {
            var commands: [Command] = []
            var lastID: UInt64 = 0
            var isStopping = false
            /// What sleeps in `curl_multi_poll`; nil before the loop has begun and after it has ended.
            var multi: UnsafeMutableRawPointer?
            var isAsleep = false
        }

        private let state = Locked(State())

        // MARK: Any thread

        /// - Parameter onFirst: called for the first transfer, before anybody can see that it is there.
        /// - Returns: the number of the transfer and whether it is the first; nil when the transport is shut down.
        func start(_ start: Start, onFirst: () -> Void) -> (id: UInt64, isFirst: Bool)? {
            state.withLock { state in
                guard !state.isStopping else { return nil }
                state.lastID += 1
                if state.lastID == 1 { onFirst() }
                Self.post(.start(state.lastID, start), &state)
                return (state.lastID, state.lastID == 1)
            }
        }

        func post(_ command: Command) {
            state.withLock { state in
                if !state.isStopping { Self.post(command, &state) }
            }
        }

        func stop() {
            state.withLock { state in
                state.isStopping = true
                Self.wake(&state)
            }
        }

        private static func post(_ command: Command, _ state: inout State) {
            state.commands.append(command)
            wake(&state)
        }

        /// `curl_multi_wakeup` may be called from any thread while the handle lives, which the lock ensures.
        private static func wake(_ state: inout State) {
            guard state.isAsleep, let multi = state.multi else { return }
            state.isAsleep = false
            curl_multi_wakeup(multi)
        }

        // MARK: The transport's thread

        /// Changes the handle that gets woken; nil once no more sleeping is done.
        func setMulti(_ multi: UnsafeMutableRawPointer?) {
            state.withLock { $0.multi = multi }
        }

        /// - Returns: false when there is something to do instead.
        func fallAsleep() -> Bool {
            state.withLock { state in
                guard state.commands.isEmpty, !state.isStopping else { return false }
                state.isAsleep = true
                return true
            }
        }

        /// Swaps the waiting commands into `commands`, which must be empty, so that neither array is allocated anew.
        ///
        /// - Returns: false once the transport is to stop.
        func take(_ commands: inout [Command]) -> Bool {
            state.withLock { state in
                state.isAsleep = false
                swap(&state.commands, &commands)
                return !state.isStopping
            }
        }
    }
#endif
