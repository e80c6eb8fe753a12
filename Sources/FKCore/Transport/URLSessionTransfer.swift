import Dispatch
import FKMiddleware
import Foundation

/// One transfer with all its redirects.
///
/// ```text
/// launch -> head -> body -> complete -> end
///    ^-------- redirect --------'
/// ```
///
/// One thread at a time touches its state, in this order: the hub's queue in `launch`, the line's callbacks until
/// `complete`, and the hub's queue again for a redirect.
final class URLSessionTransfer: @unchecked Sendable {
    // Sendable because of the order above. A lock protects `flow`, which any thread may touch.
    private let request: TransportRequest
    private let handler: any TransportHandler
    private let hub: URLSessionHub
    private let flow = Locked(URLSessionFlow())

    private var route: RequestRoute
    private var head: ResponseHead?
    private var meter = BodyMeter()
    private var outcome: Result<Void, DownloadError>?
    private var interims = 0
    private var blindLooks = 0
    private var wasChallenged = false
    private var pending = PendingBody()
    /// The bytes read since other sessions had their turn.
    private var unshared = 0

    init(_ request: TransportRequest, handler: any TransportHandler, hub: URLSessionHub) {
        self.request = request
        route = RequestRoute(request)
        self.handler = handler
        self.hub = hub
    }

    // MARK: Any thread

    func cancel() {
        flow.withLock { $0.cancel() }
        // Runs after `launch`, so that there is a task to end.
        hub.queue.async { self.end(.failure(Self.cancelled)) }
    }

    func resume() {
        line?.post { self.drain() }
    }

    /// True if the handler has refused the last piece. Nothing more may be read.
    private var isPaused: Bool { flow.withLock { $0.isPaused } }

    private var line: URLSessionLine? { flow.withLock { $0.line } }

    private static let cancelled = DownloadError(.cancelled, "The transfer was cancelled.")

    // MARK: The hub's queue

    /// Ends a transfer that was never accepted.
    func refuse() {
        CallbackThreads.run { handler.transportDidFinish(.failure(Self.cancelled)) }
    }

    func launch() {
        do throws(DownloadError) {
            send(try route.first())
        } catch {
            finish(.failure(error))
        }
    }

    private func send(_ next: OutgoingRequest) {
        route.send(next)
        blindLooks = 0
        if flow.withLock({ $0.isCancelled }) { return finish(.failure(Self.cancelled)) }
        if let refusal = URLSessionOptions.refusal(of: request.options, url: next.url) {
            return finish(.failure(refusal))
        }
        guard let urlRequest = next.urlRequest else {
            return finish(.failure(DownloadError(.invalidURL, "Foundation cannot read the URL.", url: maskedURL)))
        }
        guard let line = hub.acquire(for: next.url) else {
            return finish(.failure(URLSessionOptions.noBackPressure))
        }
        flow.withLock { $0.begin(on: line) }
        line.begin(urlRequest, for: self)
    }

    private func end(_ result: Result<Void, DownloadError>) {
        guard let line else { return }
        line.post { self.endNow(result) }
    }

    // MARK: The hub's clock

    /// Interrupts a server that sends without a break.
    func giveTurn() { line?.giveTurn() }

    /// Ends a transfer whose server is silent for too long. A redirect or a 401 whose body is long, or takes longer
    /// than half a second, is handled without its body: on Linux the whole body would be kept in memory before the
    /// response is reported.
    ///
    /// - Parameter seconds: the time since the last check.
    func checkSilence(_ seconds: Double) {
        guard let line, !isPaused else { return }
        let length = line.silentLength
        let allowed = request.options.allowedSilence
        switch flow.withLock({ $0.check(after: seconds, silentLength: length, allowed: allowed) }) {
        case .fine: break
        case .silent(let what, let limit):
            let url = request.form.url.masked
            end(.failure(Self.silence(what, limit, url)))
        case .unreported(let number): line.post { self.judgeSilentResponse(of: number, line) }
        }
    }

