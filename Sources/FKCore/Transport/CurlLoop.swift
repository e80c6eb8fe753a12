#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    /// The loop of the transport's thread: one multi handle with all transfers.
    ///
    /// ```text
    /// inbox -> sockets with events -> ended transfers -> due pauses and stalls -> sleep until a socket, a deadline or
    /// the inbox has an event
    /// ```
    ///
    /// Without a running transfer it wakes only once: after `idleSeconds` it closes idle connections.
    final class CurlLoop {
        private let inbox: CurlInbox
        private let clock = CurlClock()
        private let delivered = CurlTurn()
        private let connections = SerialConnections()
        private let share: CurlShare?
        private let guardian: FloodGuard
        private let signal: WakeSignal
        private var multi: CurlMulti
        private var transfers: [UInt64: CurlTransfer] = [:]
        private var spares: [CurlEasy] = []
        private var commands: [CurlInbox.Command] = []
        private var gate = StreamGate()
        private var idleDeadline = UInt64.max
        /// The servers that have asked for HTTP/1.1 in place of HTTP/2 (RFC 9113 section 7).
        private var servers1 = Set<URLOrigin>()
        /// The servers that have asked for fewer streams in this turn. All streams of a connection tell it.
        private var calmed = Set<URLOrigin>()

        private static let idleSeconds = 120.0
        private static let maxSpares = 64

        /// Returns after `CurlInbox.stop()`, when every handler has been finished and all connections are closed.
        static func run(_ inbox: CurlInbox) {
            let guardian = FloodGuard()
            defer { guardian.stop() }
            while true {
                if let loop = CurlLoop(inbox: inbox, guardian: guardian) { return loop.run() }
                var commands: [CurlInbox.Command] = []
                let goesOn = inbox.drain(&commands)
                let error = goesOn ? CurlFailure.outOfDescriptors : cancelled
                for case .start(_, let start) in commands { start.handler.transportDidFinish(.failure(error)) }
                guard goesOn else { return }
                usleep(100_000)
            }
        }

        /// nil if libcurl has no memory, or the process no descriptor.
        private init?(inbox: CurlInbox, guardian: FloodGuard) {
            guard CurlTransport.isLibraryReady, let signal = WakeSignal() else { return nil }
            let share = CurlShare()
            guard let multi = CurlMulti(clock: clock, signal: signal, share: share, guardian: guardian) else {
                return nil
            }
            self.guardian = guardian
            self.inbox = inbox
            self.signal = signal
            self.multi = multi
            self.share = share
            inbox.setSignal(signal)
        }

        deinit { inbox.setSignal(nil) }

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
            let goesOn = inbox.drain(&commands)
            clock.tick()
            for command in commands { perform(command) }
            commands.removeAll(keepingCapacity: true)
            if goesOn {
                multi.run()
                collectFinished(isFlooded: guardian.drainClosed())
                attendDeadlines()
                admitWaiting()
                announceWait()
            } else {
                for id in transfers.keys.sorted() { end(id, .failure(Self.cancelled)) }
            }
            if goesOn { sleep() }
            return goesOn
        }

        /// Tells the handlers that have received bytes in this turn that no more are at hand.
        private func announceWait() {
            for id in delivered.drainDelivered() {
                guard let transfer = transfers[id], transfer.next == nil else { continue }
                if !transfer.announceWait() { end(id, transfer.result(CURLE_WRITE_ERROR)) }
            }
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
            let cookies: [String]
            do throws(DownloadError) {
                request = try OutgoingRequest(start.request)
                let options = start.request.options
                if let lack = TransportLibrary.lack(for: options) ?? options.trustFileFault {
                    throw DownloadError(
                        .invalidArgument, "The transfer was not started: \(lack).", url: request.url.masked)
                }
                let sessions = options.loginHost == nil ? nil : options.sessionPath
                cookies =
                    (sessions.map { SessionFile($0).cookies() } ?? [])
                    + (try options.cookiePath.map(TransportOptions.cookies(in:)) ?? [])
            } catch {
                start.handler.transportDidFinish(.failure(error))
                return
            }
            guard let easy = spares.popLast() ?? CurlEasy(share: share) else {
                start.handler.transportDidFinish(.failure(Self.noMemory))
                return
            }
            easy.add(cookies: cookies)
            idleDeadline = .max
            let transfer = CurlTransfer(
                id: id, start, request, easy: easy, clock: clock, turn: delivered, connections: connections,
                guardian: guardian)
            transfer.givenCookies = cookies
            transfers[id] = transfer
            guardian.transfersBegin()
            if let server = transfer.sharedServer, servers1.contains(server) { transfer.useHTTP1() }
            admit(transfer)
        }

        /// Submits a transfer once its server may get another stream.
        private func admit(_ transfer: CurlTransfer) {
            switch transfer.sharedServer.map({ gate.admit(transfer.id, to: $0) }) {
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
            for id in gate.drainAdmitted() {
                if let transfer = transfers[id] { submit(transfer) }
            }
        }

        private func submit(_ transfer: CurlTransfer) {
            guard transfer.prepare(), multi.add(transfer.easy) else {
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
                    clock.record(transfer.deadline)
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
            guard inbox.fallAsleep() else { return }
            multi.wait(until: min(clock.nextDeadline, idleDeadline))
        }

        /// Releases connections and handles that were idle for a while.
        private func closeIdleConnections() {
            idleDeadline = .max
            guard let fresh = CurlMulti(clock: clock, signal: signal, share: share, guardian: guardian) else { return }
            spares.removeAll()
            multi = fresh
        }

        // MARK: Ends

        /// - Parameter isFlooded: true if the guard has shut a connection down since the last time.
        private func collectFinished(isFlooded: Bool) {
            calmed.removeAll()
            while let (context, code) = multi.drainEnded() {
                let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
                if isFlooded, code != CURLE_OK, transfer.outcome == nil {
                    end(transfer.id, .failure(transfer.floodError))
                } else if let next = transfer.next {
                    follow(next, transfer)
                } else if let again = again(transfer, code) {
                    send(transfer, again)
                } else {
                    end(transfer.id, transfer.result(code, isShared: isShared(transfer)))
                }
            }
        }

        /// How a request that has ended without an answer is sent again; nil if its end counts.
        private func again(_ transfer: CurlTransfer, _ code: CURLcode) -> Sending.Again? {
            let server = transfer.sharedServer
            let again = transfer.again(code) {
                guard let server else { return [] }
                // libcurl tells one transfer of a connection why it ended.
                var others = transfers.values.filter { $0.sharedServer == server }.map(\.sending)
                if servers1.contains(server) {
                    var told = Sending()
                    told.wantsHTTP1 = true
                    others.append(told)
                }
                return others
            }
            if transfer.sending.wantsHTTP1, let server { servers1.insert(server) }
            return again
        }

        private func send(_ transfer: CurlTransfer, _ again: Sending.Again) {
            multi.remove(transfer.easy)
            if again == .calmly, let server = transfer.sharedServer, calmed.insert(server).inserted {
                gate.calm(server)
            }
            gate.ended(transfer.id)
            transfer.send(again: again)
            admit(transfer)
        }

        /// True if another running transfer uses the connection of this one.
        private func isShared(_ transfer: CurlTransfer) -> Bool {
            transfer.localPort != 0
                && transfers.values.contains { $0 !== transfer && $0.localPort == transfer.localPort }
        }

        private func follow(_ request: OutgoingRequest, _ transfer: CurlTransfer) {
            multi.remove(transfer.easy)
            transfer.follow(request)
            submit(transfer)
        }

        private func end(_ id: UInt64, _ result: Result<TransportSummary, DownloadError>) {
            guard let transfer = transfers.removeValue(forKey: id) else { return }
            gate.ended(id)
            multi.remove(transfer.easy)
            transfer.easy.set(CURLOPT_VERBOSE, false)
            transfer.keepSession()
            transfer.easy.forgetCookies()
            // Options that the next request shares stay set. A pooled handle never keeps a user and password.
            if transfer.easy.setup == nil { transfer.easy.reset() }
            if spares.count < Self.maxSpares { spares.append(transfer.easy) }
            if transfers.isEmpty { guardian.transfersEnded() }
            if transfers.isEmpty { idleDeadline = clock.after(seconds: Self.idleSeconds) }
            transfer.handler.transportDidFinish(result)
        }

        static let cancelled = DownloadError(.cancelled, "The transfer was cancelled.")
        private static let noMemory = DownloadError(
            .connect, "There was no memory for the transfer.", isRetryable: true)
    }
#endif
