import FKMiddleware
import Foundation

/// Several connections for one file. `LaneSet` decides, and this performs.
extension Transfer {
    // MARK: More lanes

    /// Adds lanes while they are useful. A new lane claims a part of a range that another one fills.
    func grow() {
        armGrowth()
        guard !isEnding, !isParked, laneSet.growth.isSegmented, mayDivide else { return }
        entry.foldCounters()
        foldStream()
        let reading = reading
        while let lane = laneSet.more(entry.record.ranges, reading, isOpen: { isOpen($0) }) {
            guard acquirePermit(for: lane) else { return laneSet.remove(lane) }
            ask(with: lane)
        }
    }

    private func isOpen(_ source: String?) -> Bool {
        schedule.hosts.isOpen(source.map { $0.site } ?? entry.host, for: asker, now: clock.now)
    }

    /// True if ranges may be combined: under one strong validator (RFC 9110 section 15.3.7.2), or if a digest vouches for the
    /// bytes, with a known length.
    var mayDivide: Bool {
        guard entry.record.expected != nil, head?["Accept-Ranges"]?.lowercased() != "none",
            let validator = entry.record.validator, isVouched || validator.strong != nil
        else { return false }
        return (entry.record.source ?? entry.record.task.url) == url
    }

    /// Divides a range at a claim that the server has answered.
    ///
    /// - Returns: false if the place is no longer free.
    func settle(_ lane: Lane, _ receiver: RangeReceiver) -> Bool {
        guard let claim = lane.claim, case .append = receiver.decision else { return false }
        entry.foldCounters()
        let ranges = entry.record.ranges
        guard let place = laneSet.place(of: lane, in: ranges, limit: part.counters.count) else { return false }
        // The other lane must not be near: the piece that it is writing may exceed its new end.
        let other = laneSet.lane(filling: place.index)?.receiver
        other?.setLimit(claim)
        guard other == nil || part.counters.value(place.index) + LaneSet.largestPiece <= claim else {
            other?.setLimit(place.end)
            return false
        }
        // The live counters stay valid for the new record: the other lane's counter is below the claim, and the new one is
        // at the start of its range. Invalidating them would lose progress after a crash.
        let divided = laneSet.settle(lane, at: place, ranges)
        guard let index = lane.index else { return false }
        part.counters.store(index, claim)
        entry.record.divide(into: divided)
        receiver.assign(index: index)
        receiver.setLimit(place.end)
        return true
    }

    // MARK: Fewer lanes

    /// A lane has filled its range and takes the next one, or ends.
    func laneIsFree(_ lane: Lane) {
        foldStream()
        guard laneSet.next(for: lane, entry.record.ranges, reading, mayDivide: mayDivide) else {
            part.file.ring?.recordBlocked()
            return laneEnded(lane)
        }
        ask(with: lane)
    }

    /// A lane's request has failed. The attempt fails if it was the last lane; otherwise the others continue.
    func laneFailed(_ lane: Lane, _ error: DownloadError) {
        var error = lane.request.echo?.mask(error) ?? error
        if error.status == 401, error.code == .httpStatus, error.url == nil,
            entry.record.task.optionsBox?.value.hasAuthorization == true
        {
            error.message = RetryRules.refusingLogin(error.message)
        }
        if error.status == 407, ProxyAddress.hasLogin(proxy(of: lane.mirror ?? url)) {
            error.message = RetryRules.refusingLogin(error.message)
        }
        if keepsUnprovenEnd(lane, error) { return laneEnded(lane) }
        let others = lanes.count - 1
        if let offset = lane.repairs, repairFailed(lane, at: offset, error) { return laneEnded(lane) }
        if others == 0, asksAnotherWay(lane, error) { return }
        if readsThrough(lane, error) { return laneEnded(lane) }
        if others == 0, lane.request.prefersHTTP1, head == nil, error.maySpeakOnlyHTTP2 {
            schedule.hosts.recordShared(host(of: lane))
            return ask(with: lane)
        }
        guard others > 0 else {
            var error = error
            error.url = error.url ?? lane.mirror.map(\.masked)
            return end(.fail(laneSet.failure(of: lane, error)), without: lane)
        }
        laneSet.recordFailure(of: lane, error)
        schedule.recordPause(error, from: lane.mirror ?? url)
        if let url = lane.mirror {
            refuseMirror(url, error.message)
        } else {
            laneSet.cap(at: others)
            let rest = others == 1 ? "1 connection" : "\(others) connections"
            run.appendHistory(by: "connection", "\(error.message) The file continues with \(rest).")
        }
        laneEnded(lane)
    }

    /// The proxy for that URL; nil without one.
    private func proxy(of url: String) -> String? {
        let options = entry.record.task.options.transportOptions(over: schedule.configure.transport)
        return ProxyAddress.text(
            option: options.proxy, url: url, environment: ProcessInfo.processInfo.environment)
    }