    private static func silence(_ what: String, _ seconds: Double, _ url: String) -> DownloadError {
        SilenceWatch.error(what, seconds, url: url)
    }

    /// The number of checks for a response whose length Foundation has reported.
    private static let maxBlindLooks = 4

    // MARK: Callbacks

    func receive(_ response: HTTPURLResponse) {
        guard self.head == nil, route.next == nil, !isOver else { return }
        guard response.statusCode >= 200 else {
            interims += 1
            if interims > Self.maxInterims { endNow(.failure(invalid("it has too many interim responses"))) }
            return
        }
        var head = ResponseHead(response, url: route.url, redirects: route.redirects)
        (head.carried, head.via) = (route.carried, route.via)
        do throws(DownloadError) {
            if try !route.follow(head) { try accept(head) }
        } catch {
            endNow(.failure(error))
        }
    }

    private static let maxInterims = 100

    /// Handles a response that Foundation has not reported.
    ///
    /// - Parameter number: the silent request. The next one may have started meanwhile on the same line.
    private func judgeSilentResponse(of number: Int, _ line: URLSessionLine) {
        guard flow.withLock({ $0.requests == number }), head == nil, route.next == nil, !isOver else { return }
        guard let response = line.silentResponse else {
            // Foundation may just have ended the transfer, and says so in a later turn of the queue.
            blindLooks += 1
            if blindLooks <= Self.maxBlindLooks { return }
            return endNow(
                .failure(
                    DownloadError(
                        .redirect, "The server redirects with a body that is too long for URLSession.", url: maskedURL,
                        isRetryable: true)))
        }
        // An interim response: the final head is still to come.
        guard response.statusCode >= 200 else { return }
        receive(response)
        if route.next != nil {
            line.cancelTask()
        } else if !isOver {
            endNow(.failure(Self.silence("sent hardly anything", URLSessionFlow.redirectSeconds, maskedURL)))
        }
    }

    private func accept(_ collected: ResponseHead) throws(DownloadError) {
        var head = collected
        if let violation = HeadLimits.violation(of: head, request.options) { throw invalid(violation) }
        switch BodyFraming.determine(status: head.status, version: head.httpVersion, fields: &head.fields) {
        case .failure(let violation): throw invalid(violation.reason)
        case .success(let framing): meter.framing = framing
        }
        self.head = head
        let isAside = !head.carriesDocument
        flow.withLock { $0.answered(isAside: isAside) }
        if let error = CallbackThreads.run({ handler.refusal(of: head) }) { throw error }
        // Foundation has decoded the body, so the bytes to come are not those that the head describes.
        if let coding = head.contentCoding, head.carriesFile, !route.isHead, line?.keepsCoding != true {
            throw DownloadError(
                .encodedBody,
                "The server sent the body as \(coding), which was not requested, and URLSession decodes it.",
                url: maskedURL)
        }
        if meter.endsHere, !route.isHead { endNow(.success(())) }
    }

    private func invalid(_ reason: String) -> DownloadError {
        DownloadError(.protocolViolation, "The server's response is not valid HTTP: \(reason).", url: maskedURL)
    }

    func receive(_ data: Data) {
        guard route.next == nil, !isOver else { return }
        guard head != nil else {
            return endNow(.failure(invalid("its body comes before its head")))
        }
        if head?.carriesDocument == true {
            let enough = request.options.silenceBreakingBytes
            flow.withLock { $0.heard(data.count, enough: enough) }
        }
        unshared += data.count
        if unshared >= Self.turnBytes {
            unshared = 0
            line?.giveTurn()
        }
        if pending.isEmpty, offer(data) { return }
        pending.append(data)
    }

    /// The bytes to read in one turn.
    private static let turnBytes = 256 << 10

