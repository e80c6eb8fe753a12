#if canImport(CLibcurl)
    import FKMiddleware

    /// Passes commands from other threads to the transport's thread, and wakes that thread only while it sleeps.
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
            /// Ends the loop's wait; nil before the loop has started and after it has ended.
            var signal: WakeSignal?
            var isAsleep = false

            /// The signal to send after the lock is released. A thread that is woken earlier would have to wait for the lock.
            mutating func signalIfAsleep() -> WakeSignal? {
                guard isAsleep else { return nil }
                isAsleep = signal == nil
                return signal
            }
        }

        private let state = Locked(State())

        // MARK: Any thread

        /// Adds a transfer.
        ///
        /// - Parameter onFirst: called for the first transfer, before other threads can see it.
        /// - Returns: the transfer's number, and whether it is the first; nil if the transport is shut down.
        func start(_ start: Start, onFirst: () -> Void) -> (id: UInt64, isFirst: Bool)? {
            var number: UInt64 = 0
            let signal = state.withLock { state -> WakeSignal? in
                guard !state.isStopping else { return nil }
                state.lastID += 1
                number = state.lastID
                if number == 1 { onFirst() }
                state.commands.append(.start(number, start))
                return state.signalIfAsleep()
            }
            signal?.give()
            return number == 0 ? nil : (number, number == 1)
        }

        func post(_ command: Command) {
            let signal = state.withLock { state -> WakeSignal? in
                guard !state.isStopping else { return nil }
                state.commands.append(command)
                return state.signalIfAsleep()
            }
            signal?.give()
        }

        func stop() {
            let signal = state.withLock { state in
                state.isStopping = true
                return state.signalIfAsleep()
            }
            signal?.give()
        }

        // MARK: The transport's thread

        /// Sets the signal that wakes the loop; nil once the loop no longer sleeps.
        func setSignal(_ signal: WakeSignal?) {
            state.withLock { $0.signal = signal }
        }

        /// Marks the thread as asleep.
        ///
        /// - Returns: false if there is work to do.
        func fallAsleep() -> Bool {
            state.withLock { state in
                guard state.commands.isEmpty, !state.isStopping else { return false }
                state.isAsleep = true
                return true
            }
        }

        /// Swaps the waiting commands into `commands`, which must be empty, so that neither array is reallocated.
        ///
        /// - Returns: false once the transport has to stop.
        func drain(_ commands: inout [Command]) -> Bool {
            state.withLock { state in
                state.isAsleep = false
                swap(&state.commands, &commands)
                return !state.isStopping
            }
        }
    }
#endif
