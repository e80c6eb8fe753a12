import FKMiddleware

/// How the bytes of a file come. A lane chooses it with each of its requests.
protocol Fetcher {
    /// True if a file has several connections where the limits allow it, and readers while it arrives.
    var isDivided: Bool { get }

    /// The part of a range that one request asks for.
    func cap(_ ask: RangeAsk, total: Int64?) -> RangeAsk

    /// Performs the request of a lane.
    func start(
        _ request: TransportRequest, with lane: Lane, of transfer: Transfer, _ echo: EchoMasking
    ) -> any TransportOperation

    /// The response of an operation was handled: the record in memory has its bytes.
    func settle(_ operation: any TransportOperation, _ receiver: RangeReceiver, of transfer: Transfer)
}

extension Fetcher {
    /// The number of connections of a file, out of those that its limits allow.
    func connections(_ limit: ConnectionLimit) -> ConnectionLimit { isDivided ? limit : .fixed(1) }
}

/// The ways in which the bytes of an engine's files come.
struct Fetchers {
    /// The usual transport.
    let usual: TransportFetcher
    /// What the system performs while the application may be suspended; nil without a session.
    private let delivered: DeliveryFetcher?

    /// - Parameter deliveries: the requests that the system performs; nil, the default, for none.
    init(_ transport: any Transport, _ deliveries: Deliveries? = nil) {
        let usual = TransportFetcher(transport: transport)
        self.usual = usual
        delivered = deliveries.map { DeliveryFetcher(deliveries: $0, usual: usual) }
    }

    /// The way for a task now: its type changes, and delivered pieces may be left of a time when it was another one.
    func fetcher(for entry: TaskEntry) -> any Fetcher {
        if let delivered, delivered.deliveries.isInUse(by: entry) { delivered } else { usual }
    }

    /// Set while the system has the request of a task.
    func systemWait(of task: TaskID, _ networks: Networks) -> Waiting? { delivered?.wait(of: task, networks) }
}

/// Requests that the transport performs at once.
struct TransportFetcher: Fetcher {
    let transport: any Transport
    var isDivided: Bool { true }

    func cap(_ ask: RangeAsk, total: Int64?) -> RangeAsk { ask }

    func start(
        _ request: TransportRequest, with lane: Lane, of transfer: Transfer, _ echo: EchoMasking
    ) -> any TransportOperation {
        transport.start(request, handler: transfer.handler(for: lane, transfer.limits(of: lane), echo))
    }

    func settle(_ operation: any TransportOperation, _ receiver: RangeReceiver, of transfer: Transfer) {}
}

/// Requests that the system performs while the application may be suspended. A file has one connection and comes in pieces.
struct DeliveryFetcher: Fetcher {
    let deliveries: Deliveries
    let usual: TransportFetcher
    var isDivided: Bool { false }

    func cap(_ ask: RangeAsk, total: Int64?) -> RangeAsk {
        DeliveryRules.cap(ask, total: total, size: deliveries.session.pieceSize)
    }

    func start(
        _ request: TransportRequest, with lane: Lane, of transfer: Transfer, _ echo: EchoMasking
    ) -> any TransportOperation {
        if let ask = accepted(request, lane, transfer) {
            // The bytes have arrived already: no rate limit applies.
            deliveries.start(request, ask, handler: transfer.handler(for: lane, LimiterSet(), echo))
        } else {
            usual.start(request, with: lane, of: transfer, echo)
        }
    }

    /// What the system is asked for; nil if it cannot, or does not any more.
    private func accepted(_ request: TransportRequest, _ lane: Lane, _ transfer: Transfer) -> DeliveryAsk? {
        let entry = transfer.entry
        guard lane.request.ask.end != nil || !lane.request.ask.usesRange else { return nil }
        let ask = ask(of: lane, transfer)
        guard deliveries.serves(entry.record.task.type) || deliveries.hasAnswer(to: ask) else { return nil }
        guard let refusal = deliveries.refusal(of: request) else { return ask }
        let what = "the system cannot perform the requests, so they end with the application: \(refusal.message)"
        if !entry.record.history.contains(where: { $0.what == what }) {
            transfer.run.appendHistory(by: "background", what)
        }
        return nil
    }

    private func ask(of lane: Lane, _ transfer: Transfer) -> DeliveryAsk {
        let (entry, ask, source) = (transfer.entry, lane.request.ask, lane.mirror ?? transfer.url)
        let fields =
            entry.record.task.hasOptions
            ? entry.record.headers(for: source, isOffered: transfer.laneSet.mirrors.isOffered(source)) : []
        let key = PieceKey(
            task: entry.id, generation: entry.record.number,
            form: PieceKey.fingerprint([source] + fields.flatMap { [$0.name, $0.value] }),
            condition: ask.ifRange.map { PieceKey.fingerprint([$0]) } ?? 0,
            start: ask.usesRange ? ask.start - ask.overlap : 0, end: ask.usesRange ? ask.end : nil)
        let isPlain = lane.repairs == nil && !entry.record.isRepair
        let size = deliveries.session.pieceSize
        return DeliveryAsk(
            key: key, ifRange: ask.ifRange,
            ahead: isPlain
                ? DeliveryRules.ahead(of: key, ifRange: ask.ifRange, total: entry.record.expected, size: size) : [])
    }

    /// Its file is removed once the record on disk has its bytes.
    func settle(_ operation: any TransportOperation, _ receiver: RangeReceiver, of transfer: Transfer) {
        guard let delivery = operation as? DeliveryOperation, delivery.played != nil, let outcome = receiver.outcome
        else { return }
        var isUsed = DeliveryRules.isUsed(outcome, localError: transfer.localError)
        if isUsed, case .ended = outcome {
            do throws(DownloadError) { try transfer.book.save(transfer.entry) } catch { isUsed = false }
        }
        deliveries.settle(delivery, isUsed: isUsed)
        // The last piece of a task that the system does not serve any more.
        if !deliveries.isInUse(by: transfer.entry), transfer.lanes.count == 1 {
            transfer.laneSet.setLimit(transfer.connectionLimit)
        }
    }

    /// Set while the system has the request of a task.
    func wait(of task: TaskID, _ networks: Networks) -> Waiting? {
        guard deliveries.isWaiting(task) else { return nil }
        return Waiting(
            .background,
            policy: SystemConditions.current.delay(isDiscretionary: deliveries.session.isDiscretionary, networks))
    }
}

extension Deliveries {
    /// True if requests of a task are performed here, or if a piece of it is there from a time when they were.
    func isInUse(by entry: TaskEntry) -> Bool { serves(entry.record.task.type) || holds(entry.id) }
}
