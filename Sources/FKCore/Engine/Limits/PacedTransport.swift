import FKMiddleware

/// A transport for requests outside an engine's queue: for refreshes, lists, records, signatures and digests. These requests
/// share the limits of hosts with the engine and with all other processes of the work path.
package final class PacedTransport: Transport, HostAwareTransport {
    private let transport: any Transport
    private let budget: Locked<HostBudget>
    private let asker: HostAsker
    private let clock = SystemClock()
    private let onWait: (@Sendable (DownloadError, Double) -> Void)?
    /// Where the sessions of login hosts are kept.
    package let sessionPath: String

    /// The time between two tries for a connection that this process itself has in use, in nanoseconds.
    private static let pause: Int64 = 20_000_000

    /// Creates a transport. The policies are those of now.
    ///
    /// - Parameters:
    ///   - own: the limits of the command; nil for none.
    ///   - onWait: called before a document is asked for again, with the seconds until then; nil, the default, for nothing.
    package init(
        _ transport: any Transport, _ configure: Configure, _ own: OwnLimits?,
        onWait: (@Sendable (DownloadError, Double) -> Void)? = nil
    ) {
        self.transport = transport
        self.onWait = onWait
        let workPath = WorkPath(configure.workPath)
        sessionPath = configure.transport.sessionPath ?? workPath.ofShards.sessionsPath
        var budget = HostBudget(limit: 256, turns: HostTurns(workPath) { [clock] in clock.now })
        budget.policies = HostPolicies(configure.hosts + ((try? HostPolicy.all(in: workPath)) ?? []))
        self.budget = Locked(budget)
        asker = own.map { HostAsker($0, group: 1) } ?? .anyone
    }

    /// The same with a new transport of the usual kind.
    ///
    /// - Throws: the error of the transport.
    package convenience init(
        _ configure: Configure, _ own: OwnLimits? = nil, onWait: (@Sendable (DownloadError, Double) -> Void)? = nil
    ) throws(DownloadError) {
        self.init(try TransportKind.automatic.makeTransport(), configure, own, onWait: onWait)
    }

    /// Starts a transfer once its host may be asked.
    package func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        guard budget.withLock({ !$0.isFree(asker) }) || asker != .anyone else {
            return transport.start(request, handler: handler)
        }
        var request = request
        let site = (request.urlRequest.url?.absoluteString ?? "").normalizedSite
        if let contact = asker.contact ?? budget.withLock({ $0.rules(for: site, asker) }).contact {
            request.urlRequest.add(
                contact: contact, to: request.options.userAgent ?? TransportOptions.defaultUserAgent)
        }
        let operation = PacedOperation(handler) { [budget, asker, clock] head in
            guard head.redirects > 0 else { return }
            budget.withLock { $0.count(head.url.normalizedSite, for: asker, now: clock.now) }
        }
        Task { [request] in
            let permit = await connection(to: site)
            await turn(of: site)
            operation.begin(request, over: transport) { [budget] in budget.withLock { permit.release(to: &$0) } }
        }
        return operation
    }

    /// Shuts the transport down that transfers.
    package func shutdown() { transport.shutdown() }

    /// The address of the host's mirror, or the URL itself.
    package func mirrored(_ url: String) -> String { budget.withLock { $0.policies.mirrored(url) } }

    /// A document is asked for again.
    package func waits(after error: DownloadError, seconds: Double) { onWait?(error, seconds) }

    /// True if the policy of the host retries the status.
    package func retries(_ status: Int, of url: String) -> Bool {
        budget.withLock { $0.policies.retrying(status, of: url.normalizedSite) != nil }
    }

    /// The login host of the policy of the URL's host.
    package func loginHost(of url: String) -> String? {
        budget.withLock { $0.policies.rules(for: url.normalizedSite, shards: 1).loginHost?.value }
    }

    private func connection(to site: String) async -> PermitBox {
        while true {
            let (permit, until) = budget.withLock { budget -> (PermitBox?, Int64) in
                switch budget.admit(site, for: asker, now: clock.now) {
                case nil: (PermitBox(budget.acquire(site, for: asker, now: clock.now)), 0)
                case .paced(let turn): (nil, turn.until)
                case .paused, .full: (nil, clock.now + Self.pause)
                }
            }
            if let permit { return permit }
            await wait(until: until)
        }
    }

    private func turn(of site: String) async {
        while let turn = budget.withLock({ $0.acquireTurn(site, for: asker, now: clock.now) }) {
            await wait(until: turn.until)
        }
    }

    private func wait(until time: Int64) async {
        try? await Task.sleep(for: .nanoseconds(max(0, time - clock.now)))
    }
}

/// A permit that a closure can hold. Only used under the lock of its budget.
private final class PermitBox: @unchecked Sendable {
    private var permit: HostPermit?

    init(_ permit: consuming HostPermit?) { self.permit = consume permit }

    func release(to budget: inout HostBudget) {
        guard let permit = permit.take() else { return }
        budget.release(permit)
    }
}

/// A transfer that may not have begun yet.
private final class PacedOperation: TransportOperation, TransportHandler {
    private enum State {
        case waiting
        case running(any TransportOperation)
        case ended
    }

    private let handler: any TransportHandler
    private let onHead: @Sendable (ResponseHead) -> Void
    private let state = Locked(State.waiting)
    private let onEnd = Locked<(@Sendable () -> Void)?>(nil)

    init(_ handler: any TransportHandler, onHead: @escaping @Sendable (ResponseHead) -> Void) {
        self.handler = handler
        self.onHead = onHead
    }

    /// Sends the request, unless it was cancelled.
    func begin(
        _ request: TransportRequest, over transport: any Transport, onEnd: @escaping @Sendable () -> Void
    ) {
        self.onEnd.withLock { $0 = onEnd }
        let isCancelled = state.withLock { state in
            guard case .waiting = state else { return true }
            state = .running(transport.start(request, handler: self))
            return false
        }
        if isCancelled { onEnd() }
    }

    func cancel() {
        let old = state.withLock { state in
            defer { if case .waiting = state { state = .ended } }
            return state
        }
        switch old {
        case .waiting: handler.transportDidFinish(.failure(DownloadError(.cancelled, "The request was cancelled.")))
        case .running(let operation): operation.cancel()
        case .ended: break
        }
    }

    func resume() {
        if case .running(let operation) = state.withLock(\.self) { operation.resume() }
    }

    func transport(didReceive head: ResponseHead) throws(DownloadError) {
        onHead(head)
        try handler.transport(didReceive: head)
    }

    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict { handler.transport(didReceive: bytes) }

    func transportWillWait() throws(DownloadError) { try handler.transportWillWait() }

    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        state.withLock { $0 = .ended }
        onEnd.withLock(\.self)?()
        handler.transportDidFinish(result)
    }
}
