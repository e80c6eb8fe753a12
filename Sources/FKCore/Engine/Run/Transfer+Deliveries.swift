import FKMiddleware

/// Requests that the system performs while the application may be suspended.
extension Transfer {
    /// True if its requests may be answered by delivered pieces. Such a file has one connection.
    var usesDeliveries: Bool { deliveries?.isInUse(by: entry) ?? false }

    /// Performs a request by `deliveries`; nil if the usual transport is to perform it.
    func deliver(_ request: TransportRequest, with lane: Lane, _ echo: EchoMasking) -> (any TransportOperation)? {
        guard usesDeliveries, lane.trial == nil, let deliveries, lane.lastAsk.end != nil || !lane.lastAsk.usesRange
        else { return nil }
        let ask = deliveryAsk(of: lane, size: deliveries.session.pieceSize)
        guard deliveries.serves(entry.record.task.type) || deliveries.hasAnswer(to: ask) else { return nil }
        if let refusal = deliveries.refusal(of: request) {
            let what = "the system cannot perform the requests, so they end with the application: \(refusal.message)"
            if !entry.record.history.contains(where: { $0.what == what }) { run.appendHistory(by: "background", what) }
            return nil
        }
        // The bytes have arrived already: no rate limit applies.
        return deliveries.start(request, ask, handler: handler(for: lane, LimiterSet(), echo))
    }

    /// Set while the system has its request.
    var systemWait: Waiting? {
        guard let deliveries, deliveries.isWaiting(entry.id) else { return nil }
        let delay = SystemConditions.current.delay(
            isDiscretionary: deliveries.session.isDiscretionary, run.configure.networks)
        return Waiting(.background, policy: delay)
    }

    private func deliveryAsk(of lane: Lane, size: Int64) -> DeliveryAsk {
        let (ask, source) = (lane.lastAsk, lane.mirror ?? url)
        let fields =
            entry.record.task.hasOptions
            ? entry.record.headers(for: source, isOffered: laneSet.mirrors.isOffered(source)) : []
        let key = PieceKey(
            task: entry.id, generation: entry.record.number,
            form: PieceKey.fingerprint([source] + fields.flatMap { [$0.name, $0.value] }),
            condition: ask.ifRange.map { PieceKey.fingerprint([$0]) } ?? 0,
            start: ask.usesRange ? ask.start - ask.overlap : 0, end: ask.usesRange ? ask.end : nil)
        let isPlain = lane.repairs == nil && !entry.record.isRepair
        return DeliveryAsk(
            key: key, ifRange: ask.ifRange,
            ahead: isPlain
                ? DeliveryRules.ahead(of: key, ifRange: ask.ifRange, total: entry.record.expected, size: size) : [])
    }

    /// A delivered piece was handled. Its file is removed once the record on disk has its bytes.
    func settle(_ delivery: DeliveryOperation, _ receiver: RangeReceiver) {
        guard let deliveries, delivery.played != nil, let outcome = receiver.outcome else { return }
        var isUsed = DeliveryRules.isUsed(outcome, localError: localError)
        if isUsed, case .ended = outcome {
            do throws(DownloadError) { try book.save(entry) } catch { isUsed = false }
        }
        deliveries.settle(delivery, isUsed: isUsed)
        if !usesDeliveries, lanes.count == 1 { laneSet.setLimit(connectionLimit) }
    }
}

extension Deliveries {
    /// True if requests of a task are performed here, or if a piece of it is there from a time when they were.
    func isInUse(by entry: TaskEntry) -> Bool { serves(entry.record.task.type) || holds(entry.id) }
}
