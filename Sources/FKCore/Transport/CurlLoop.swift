#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    /// The loop of the transport's thread: one multi handle with all transfers.
    ///
    /// ```text
    /// inbox -> curl_multi_perform -> finished transfers -> due pauses and stalls -> sleep until a socket, a
    /// deadline or the inbox has an event
    /// ```
    ///
    /// Without a running transfer it wakes only once: after `idleSeconds` it closes idle connections.
    final class CurlLoop {
        private let inbox: CurlInbox
        private let clock = CurlClock()
        private let share: UnsafeMutableRawPointer?
        private var multi: UnsafeMutableRawPointer
        private var transfers: [UInt64: CurlTransfer] = [:]
        private var spares: [CurlEasy] = []
        private var commands: [CurlInbox.Command] = []
        private var gate = StreamGate()
        private var idleDeadline = UInt64.max

        private static let idleSeconds = 120.0
        private static let maxSpares = 64

        /// Returns after `CurlInbox.stop()`, when every handler has been finished and all connections are closed.
        static func run(_ inbox: CurlInbox) {
            if let loop = CurlLoop(inbox: inbox) {
                loop.run()
                return
            }
            inbox.stop()
            var commands: [CurlInbox.Command] = []
            _ = inbox.take(&commands)
            for case .start(_, let start) in commands { start.handler.transportDidFinish(.failure(noMemory)) }
        }

        /// nil if libcurl has no memory.
        private init?(inbox: CurlInbox) {
            guard CurlTransport.isLibraryReady, let multi = Self.makeMulti() else { return nil }
            self.inbox = inbox
            self.multi = multi
            share = curl_share_init()
            if let share { fk_share_sessions(share) }
            inbox.setMulti(multi)
        }

        deinit {
            inbox.setMulti(nil)
            spares.removeAll()
            curl_multi_cleanup(multi)
            if let share { curl_share_cleanup(share) }
        }

        private static func makeMulti() -> UnsafeMutableRawPointer? {
            guard let multi = curl_multi_init() else { return nil }
            fk_multi_set_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
            fk_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 256)
            fk_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 256)
            return multi
        }

        private func run() {
            #if canImport(ObjectiveC)
                while autoreleasepool(invoking: turn) {}
            #else
                while turn() {}
            #endif
        }

        /// One turn of the loop.
        ///
        /// - Returns: false once everything has ended.
        private func turn() -> Bool {
            let goesOn = inbox.take(&commands)
            clock.tick()
            for command in commands { perform(command) }
            commands.removeAll(keepingCapacity: true)
            if goesOn {
                var running: Int32 = 0
                curl_multi_perform(multi, &running)
                collectFinished()
                attendDeadlines()
                admitWaiting()
            } else {
                for id in transfers.keys.sorted() { end(id, .failure(Self.cancelled)) }
            }
            if goesOn { sleep() }
            return goesOn
        }

        // MARK: Commands

        private func perform(_ command: CurlInbox.Command) {
            switch command {
            case .start(let id, let start): self.start(id, start)
            case .cancel(let id): end(id, .failure(Self.cancelled))
            case .resume(let id): resume(id)
            }
        }

        private func start(_ id: UInt64, _ start: CurlInbox.Start) {
            let request: OutgoingRequest
            do {
                request = try OutgoingRequest(start.request)
            } catch {
                start.handler.transportDidFinish(.failure(error))
                return
            }
            guard let easy = spares.popLast() ?? CurlEasy(share: share) else {
                start.handler.transportDidFinish(.failure(Self.noMemory))
                return
            }
            idleDeadline = .max
            let transfer = CurlTransfer(id: id, start, request, easy: easy, clock: clock)
            transfers[id] = transfer
            switch transfer.sharedServer.map({ gate.admit(id, to: $0) }) {
            case .later: break
            case .onNewConnection:
                transfer.opensConnection = true
                submit(transfer)
            case .now, nil: submit(transfer)
            }
        }

        /// Submits the transfers whose wait for a connection is over.
        private func admitWaiting() {
            if gate.waitingCount > 0 {
                for (id, transfer) in transfers where transfer.isConnected {
                    gate.connected(id)
                    if transfer.isSerial { gate.answeredSerially(id) }
                }
            }
            for id in gate.takeAdmitted() {
                if let transfer = transfers[id] { submit(transfer) }
            }
        }

        private func submit(_ transfer: CurlTransfer) {
            guard transfer.prepare(), curl_multi_add_handle(multi, transfer.easy.pointer) == CURLM_OK else {
                end(transfer.id, .failure(Self.noMemory))
                return
            }
        }

        private func resume(_ id: UInt64) {
            guard let transfer = transfers[id], !transfer.unpause() else { return }
            end(id, transfer.result(CURLE_WRITE_ERROR))
        }

        // MARK: Time

        /// Runs after reading, with the time from before it. Bytes that a server sent while a handler was busy are
        /// therefore never taken for silence.
        private func attendDeadlines() {
            if clock.now >= idleDeadline { closeIdleConnections() }
            guard clock.now >= clock.nextDeadline else { return }
            clock.forgetDeadlines()
            for (id, transfer) in transfers {
                if transfer.deadline <= clock.now {
                    if transfer.isPaused { resume(id) } else { stall(transfer) }
                } else {
                    clock.note(transfer.deadline)
                }
            }
        }

        private func stall(_ transfer: CurlTransfer) {
            if let next = transfer.next {
                follow(next, transfer)
            } else {
                end(transfer.id, .failure(transfer.stallError))
            }
        }

        private func sleep() {
            let deadline = min(clock.nextDeadline, idleDeadline)
            var milliseconds = Int32.max
            if deadline != .max {
                let wait = deadline > clock.now ? deadline - clock.now : 0
                milliseconds = Int32(clamping: (wait + 999_999) / 1_000_000)
            }
            guard inbox.fallAsleep() else { return }
            curl_multi_poll(multi, nil, 0, milliseconds, nil)
        }

        /// Releases connections and handles that were idle for a while.
        private func closeIdleConnections() {
            idleDeadline = .max
            guard let fresh = Self.makeMulti() else { return }
            inbox.setMulti(fresh)
            spares.removeAll()
            curl_multi_cleanup(multi)
            multi = fresh
        }

        // MARK: Ends

        private func collectFinished() {
            var left: Int32 = 0
            while let message = curl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                let code = message.pointee.data.result
                var context: UnsafeMutablePointer<CChar>?
                fk_easy_get_pointer(easy, CURLINFO_PRIVATE, &context)
                guard let context else { continue }
                let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
                if let next = transfer.next {
                    follow(next, transfer)
                } else {
                    end(transfer.id, transfer.result(code))
                }
            }
        }

        private func follow(_ request: OutgoingRequest, _ transfer: CurlTransfer) {
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.follow(request)
            submit(transfer)
        }

        private func end(_ id: UInt64, _ result: Result<TransportSummary, DownloadError>) {
            guard let transfer = transfers.removeValue(forKey: id) else { return }
            gate.ended(id)
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.easy.forgetCookies()
            // Options that the next request shares stay set. A pooled handle never keeps a user and password.
            if transfer.easy.setup == nil { transfer.easy.reset() }
            if spares.count < Self.maxSpares { spares.append(transfer.easy) }
            if transfers.isEmpty { idleDeadline = clock.after(seconds: Self.idleSeconds) }
            transfer.handler.transportDidFinish(result)
        }

        static let cancelled = DownloadError(.cancelled, "The transfer was cancelled.")
        private static let noMemory = DownloadError(
            .connect, "There was no memory for the transfer.", isRetryable: true)
    }
#endif