    /// Requests the range of the only lane in another way, if its server has refused the range.
    ///
    /// - Returns: false if the failure is another one, or counts.
    private func asksAnotherWay(_ lane: Lane, _ error: DownloadError) -> Bool {
        guard error.code == .httpStatus, lane.claim == nil, lane.mirror == nil, entry.received > 0 else { return false }
        let previous = run.attempt.previousError
        let hasProgress = entry.received > run.attempt.receivedBefore
        guard
            let again = ResumeRules.again(
                afterRefusal: error.status, of: lane.request.ask,
                isRepeated: !hasProgress && previous?.code == .httpStatus && previous?.status == error.status,
                isLast: run.isLastAttempt)
        else { return false }
        guard laneSet.mayAsk(again, with: lane) else { return false }
        let status = error.status.map(String.init) ?? "an error"
        let next = again == .plainRange ? "requested again without If-Range" : "the whole file is requested"
        run.appendHistory(by: "range", "the server answered \(status) to the request for a range: \(next)")
        lane.nextAsk = ResumeRules.ask(again: again, after: lane.request.ask)
        ask(with: lane)
        return true
    }

    /// A lane has ended. What follows depends on the others.
    func laneEnded(_ lane: Lane) {
        let next = laneSet.ended(lane, entry.record.ranges, isStopped: run.stop != nil)
        releasePermit(of: lane)
        switch next {
        case .wait: break
        case .more:
            grow()
            startRepairs()
        // Pending claims have no work left.
        case .surplus: lanes.forEach { unwant($0) }
        case .last where run.stop != nil: run.stopped()
        case .last(.fail(let error)): run.fail(error)
        case .last(.restart(let ask)): self.ask(with: laneSet.restart(ask))
        case .last(nil): fetchNext()
        }
    }

    /// Ends all lanes; `next` follows.
    ///
    /// - Parameter lane: the lane that has ended already.
    func end(_ next: LaneSet.AfterLanes, without lane: Lane) {
        laneSet.end(next)
        lanes.forEach { if $0 !== lane { $0.cancel() } }
        laneEnded(lane)
    }

    func unwant(_ lane: Lane) {
        lane.isUnwanted = true
        lane.cancel()
    }

    // MARK: Measuring

    private func armGrowth() {
        let hasTrials = laneSet.growth.limit > 1 && laneSet.mirrors.isUndecided
        guard laneSet.growth.isGrowing || hasTrials, !schedule.alarms.hasGrowth else { return }
        guard mayDivide, isWorthLanes else { return }
        schedule.alarms.setGrowth(clock.now + Int64(laneSet.growth.interval * 1e9))
        schedule.setDeadline()
    }

    var isWorthLanes: Bool {
        rest >= 2 * SegmentPlanner.minPiece
    }

    /// The missing bytes; 0 while the length is unknown, because such a file has one connection.
    private var rest: Int64 { (entry.record.expected ?? 0) - entry.received }

    /// Measures the throughput of the connections, and adds more if that helps.
    func measureGrowth() {
        guard !isEnding else { return }
        tryMirrors()
        guard laneSet.growth.isGrowing else { return armGrowth() }
        laneSet.measure(received: entry.received, rest: rest, now: clock.now)
        grow()
    }

    // MARK: Watching

    /// Replaces connections that deliver nothing, if several may be used. To be called once a second.
    func watchLanes() {
        guard laneSet.growth.isSegmented, !isEnding, !limits.isLimited else { return }
        for lane in lanes {
            guard let index = lane.index, lane.receiver?.isAnswered == true, lane.receiver?.isHeld != true else {
                continue
            }
            guard lane.watch.isStuck(at: part.counters.value(index)) else { continue }
            run.appendHistory(by: "connection", "nothing came for \(LaneWatch.patience) s: replaced by another one")
            if let url = lane.mirror { refuseMirror(url, "nothing came any more") }
            unwant(lane)
        }
    }

    // MARK: Yielding

    /// The number of lanes to a host that are ending.
    func endingLanes(of host: String) -> Int {
        lanes.count { $0.permitHost == host && ($0.isUnwanted || isEnding) }
    }

    func laneToYield(of host: String) -> Lane? { isEnding ? nil : laneSet.laneToYield(of: host) }

    /// Ends a lane and lowers the number of connections by one.
    func yield(_ lane: Lane) {
        laneSet.cap(at: laneSet.wanted - 1)
        unwant(lane)
    }

    /// Sets the task's new number of connections.
    func setConnections(_ limit: ConnectionLimit) {
        laneSet.setLimit(fetcher.connections(limit))
        grow()
    }
}

extension DownloadError {
    /// True for the answer of a server that only supports HTTP/2 to a request over HTTP/1.1: it ends the handshake with an
    /// alert (RFC 7301 section 3.2), or answers with frames.
    fileprivate var maySpeakOnlyHTTP2: Bool {
        code == .protocolViolation || code == .tls && underlying?.contains("application protocol") == true
    }
}