    /// Offers bytes to the handler.
    ///
    /// - Returns: false if the handler paused.
    private func offer(_ data: Data) -> Bool {
        let share = meter.share(of: data.count)
        let verdict = data.withUnsafeBytes { bytes in
            CallbackThreads.run { handler.transport(didReceive: UnsafeRawBufferPointer(rebasing: bytes.prefix(share))) }
        }
        switch verdict {
        case .consumed:
            meter.record(share)
            if meter.endsHere { endNow(.success(())) }
        case .pause(let time):
            pause(time?.inSeconds)
            return false
        case .enough:
            meter.record(share)
            outcome = .success(())
            // At the exact end of the body the connection stays usable; anywhere else it is closed.
            if meter.framing != .length(meter.delivered) { line?.cancelTask() }
        case .fail(let error): endNow(.failure(error))
        }
        return true
    }

    private func pause(_ seconds: Double?) {
        let number = pending.pause()
        flow.withLock { $0.pause() }
        line?.hold(true)
        guard let seconds else { return }
        hub.clock.asyncAfter(deadline: .now() + max(seconds, 0)) { [weak self] in self?.resume(from: number) }
    }

    /// The end of a timed pause, unless another pause has started since.
    private func resume(from number: Int) {
        guard isPaused else { return }
        line?.post { if self.pending.pauses == number { self.drain() } }
    }

    /// Offers the waiting bytes. The line is held again if the handler pauses again.
    private func drain() {
        guard isPaused else { return }
        flow.withLock { $0.resume() }
        line?.hold(false)
        // A piece is removed before the handler sees it: if the handler ends the transfer, all waiting bytes are dropped.
        while !isOver, let piece = pending.popFirst() {
            guard offer(piece) else { return pending.putBack(piece) }
        }
        pending.drop()
        if let (response, error) = pending.drainCompletion() { complete(response, error) }
    }

    func endsWithChallenge() { wasChallenged = true }

    /// True if only the end is left for the handler.
    private var isOver: Bool { outcome != nil || flow.withLock { $0.isCancelled } }

    private func endNow(_ result: Result<Void, DownloadError>) {
        if outcome == nil { outcome = result }
        pending.drop()
        flow.withLock { $0.endPause() }
        if let (response, error) = pending.drainCompletion() {
            complete(response, error)
        } else if route.next == nil {
            line?.cancelTask()
        }
    }

    func complete(_ response: HTTPURLResponse?, _ error: (any Error)?) {
        if !pending.isEmpty, !isOver { return pending.keep((response, error)) }
        // On Linux the head of a redirect without a target is available only now, and its body never.
        if error == nil, head == nil, route.next == nil, let response { receive(response) }
        let line = flow.withLock { $0.releaseLine() }
        line?.release()
        if let line { hub.give(line) }
        if let next = route.next, outcome == nil, !isOver {
            hub.queue.async { self.send(next) }
        } else {
            finish(result(error))
        }
    }

    private func result(_ error: (any Error)?) -> Result<TransportSummary, DownloadError> {
        switch outcome {
        case .failure(let error): return .failure(error)
        case .success: return .success(summary)
        case nil: break
        }
        if flow.withLock({ $0.isCancelled }) { return .failure(Self.cancelled) }
        if let error, !wasChallenged {
            return .failure(URLSessionFailure(error as NSError, url: maskedURL, hasHead: head != nil).error)
        }
        guard head != nil else {
            return .failure(
                DownloadError(
                    .connectionLost, "The server closed the connection in the middle of the response's head.",
                    url: maskedURL, isRetryable: true))
        }
        if meter.isCut, !route.isHead {
            return .failure(
                DownloadError(
                    .incompleteBody, "The body ended too early.", url: maskedURL, isRetryable: true))
        }
        return .success(summary)
    }

    private func finish(_ result: Result<TransportSummary, DownloadError>) {
        CallbackThreads.run {
            handler.transportDidFinish(result)
            hub.ended(self)
        }
    }

    private var summary: TransportSummary {
        TransportSummary(
            bodyBytes: meter.delivered, lengthVerified: meter.framing != .untilClose || route.isHead)
    }

    private var maskedURL: String { route.maskedURL }
}
