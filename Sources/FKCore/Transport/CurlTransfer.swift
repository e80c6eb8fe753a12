#if canImport(CLibcurl)
    import CLibcurl
    import FKMiddleware
    import Foundation

    /// One transfer with all its redirects. Only the transport's thread uses it, where libcurl calls its callbacks.
    ///
    /// ```text
    /// connecting -> connected -> head -> body -> end
    ///      ^------- redirect -----'
    /// ```
    final class CurlTransfer {
        let id: UInt64
        let handler: any TransportHandler
        let easy: CurlEasy
        private(set) var current: OutgoingRequest
        /// The request to send after a redirect. While it is set, the body belongs to the redirect and is discarded.
        private(set) var next: OutgoingRequest?
        /// The end as the handler or the transport decided it, whatever libcurl reports for the aborted callback.
        private(set) var outcome: Result<Void, DownloadError>?

        private var request: TransportRequest
        private let clock: CurlClock
        private let turn: CurlTurn
        private let connections: SerialConnections
        private let guardian: FloodGuard
        private var rules: RedirectRules
        private var collector: HeaderCollector
        private var end = BodyEnd()
        private var framing: BodyFraming? { end.framing }
        private(set) var isConnected = false
        /// True once the transfer has been at the login host.
        private(set) var hasLoggedIn = false
        /// The cookies that it began with.
        var givenCookies: [String] = []
        /// True if the transfer opens its own connection, even if others exist.
        var opensConnection = false
        /// True if the server has answered over HTTP/1, where a connection carries one transfer at a time.
        private(set) var isSerial = false
        private var watch: SilenceWatch
        private var redirectBody = 0
        /// What is known about the way in which the current request was sent.
        private(set) var sending = Sending()
        /// The local port of the connection: transfers with the same one share it. 0 before the request is sent.
        private(set) var localPort = 0
        /// The endpoint of the current connection: the server or a proxy.
        private var connected: (address: String, port: Int)?
        /// The server's numeric address; nil behind a proxy and before the connection.
        private var peer: String? {
            guard let connected, request.options.proxy?.isEmpty != false,
                URLOrigin(current.url)?.port == connected.port
            else { return nil }
            return connected.address
        }
        private var previousPeer: String?
        /// Why an address was not connected to.
        private var addressRefusal: DownloadError?

        init(
            id: UInt64, _ start: CurlInbox.Start, _ first: OutgoingRequest, easy: CurlEasy, clock: CurlClock,
            turn: CurlTurn, connections: SerialConnections, guardian: FloodGuard
        ) {
            self.connections = connections
            self.id = id
            self.guardian = guardian
            self.turn = turn
            request = start.request
            handler = start.handler
            current = first
            hasLoggedIn = first.isAtLogin
            self.easy = easy
            self.clock = clock
            watch = SilenceWatch(request.options)
            rules = RedirectRules(url: current.url, method: current.method, options: request.options)
            collector = Self.collector(request.options)
        }

        /// True if its log is shown.
        private let isTraced = TransportTrace.isOn

        private static func collector(_ options: TransportOptions) -> HeaderCollector {
            HeaderCollector(maxBytes: options.maxHeaderBytes, maxLines: options.maxHeaderLines)
        }

        /// Sets up the easy handle for the current request.
        ///
        /// - Returns: false if libcurl has no memory.
        func prepare() -> Bool {
            guard easy.configure(current, request.options) else { return false }
            // The loop retains the transfer while the handle is in use.
            let context = Unmanaged.passUnretained(self).toOpaque()
            easy.set(CURLOPT_FRESH_CONNECT, opensConnection || watchesSockets)
            easy.set(CURLOPT_PRIVATE, context)
            easy.set(CURLOPT_WRITEDATA, context)
            easy.set(CURLOPT_HEADERDATA, context)
            easy.set(CURLOPT_PREREQDATA, context)
            easy.set(CURLOPT_XFERINFODATA, context)
            fk_easy_set_data_callback(easy.pointer, CURLOPT_WRITEFUNCTION, Self.onBody)
            fk_easy_set_data_callback(easy.pointer, CURLOPT_HEADERFUNCTION, Self.onHeader)
            fk_easy_set_request_callback(easy.pointer, Self.onRequest)
            fk_easy_set_progress_callback(easy.pointer, Self.onProgress)
            easy.set(CURLOPT_DEBUGDATA, context)
            fk_easy_set_debug_callback(easy.pointer, Self.onDebug)
            if watchesSockets { easy.askBeforeConnecting(Self.onSocket, context) }
            if sending.listens || isTraced || !CurlEasy.announcesRequests { easy.set(CURLOPT_VERBOSE, true) }
            return true
        }

        /// True if the target of a redirect is checked when its socket is opened, which is always a new one: libcurl before 7.80
        /// cannot stop a request on a connection.
        private var watchesSockets: Bool {
            !CurlEasy.announcesRequests && rules.count > 0 && rules.checksAddresses
        }

        /// Switches to the request of a redirect.
        func follow(_ request: OutgoingRequest) {
            previousPeer = peer
            current = request
            if request.isAtLogin { hasLoggedIn = true }
            opensConnection = false
            next = nil
            collector = Self.collector(self.request.options)
            end = BodyEnd()
            isConnected = false
            redirectBody = 0
            watch = SilenceWatch(self.request.options)
            localPort = 0
            connected = nil
            addressRefusal = nil
            sending = Sending()
            easy.reset()
        }

        /// Keeps the cookies of a session that began at the login host, for the next transfers of the work path.
        func keepSession() {
            guard hasLoggedIn, let path = request.options.sessionPath else { return }
            let changes = SessionFile.changes(from: givenCookies, to: easy.cookies)
            SessionFile(path).keep(changes.new, ended: changes.ended)
        }

        // MARK: Sending again

        /// True if the request may be sent twice (RFC 9110 section 9.2.2).
        private var isRepeatable: Bool { ["GET", "HEAD"].contains(current.method) && current.body == nil }

        /// How the request is to be sent again after libcurl has ended it; nil if that end counts.
        ///
        /// - Parameter others: returns what is known from the transfers of the server.
        func again(_ code: CURLcode, others: () -> [Sending]) -> Sending.Again? {
            guard isRepeatable, outcome == nil || sending.isStale, isConnected else { return nil }
            sending.isReused = easy.long(CURLINFO_NUM_CONNECTS) == 0
            sending.mayHTTP2 = sharedServer != nil && request.options.httpVersion == .automatic
            sending.isHTTP2Failure = [CURLE_HTTP2, CURLE_HTTP2_STREAM].contains(code)
            if code != CURLE_OK { sending.record(easy.errorText) }
            if sending.mayHTTP2, !sending.isAnswered {
                let known = others()
                sending.learn(from: known)
            }
            return sending.again()
        }

        /// Prepares the same request to be sent again.
        func send(again: Sending.Again) {
            let former = sending
            opensConnection = again == .onNewConnection
            if again == .overHTTP1 { useHTTP1() }
            collector = Self.collector(request.options)
            end = BodyEnd()
            outcome = nil
            isConnected = false
            watch = SilenceWatch(request.options)
            localPort = 0
            connected = nil
            addressRefusal = nil
            sending = Sending(after: again, former)
            easy.reset()
        }

        /// Uses HTTP/1.1, unless the user has chosen another version.
        func useHTTP1() {
            if request.options.httpVersion == .automatic { request.options.httpVersion = .http1 }
        }

        // MARK: Time

        /// When this transfer needs attention without an event: the end of a pause, or of the server's allowed
        /// silence. libcurl watches the time to connect.
        var deadline: UInt64 { watch.deadline }

        /// The error for a server that kept the thread busy without sending anything of use.
        var floodError: DownloadError {
            DownloadError(
                .timeout,
                "The server sent data without end that is no part of its answer, and its connection was closed.",
                url: maskedURL, isRetryable: true)
        }

        var isPaused: Bool { watch.pausedUntil != nil }

        var stallError: DownloadError { watch.error(hasHead: framing != nil, url: maskedURL) }

        /// Resumes the transfer. Bytes may arrive before this returns.
        ///
        /// - Returns: false if that ended the transfer.
        func unpause() -> Bool {
            guard isPaused else { return true }
            watch.pausedUntil = nil
            touch()
            return curl_easy_pause(easy.pointer, CURLPAUSE_CONT) == CURLE_OK
        }

        private func touch() {
            watch.restart(clock.now)
            clock.record(deadline)
        }

        private func setAside() {
            watch.isAside = true
            clock.record(deadline)
        }

        // MARK: Callbacks

        private static let onRequest: fk_request_callback = { context, peer, _, port, localPort in
            guard let context, let peer else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            transfer.localPort = Int(localPort)
            return transfer.willSend(to: String(cString: peer), port: Int(port)) ? 0 : 1
        }

        private static let onSocket: @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<sockaddr>?) -> Int32 = {
            guard let context = $0, let address = $1.flatMap(NumericAddress.init) else { return 1 }
            return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().mayConnect(to: address) ? 1 : 0
        }

        private static let onHeader: fk_data_callback = { bytes, size, count, context in
            guard let context else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            return transfer.receive(line: UnsafeRawBufferPointer(start: bytes, count: size &* count))
                ? size &* count : 0
        }

        private static let onBody: fk_data_callback = { bytes, size, count, context in
            guard let context else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            return transfer.receive(UnsafeRawBufferPointer(start: bytes, count: size &* count))
        }

        private static let onProgress: fk_progress_callback = { context, _, _, _, _ in
            guard let context else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            transfer.end.closeNotify = fk_easy_saw_close_notify(transfer.easy.pointer)
            return 0
        }

        private static let onDebug: fk_debug_callback = { _, type, bytes, count, context in
            guard let bytes, let context, type != CURLINFO_DATA_IN else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
            if type == CURLINFO_HEADER_OUT, !CurlEasy.announcesRequests { transfer.recordSent() }
            if transfer.isTraced { TransportTrace.show(type, text, secrets: transfer.request.secretHeaders) }
            guard type == CURLINFO_TEXT, text.contains("GOAWAY") else { return 0 }
            if text.contains("GOAWAY, error=0,") { transfer.end.sawGoAway = true }
            transfer.sending.record(text)
            return 0
        }

        /// Records that a libcurl before 7.80 has sent the request.
        private func recordSent() {
            guard !isConnected else { return }
            localPort = easy.long(CURLINFO_LOCAL_PORT)
            _ = willSend(to: easy.text(CURLINFO_PRIMARY_IP) ?? "", port: easy.long(CURLINFO_PRIMARY_PORT))
        }

        /// Decides about the address of a socket, as `willSend` does about that of a connection.
        private func mayConnect(to address: NumericAddress) -> Bool {
            guard request.options.proxy?.isEmpty != false, URLOrigin(current.url)?.port == address.port else {
                return true
            }
            do {
                try rules.checkConnected(to: address.text, from: previousPeer)
                return true
            } catch {
                addressRefusal = error
                return false
            }
        }

        /// True for a connection that was used before, and on which the server has sent something that answers no request. It is of no use
        /// any more: the bytes would be taken for the answer.
        private var hasStrayInput: Bool {
            guard easy.long(CURLINFO_NUM_CONNECTS) == 0 else {
                connections.opened(localPort, easy.openedSocket(atLocalPort: localPort))
                return false
            }
            return connections.hasStrayInput(localPort, of: easy)
        }

        private func willSend(to address: String, port: Int) -> Bool {
            // libcurl itself would send it again over HTTP/2.
            if sending.wantsHTTP1, request.options.httpVersion == .automatic { return false }
            isConnected = true
            touch()
            connected = (address, port)
            if CurlEasy.announcesRequests, hasStrayInput {
                sending.isStale = true
                outcome = .failure(
                    DownloadError(
                        .protocolViolation, "The server sent more than its answer, and the connection was closed.",
                        url: maskedURL, isRetryable: true))
                return false
            }
            // Only the target of a redirect is checked here; `peer` reads the address of a first request.
            guard rules.count > 0 else { return true }
            do {
                if let peer { try rules.checkConnected(to: peer, from: previousPeer) }
                return true
            } catch {
                outcome = .failure(error)
                return false
            }
        }

        private func receive(line: UnsafeRawBufferPointer) -> Bool {
            guardian.beat()
            sending.isAnswered = true
            switch collector.add(line: line) {
            // An interim response does not prove that the final one will come, so the deadline stays.
            case .more, .interim: return true
            case .violation(let reason):
                outcome = .failure(
                    DownloadError(
                        .protocolViolation, "The server's response is not valid HTTP: \(reason).", url: maskedURL))
                return false
            case .head(let head):
                touch()
                end.meter.framing = head.framing
                end.isHTTP2 = head.version == "2"
                // Both are asked for only if the end of the body depends on them.
                if framing == .untilClose, current.isTLS { easy.set(CURLOPT_NOPROGRESS, false) }
                if end.isStream { easy.set(CURLOPT_VERBOSE, true) }
                return receive(head)
            }
        }

        private func receive(_ collected: HeaderCollector.Head) -> Bool {
            isSerial = collected.version.hasPrefix("1")
            connections.answered(localPort, isSerial: isSerial)
            if collected.status == 408, isSerial, isRepeatable, easy.long(CURLINFO_NUM_CONNECTS) == 0 {
                // The server has sent it before it read the request.
                sending.isStale = true
                outcome = .failure(
                    DownloadError(.timeout, "The server had given up the connection.", isRetryable: true))
                return false
            }
            var head = ResponseHead(
                status: collected.status, httpVersion: collected.version, fields: collected.fields, url: current.url,
                redirects: rules.count)
            do {
                if let hop = try rules.follow(head, fromAddress: peer, resolve: CurlEasy.resolve) {
                    next = current.following(hop, secrets: request.secretHeaders)
                    return readsRedirectBody(collected)
                }
            } catch {
                outcome = .failure(error)
                return false
            }
            head.carried = rules.carried
            // Login hosts send a code along, which nobody else may read.
            head.via = hasLoggedIn ? rules.via.map { String($0.prefix { $0 != "?" && $0 != "#" }) } : rules.via
            if !head.carriesDocument { setAside() }
            if let error = handler.refusal(of: head) {
                outcome = .failure(error)
                return false
            }
            guard !end.meter.endsHere || current.method == "HEAD" else {
                outcome = .success(())
                return false
            }
            return announceWait()
        }

        /// Tells the handler that all bytes that were read are delivered. The first call, after the head, announces the later
        /// ones.
        ///
        /// - Returns: false if the handler ends the transfer.
        func announceWait() -> Bool {
            do throws(DownloadError) {
                try handler.transportWillWait()
                return true
            } catch {
                outcome = .failure(error)
                return false
            }
        }

        /// True if the redirect's body is read, so that its connection can be reused.
        private func readsRedirectBody(_ head: HeaderCollector.Head) -> Bool {
            setAside()
            if current.method == "HEAD" { return true }
            switch head.framing {
            case .noBody, .delimited: return true
            case .length(let length): return length <= Self.maxRedirectBody
            case .countedLength, .untilClose: return false
            }
        }

        private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
            guardian.beat()
            watch.heard(bytes.count, clock.now)
            if next != nil {
                // A short body is read so that the connection can be reused. A long one is not worth it.
                redirectBody += bytes.count
                return redirectBody > Self.maxRedirectBody ? 0 : bytes.count
            }
            if bytes.isEmpty { return 0 }
            let own = UnsafeRawBufferPointer(rebasing: bytes.prefix(end.meter.share(of: bytes.count)))
            switch handler.transport(didReceive: own) {
            case .consumed:
                guardian.beat()
                end.meter.record(own.count)
                turn.delivered(id)
                guard end.meter.endsHere else { return bytes.count }
                outcome = .success(())
                return 0
            case .pause(let time):
                watch.pausedUntil = time.map { clock.after(seconds: $0.inSeconds) } ?? .max
                clock.record(deadline)
                return Int(CURL_WRITEFUNC_PAUSE)
            case .enough:
                end.meter.record(own.count)
                outcome = .success(())
                // At the exact end of the body the connection stays usable; anywhere else it is closed.
                return framing == .length(end.meter.delivered) ? bytes.count : 0
            case .fail(let error):
                outcome = .failure(error)
                return 0
            }
        }

        private static let maxRedirectBody = 64 << 10

        // MARK: The end

        /// The result, after libcurl has ended with `code`.
        ///
        /// - Parameter isShared: true if another running transfer uses the same connection.
        func result(
            _ code: CURLcode, isShared: @autoclosure () -> Bool = false
        ) -> Result<TransportSummary, DownloadError> {
            switch outcome {
            case .failure(let error): return .failure(error)
            case .success:
                return .success(
                    TransportSummary(
                        bodyBytes: end.meter.delivered,
                        lengthVerified: framing != .untilClose || current.method == "HEAD"))
            case nil: break
            }
            if code == CURLE_OK {
                let verdict = end.verdict(
                    isHEAD: current.method == "HEAD", keepsConnection: fk_easy_keeps_connection(easy.pointer) != 0,
                    isShared: isShared())
                switch verdict {
                case .complete(let lengthVerified):
                    return .success(TransportSummary(bodyBytes: end.meter.delivered, lengthVerified: lengthVerified))
                case .cut(let code, let text):
                    return .failure(DownloadError(code, text, url: maskedURL, isRetryable: true))
                }
            }
            if !isConnected, let addressRefusal { return .failure(addressRefusal) }
            return .failure(
                CurlFailure(
                    code: code, text: easy.errorText, url: maskedURL, isConnected: isConnected, hasHead: framing != nil,
                    connectStatus: easy.long(CURLINFO_HTTP_CONNECTCODE),
                    proxy: ProxyAddress.text(
                        option: request.options.proxy, url: current.url,
                        environment: ProcessInfo.processInfo.environment),
                    lacksDescriptor: !isConnected && easy.lacksDescriptor, family: request.options.addressFamily
                ).error)
        }

        /// The server whose connections this transfer may share with others at the same time; nil if it cannot share.
        var sharedServer: URLOrigin? {
            current.isTLS && request.options.httpVersion != .http1 ? URLOrigin(current.url) : nil
        }

        private var maskedURL: String { current.url.masked }
    }
#endif
