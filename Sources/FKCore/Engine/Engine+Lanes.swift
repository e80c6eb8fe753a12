import FKMiddleware
import Foundation

/// Several connections for one file: who fills what, when there are more, and what follows when one ends.
///
/// `SegmentPlanner` says where to divide, `LaneGrowth` how many connections there may be, `LaneWatch` which one is stuck.
extension Engine {
    // MARK: More lanes

    /// Adds lanes while the file is worth more of them. They claim places in what the others fill.
    func grow(_ entry: TaskEntry, _ attempt: Attempt) {
        armGrowth(entry, attempt)
        guard !attempt.isEnding, attempt.growth.isSegmented, mayDivide(entry, attempt) else { return }
        foldCounters(entry, attempt)
        while attempt.lanes.count < attempt.growth.limit, let source = nextSource(entry, attempt) {
            let lane = attempt.addLane()
            lane.mirror = source
            guard takeWork(lane, entry, attempt), acquirePermit(for: lane, entry) else { return attempt.remove(lane) }
            ask(with: lane, entry, attempt)
        }
    }

    private func nextSource(_ entry: TaskEntry, _ attempt: Attempt) -> String?? {
        attempt.mirrors.next(
            limit: attempt.growth.limit, load: { url in attempt.lanes.count { $0.mirror == url } },
            isOpen: { hosts.isOpen($0.map { HostName.site($0) } ?? entry.host, now: clock.now) })
    }

    /// Ranges are combined only under one strong validator (RFC 9110 section 15.3.7.2), and only of a known length.
    func mayDivide(_ entry: TaskEntry, _ attempt: Attempt) -> Bool {
        guard entry.record.expected != nil, attempt.head?["Accept-Ranges"]?.lowercased() != "none",
            let validator = entry.record.validator, ResumeRules.strongValidator(validator) != nil
        else { return false }
        return (entry.record.source ?? entry.record.task.url) == attempt.url
    }

    /// Gives a lane the range that nobody fills, or a claim to half of the largest one; false when there is no work.
    private func takeWork(_ lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) -> Bool {
        lane.index = nil
        lane.claim = nil
        lane.asksAgain = 0
        var ranges = entry.record.ranges
        var running = Set(attempt.lanes.compactMap(\.index))
        for claim in attempt.lanes.compactMap(\.claim).sorted() {
            guard let index = ranges.firstIndex(where: { $0.position < claim && claim < $0.end ?? .max }) else {
                continue
            }
            ranges = SegmentPlanner.split(ranges, index, at: claim)
            running.insert(ranges.count - 1)
        }
        switch SegmentPlanner.nextStep(ranges, running: running, connections: attempt.growth.limit) {
        case .fetch(let index): lane.index = index
        case .split(_, let at): lane.claim = at
        case .none: return false
        }
        return true
    }

    /// The server has answered a claim: the range it is in ends there, and the rest of it is this lane's.
    ///
    /// - Returns: false when the place is not free any more.
    func settle(_ lane: Lane, _ receiver: RangeReceiver, _ entry: TaskEntry, _ attempt: Attempt) -> Bool {
        guard let claim = lane.claim, case .append = receiver.decision else { return false }
        foldCounters(entry, attempt)
        let ranges = entry.record.ranges
        guard let index = ranges.firstIndex(where: { $0.position < claim && claim < $0.end ?? .max }),
            let end = ranges[index].end, ranges.count < attempt.counters.count
        else { return false }
        // The other lane must not be near: the piece it is writing at this moment may still go beyond its new end.
        let other = attempt.lane(filling: index)?.receiver
        other?.setLimit(claim)
        guard other == nil || attempt.counters.load(index) + Self.largestPiece <= claim else {
            other?.setLimit(end)
            return false
        }
        // The live counters need not be taken out of force for this record: the other lane's stays below the claim, so it
        // says the same of either range, and the new one's lies at its start. A kill would else lose what they tell.
        entry.record.ranges = SegmentPlanner.split(ranges, index, at: claim)
        lane.claim = nil
        lane.index = ranges.count
        attempt.counters.store(ranges.count, claim)
        receiver.assign(index: ranges.count)
        receiver.setLimit(end)
        return true
    }

    /// The largest piece a transport hands over at once, in bytes.
    private static let largestPiece: Int64 = 512 << 10

    // MARK: Fewer lanes

    /// A lane has filled its range: the next one, or half of another one's.
    func laneIsFree(_ lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) {
        guard attempt.lanes.count <= attempt.growth.limit, takeWork(lane, entry, attempt),
            attempt.lanes.count == 1 || mayDivide(entry, attempt)
        else { return laneEnded(lane, entry, attempt) }
        ask(with: lane, entry, attempt)
    }

    /// A lane's request has failed. The attempt fails with the last one; else the others do the work.
    func laneFailed(_ lane: Lane, _ error: DownloadError, _ entry: TaskEntry, _ attempt: Attempt) {
        let others = attempt.lanes.count - 1
        if others == 0, lane.prefersHTTP1, attempt.head == nil, error.maySpeakOnlyHTTP2 {
            hosts.noteShared(host(of: lane, entry))
            return ask(with: lane, entry, attempt)
        }
        guard others > 0 else {
            var error = error
            error.url = error.url ?? lane.mirror.map(URLMasking.mask)
            return end(attempt, .fail(error), entry, without: lane)
        }
        notePause(error, from: lane.mirror ?? attempt.url)
        if let url = lane.mirror {
            refuseMirror(url, error.message, entry, attempt)
        } else {
            attempt.growth.cap(at: others)
            remember(entry, by: "connection", "\(error.message) \(others) go on.")
        }
        laneEnded(lane, entry, attempt)
    }

    /// A lane is no more. The last one to end decides what comes next.
    func laneEnded(_ lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) {
        attempt.remove(lane)
        releasePermit(of: lane, entry, attempt)
        if !attempt.lanes.isEmpty {
            if attempt.isEnding { return }
            if SegmentPlanner.nextRange(in: entry.record.ranges) == nil {
                // All is there: claims that are still on their way have nothing to do.
                attempt.lanes.forEach { unwant($0) }
            } else {
                grow(entry, attempt)
            }
            return
        }
        if attempt.stop != nil { return attemptStopped(entry, attempt) }
        switch attempt.afterLanes.take() {
        case .fail(let error): fail(entry, error, resumed: attempt.isResumed)
        case .restart(let ask):
            attempt.growth.cap(at: 1)
            let lane = attempt.addLane()
            lane.index = 0
            lane.nextAsk = ask
            self.ask(with: lane, entry, attempt)
        case nil: fetchNext(entry, attempt)
        }
    }

    /// Ends all lanes, `without` among them, which has ended already, and then does what follows.
    func end(_ attempt: Attempt, _ next: Attempt.AfterLanes, _ entry: TaskEntry, without lane: Lane) {
        attempt.afterLanes = next
        attempt.lanes.forEach { if $0 !== lane { $0.cancel() } }
        laneEnded(lane, entry, attempt)
    }

    private func unwant(_ lane: Lane) {
        lane.isUnwanted = true
        lane.cancel()
    }

    /// Ends further connections to a host that is full while a task waits for it, or that has more than it may have. Those
    /// that end already count; each file keeps one connection, to whichever host.
    func yieldLanes(of host: String, _ count: Int = 1) {
        let attempts = running.values.compactMap(\.attempt)
        var missing = count
        for attempt in attempts {
            missing -= attempt.lanes.count { $0.permitHost == host && ($0.isUnwanted || attempt.isEnding) }
        }
        while missing > 0 {
            let candidates = attempts.filter { $0.laneToYield(of: host) != nil }
            guard let attempt = candidates.max(by: { $0.wantedLanes < $1.wantedLanes }),
                let lane = attempt.laneToYield(of: host)
            else { return }
            attempt.growth.cap(at: attempt.wantedLanes - 1)
            unwant(lane)
            missing -= 1
        }
    }

    // MARK: Measuring

    private func armGrowth(_ entry: TaskEntry, _ attempt: Attempt) {
        let hasTrials = attempt.growth.limit > 1 && attempt.mirrors.isUndecided
        guard attempt.growth.isGrowing || hasTrials, !alarms.hasGrowth else { return }
        guard mayDivide(entry, attempt), isWorthLanes(entry) else { return }
        alarms.setGrowth(clock.now + Int64(LaneGrowth.step * 1e9))
        setDeadline()
    }

    func isWorthLanes(_ entry: TaskEntry) -> Bool {
        (entry.record.expected ?? 0) - entry.received >= 2 * SegmentPlanner.minPiece
    }

    /// Measures what the present connections bring, and adds more where that is worth it.
    func measureGrowth() {
        let now = clock.now
        for entry in running.values {
            guard let attempt = entry.attempt, !attempt.isEnding else { continue }
            tryMirrors(entry, attempt)
            guard attempt.growth.isGrowing else {
                armGrowth(entry, attempt)
                continue
            }
            let sample = Attempt.Sample(
                time: now, received: entry.received,
                lanes: attempt.lanes.count { $0.index != nil && $0.receiver?.isAnswered == true })
            // Connections that came within the step would count for less than they bring.
            if let last = attempt.sample, last.lanes == sample.lanes {
                attempt.growth.measured(
                    bytes: sample.received - last.received, seconds: Double(now - last.time) / 1e9, lanes: sample.lanes)
            } else {
                attempt.sample = sample
            }
            grow(entry, attempt)
        }
    }

    // MARK: Watching

    /// Once a second: a connection through which nothing comes any more is replaced, where several may be used.
    func watchLanes() {
        for entry in running.values {
            guard let attempt = entry.attempt, attempt.growth.isSegmented, !attempt.isEnding,
                !attempt.limits.isLimited
            else { continue }
            for lane in attempt.lanes {
                guard let index = lane.index, lane.receiver?.isAnswered == true else { continue }
                guard lane.watch.isStuck(at: attempt.counters.load(index)) else { continue }
                remember(entry, by: "connection", "nothing came for \(LaneWatch.patience) s: replaced by another one")
                if let url = lane.mirror { refuseMirror(url, "nothing came any more", entry, attempt) }
                unwant(lane)
            }
        }
    }
}

extension DownloadError {
    /// What becomes of a request over HTTP/1.1 at a server that knows HTTP/2 alone: it ends the handshake with an alert
    /// (RFC 7301 section 3.2), or answers with frames.
    fileprivate var maySpeakOnlyHTTP2: Bool {
        code == .protocolViolation || code == .tls && underlying?.contains("application protocol") == true
    }
}

extension Attempt {
    /// It has been decided that the lanes end.
    var isEnding: Bool { stop != nil || afterLanes != nil }

    /// Lanes that are not being ended.
    var wantedLanes: Int { lanes.count { !$0.isUnwanted } }

    /// The lane to that host that costs least to end: one that waits for an answer yet, else the newest.
    func laneToYield(of host: String) -> Lane? {
        guard !isEnding, wantedLanes > 1 else { return nil }
        let lanes = lanes.filter { !$0.isUnwanted && $0.permitHost == host }
        return lanes.last { $0.index == nil } ?? lanes.last
    }
}
